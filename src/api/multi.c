/* SPDX-License-Identifier: MIT */
/*
 * multi.c - several names as one hold: all or nothing.
 *
 * The names are taken in one order, by bytes, whatever order the caller gave:
 * so two multi-locks never wait for each other in a ring. One deadline covers
 * all of them, not one each. When a name cannot be had, those already taken
 * are released, in reverse, before the caller hears of it.
 *
 * A member may be lost while another is waited for; then all are let go, and
 * it begins anew while there is time.
 *
 * The hold that is returned has the members in the caller's order. It has no
 * ticket of its own: its check is the worst member, its time the shortest.
 */
#include "api/multi.h"

#include <stdlib.h>

#include "api/release.h"
#include "api/request.h"
#include "core/client.h"

struct entry {
    const char *name;
    size_t place; /* in the caller's order */
};

static int by_name(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;

    return strcmp(left->name, right->name);
}

static int sort_names(const char *const *names, size_t n, struct entry *entries,
                      hf_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!names[i])
            return hf__fail(err, HF_EINVAL, "name %zu is NULL", i);
        entries[i].name = names[i];
        entries[i].place = i;
    }
    if (!HF__PLANTED("many_in_the_callers_order"))
        qsort(entries, n, sizeof(*entries), by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(entries[i - 1].name, entries[i].name) == 0)
            return hf__fail(err, HF_EINVAL, "'%s' is named twice",
                            entries[i].name);
    }
    return 0;
}

void hf__multi_let_go(hf_hold *hold)
{
    for (uint32_t i = hold->members_n; i > 0; i--) {
        hf_hold *member = HF_STEAL(hold->members[i - 1]);

        if (!member)
            continue;
        hf__callbacks_cancel(hold->client, &member->callback);
        hf__request_let_go(member);
        hf__hold_free(member);
    }
}

int hf__multi_release(hf_hold *hold)
{
    int worst = 0;

    for (uint32_t i = hold->members_n; i > 0; i--) {
        int rc = hf__release_hold(hold->members[i - 1]);

        if (worst == 0 || rc == HF_ELOST)
            worst = rc;
    }
    atomic_store_explicit(&hold->state, HF_RELEASED, memory_order_release);
    return worst;
}

static int64_t left_ms(const hf_client *client, int64_t until_ns)
{
    int64_t left_ns = until_ns - client->now_ns;

    if (until_ns == HF_NEVER)
        return HF_FOREVER;
    return left_ns <= 0 ? 0 : (left_ns + HF_MS - 1) / HF_MS;
}

static int take_once(hf_hold *multi, const struct entry *entries, size_t n,
                     const hf_opts *opts, int64_t until_ns, hf_error *err)
{
    hf_client *client = multi->client;
    hf_opts own = *opts;

    if (own.wait_ms > 0)
        own.wait_ms = left_ms(client, until_ns);
    for (size_t i = 0; i < n; i++) {
        hf_hold **member = &multi->members[entries[i].place];
        int rc =
            hf__request_acquire(client, entries[i].name, &own, member, err);

        if (rc != 0)
            return rc;
        (*member)->whole = multi;
        if (own.wait_ms > 0)
            own.wait_ms = left_ms(client, until_ns);
    }
    return hf__hold_check(multi, client->now_ns) == HF_LOST ? HF_ELOST : 0;
}

/* What all members are asked for with: one new owner, not one for each. */
static int common_opts(const hf_opts *given, hf_opts *own, hf_error *err)
{
    int rc = hf__request_opts(given, own, err);

    if (rc == 0 && own->flags & HF_NEW_OWNER && own->owner_id == 0) {
        own->flags &= ~(uint32_t)HF_NEW_OWNER;
        own->owner_id = hf_owner_new();
    }
    return rc;
}

static int take_all(hf_hold *multi, const struct entry *entries, size_t n,
                    const hf_opts *opts, hf_error *err)
{
    hf_client *client = multi->client;
    hf_opts own;
    int64_t until_ns;
    int rc;

    rc = common_opts(opts, &own, err);
    if (rc != 0)
        return rc;
    if (own.wait_ms == HF_CONFIGURED)
        own.wait_ms = hf__request_configured_wait(client, multi->name);
    until_ns = hf__instant_add(client->now_ns,
                               hf__ms_to_ns(own.wait_ms == 0
                                                ? client->settings.io_timeout_ms
                                                : own.wait_ms));
    for (;;) {
        rc = take_once(multi, entries, n, &own, until_ns, err);
        if (rc == 0)
            return 0;
        hf__multi_let_go(multi);
        if (rc != HF_ELOST)
            break;
        if (client->now_ns >= until_ns)
            return hf__fail(err, HF_EUNAVAILABLE,
                            "a member was lost each time while the others "
                            "were waited for");
    }
    /* The last ones were tried with no time left. */
    if (rc == HF_EBUSY && own.wait_ms != 0) {
        rc = HF_ETIMEOUT;
        if (err)
            err->code = rc;
    }
    return rc;
}

static int acquire_many(hf_client *client, const struct entry *entries,
                        const char *first, size_t n, const hf_opts *opts,
                        hf_hold **ret_hold, hf_error *err)
{
    hf_hold *multi = hf__hold_new(client, first, strlen(first));
    int rc;

    if (!multi)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    multi->members = hf__calloc(n, sizeof(hf_hold *));
    if (!multi->members) {
        hf__hold_free(multi);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    multi->members_n = (uint32_t)n;
    multi->forming = true;
    rc = take_all(multi, entries, n, opts, err);
    multi->forming = false;
    if (rc != 0) {
        hf__hold_free(multi);
        return rc;
    }
    for (size_t i = 0; i < n; i++)
        atomic_store_explicit(&multi->members[i]->beat, 1,
                              memory_order_relaxed);
    *ret_hold = multi;
    return 0;
}

int hf_acquire_many(hf_client *client, const char *const *names, size_t n,
                    const hf_opts *opts, hf_hold **ret_hold, hf_error *err)
{
    HF_CLEANUP(hf__freep) struct entry *entries = NULL;
    int rc;

    if (!client || !names || !ret_hold || n == 0 || n > UINT16_MAX)
        return hf__fail(err, HF_EINVAL,
                        "client, names or ret_hold is NULL, or no names");
    entries = hf__calloc(n, sizeof(*entries));
    if (!entries)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = sort_names(names, n, entries, err);
    if (rc != 0)
        return rc;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = acquire_many(client, entries, names[0], n, opts, ret_hold, err);
    hf__monitor_leave(client);
    return rc;
}
