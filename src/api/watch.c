/* SPDX-License-Identifier: MIT */
/* watch.c - hf_watch_start() and hf_watch_stop(); src/core/watch.c has the
 * rest. */
#include "core/watch.h"

#include "config/name.h"
#include "core/client.h"

/* With the monitor: can this engine list everybody? */
static int may_watch(const hf_client *client, hf_error *err)
{
    if (!hf__query_slot(client, offsetof(struct hf__engine_ops, list), err))
        return HF_EUNSUPPORTED;
    if (client->engine->caps & HF_CAP_LIST)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "%s cannot list everybody who holds or waits, so it "
                    "cannot be watched",
                    client->engine_name);
}

static int start(hf_client *client, struct hf_watch *watch,
                 hf_watch **ret_watch, hf_error *err)
{
    int rc = may_watch(client, err);

    if (rc == 0)
        rc = hf__watch_reserve(watch, err);
    if (rc != 0)
        return rc;
    *ret_watch = watch; /* before the callback can ask for it */
    hf__watch_start(watch);
    return 0;
}

int hf_watch_start(hf_client *client, const char *name, uint32_t flags,
                   hf_watch_cb *each, void *ctx, hf_watch **ret_watch,
                   hf_error *err)
{
    bool exact = (flags & HF_EXACT) != 0;
    struct hf_watch *watch;
    int rc = 0;

    if (!client || !each || !ret_watch || (flags & ~(uint32_t)HF_EXACT) != 0)
        return hf__fail(err, HF_EINVAL,
                        "client, each or ret_watch is NULL, or unknown flags");
    if (exact)
        rc = hf_name_check(name, name ? strlen(name) : 0, err);
    else if (name && strlen(name) > HF_NAME_MAX)
        rc = hf__fail(err, HF_EINVAL, "no name begins with so many bytes");
    if (rc != 0)
        return rc;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    watch = hf__watch_new(client, name, exact);
    if (watch) {
        watch->each = each;
        watch->ctx = ctx;
        rc = start(client, watch, ret_watch, err);
        if (rc != 0)
            hf__watch_free(watch);
    } else {
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    }
    hf__monitor_leave(client);
    return rc;
}

void hf_watch_stop(hf_watch *watch)
{
    hf_client *client;

    if (!watch)
        return;
    client = watch->client;
    if (hf__monitor_enter_any(client, /* err= */ NULL) != 0)
        return; /* a forked child: it is the parent's */
    hf__watch_stop(watch);
    hf__watch_free(watch);
    hf__monitor_leave(client);
}
