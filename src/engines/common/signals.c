/* SPDX-License-Identifier: MIT */
/*
 * signals.c - the signals of one condition that are under way.
 */
#include "engines/common/signals.h"

int hf__signals_add(struct hf__list *signals, struct hf__query *query)
{
    struct hf__signal *signal = hf__calloc(1, sizeof(*signal));

    if (!signal)
        return HF_ENOMEM;
    signal->query = query;
    hf__list_init(&signal->link);
    hf__list_append(signals, &signal->link);
    return 0;
}

struct hf__signal *hf__signals_first(const struct hf__list *signals)
{
    struct hf__list *link = hf__list_first(signals);

    return link ? HF_CONTAINER_OF(link, struct hf__signal, link) : NULL;
}

struct hf__query *hf__signals_take(struct hf__list *signals)
{
    struct hf__signal *signal = hf__signals_first(signals);
    struct hf__query *query = signal->query;

    hf__list_remove(&signal->link);
    hf__free(signal);
    return query;
}

void hf__signals_drop_all(struct hf__list *signals)
{
    while (hf__signals_first(signals))
        (void)hf__signals_take(signals);
}

int hf__signals_stamp(const struct hf__signal *signal,
                      struct hf__condition *wakes, uint64_t oldest, uint64_t at,
                      bool *ret_changed, hf_error *err)
{
    size_t before = wakes->n;
    int rc = 0;

    hf__condition_clean(wakes, oldest);
    *ret_changed = wakes->n != before || signal->woken > 0;
    if (signal->woken > 0)
        rc = hf__condition_signal(wakes, at, signal->query->all);
    return rc == 0 ? 0
                   : hf__fail(err, rc, "%s",
                              rc == HF_ENOMEM
                                  ? "out of memory"
                                  : "too many wake-ups are not used up");
}
