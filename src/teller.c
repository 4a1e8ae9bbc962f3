/* SPDX-License-Identifier: MIT */
/*
 * teller.c - run the host's callbacks, on nobody else's time.
 *
 * A callback never runs with the monitor held, and never on a thread that is
 * inside a blocking call of ours: that caller may hold a mutex the callback
 * wants. Nor on the background thread, whose renewals a slow callback would
 * stop. So there is one more thread, the teller, made when the first callback
 * is registered; or the host's own, in hf_dispatch(), once it has asked for
 * hf_event_fd().
 *
 * A tale is what is to be told about one hold or request. It is listed with
 * the monitor held, prepared (what is to be said is taken) with the monitor
 * held, and told without. Whoever ends a hold or a request hushes its tale
 * first: after that nothing is told about it any more, and a telling under way
 * has returned, unless it is the telling itself that ends it.
 */
#include "teller.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client.h"
#include "monitor.h"

void hf__teller_init(struct hf__teller *teller)
{
    hf__list_init(&teller->tales);
    hf__list_init(&teller->hushing);
    teller->announce_fd = -1;
}

static void announce(hf_client *client)
{
    struct hf__teller *teller = &client->teller;

    if (teller->dispatcher != 0)
        return; /* it looks again before it ends */
    if (client->settings.drive == HF__DRIVE_APP) {
        hf__loop_kick(&client->loop);
    } else if (teller->dispatched) {
        hf__fd_signal(teller->announce_fd);
    } else {
        atomic_store_explicit(&teller->word, 1, memory_order_release);
        hf__client_wake_word(client, &teller->word);
    }
}

void hf__teller_add(hf_client *client, struct hf__tale *tale)
{
    if (tale->listed)
        return;
    tale->listed = true;
    if (hf__list_empty(&client->teller.tales))
        announce(client);
    hf__list_append(&client->teller.tales, &tale->link);
}

void hf__teller_hush(hf_client *client, struct hf__tale *tale)
{
    struct hf__teller *teller = &client->teller;

    if (HF_LIKELY(!tale->listed && teller->telling != tale))
        return;
    if (tale->listed) {
        hf__list_remove(&tale->link);
        tale->listed = false;
    }
    while (teller->telling == tale &&
           teller->telling_thread != hf__world->self()) {
        struct hf__waiter waiter;

        hf__waiter_init(&waiter);
        hf__list_append(&teller->hushing, &waiter.watch);
        hf__monitor_sleep(client, &waiter);
    }
}

static void tell_one(hf_client *client, struct hf__tale *tale)
{
    struct hf__teller *teller = &client->teller;

    hf__list_remove(&tale->link);
    tale->listed = false;
    tale->prepare(tale);
    teller->telling = tale;
    teller->telling_thread = hf__world->self();
    hf__monitor_unlock(client);
    tale->tell(tale); /* which may free what it is about */
    hf__monitor_lock(client);
    teller->telling = NULL;
    HF_LIST_EACH(&teller->hushing, link) {
        hf__waiter_done(client, HF_CONTAINER_OF(link, struct hf__waiter, watch),
                        0);
    }
}

/* Tell what there is, not what comes of it: a callback that asks again, and
 * gets it at once, would keep us here for ever. */
static int run(hf_client *client)
{
    struct hf__teller *teller = &client->teller;
    struct hf__list tales;
    int told = 0;

    hf__list_take(&tales, &teller->tales);
    while (!hf__list_empty(&tales)) {
        tell_one(client, HF_CONTAINER_OF(hf__list_first(&tales),
                                         struct hf__tale, link));
        told++;
    }
    return told;
}

int hf__teller_dispatch(hf_client *client)
{
    struct hf__teller *teller = &client->teller;
    bool first = teller->dispatcher == 0;
    int told = 0;

    if (first)
        teller->dispatcher = hf__world->self();
    if (client->settings.drive == HF__DRIVE_APP)
        hf__monitor_look(client);
    if (teller->announce_fd >= 0)
        hf__fd_drain(teller->announce_fd);
    /* Of two threads one tells, and the other finds nothing to do. */
    if (first && !teller->telling)
        told = run(client);
    if (first) {
        teller->dispatcher = 0;
        if (!hf__list_empty(&teller->tales))
            announce(client);
    }
    return told;
}

static void teller_main(void *arg)
{
    hf_client *client = arg;
    struct hf__teller *teller = &client->teller;

    hf__monitor_lock(client);
    for (;;) {
        while (!teller->dispatched && !hf__list_empty(&teller->tales))
            (void)run(client); /* also what the close has ended */
        if (teller->stop)
            break;
        atomic_store_explicit(&teller->word, 0, memory_order_relaxed);
        hf__monitor_unlock(client);
        hf__world->park(&teller->word, 0, HF_ANYBODY, HF_NEVER);
        hf__monitor_lock(client);
    }
    hf__monitor_unlock(client);
}

int hf__teller_need(hf_client *client, hf_error *err)
{
    struct hf__teller *teller = &client->teller;
    int rc;

    if (teller->thread || teller->dispatched ||
        client->settings.drive == HF__DRIVE_APP)
        return 0;
    rc = hf__world->thread_start(&teller->thread, "holdfast-tell", teller_main,
                                 client);
    if (rc != 0)
        return hf__fail(err, rc, "cannot start the thread for callbacks");
    return 0;
}

int hf__teller_dispatch_fd(hf_client *client, hf_error *err)
{
    struct hf__teller *teller = &client->teller;

    if (teller->announce_fd < 0)
        teller->announce_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (teller->announce_fd < 0)
        return hf__fail_engine(err, HF_ENOMEM, errno,
                               "no descriptor left: raise the limit "
                               "(ulimit -n)");
    teller->dispatched = true;
    if (!hf__list_empty(&teller->tales))
        announce(client);
    return teller->announce_fd;
}

void hf__teller_stop(hf_client *client)
{
    struct hf__teller *teller = &client->teller;

    if (!teller->thread)
        return;
    hf__monitor_lock(client);
    teller->stop = true;
    atomic_store_explicit(&teller->word, 1, memory_order_release);
    hf__monitor_unlock(client);
    hf__world->unpark(&teller->word, HF_ANYBODY);
    hf__world->thread_join(teller->thread);
    teller->thread = NULL;
}

void hf__teller_release(struct hf__teller *teller)
{
    if (teller->announce_fd >= 0)
        (void)close(teller->announce_fd);
    teller->announce_fd = -1;
}
