/* SPDX-License-Identifier: MIT */
/* cuts.c - the connection ends after n bytes, for many n. */
#include "cuts.h"

#include "event.h"
#include "test.h"

/* Done, or not known to be: there was no connection. */
static void done_or_cut(const char *what, int rc, const hf_error *err)
{
    if (rc < 0 && rc != HF_EUNAVAILABLE && rc != HF_EUNKNOWN)
        FAIL("%s: %s: %s", what, hf_errname(rc), err->text);
}

static void assert_held(hf_hold *hold)
{
    int state = hf_check(hold);

    ASSERT_TRUE(state == HF_HELD || state == HF_JEOPARDY);
}

/* ---- scenes --------------------------------------------------------------- */

void cuts_stand_in_line(const struct rivals *two)
{
    hf_hold *first = client_acquire(two->rival, "jobs");
    hf_request *request = client_start(two->client, "jobs");
    hf_request *cancelled = client_start(two->client, "jobs");
    hf_hold *hold;
    hf_error err;

    hf_request_free(cancelled);
    client_release(first);
    hold = client_finish(request);
    assert_held(hold);
    if (hf_capabilities(two->client) & HF_CAP_DOWNGRADE)
        done_or_cut("downgrade", hf_downgrade(hold, &err), &err);
    done_or_cut("verify", hf_verify(hold, &err), &err);
    assert_held(hold);
    client_release(hold);
}

/* True if @hold was woken, or has returned for no reason. */
static bool wake(hf_client *rival, hf_hold *hold)
{
    hf_hold *own;
    int woken;

    if (hf_check(hold) != HF_WAITING)
        return true;
    if (hf_try(rival, "jobs", &own, NULL) != 0)
        return false;
    woken = hf_cond_signal(own, "ready", NULL);
    client_release(own);
    return woken == 1;
}

/* What became of a wait that was woken. */
static int await_wake(const struct rivals *two, hf_hold *hold, hf_error *err)
{
    hf_request *request = client_wait_start(hold, "ready");
    int rc;

    EVENTUALLY(wake(two->rival, hold));
    rc = hf_request_wait(request, EVENT_PATIENCE_MS, NULL, err);
    hf_request_free(request);
    return rc;
}

static void wait_in_vain(hf_hold *hold)
{
    hf_error err;
    int rc = hf_cond_wait(hold, "ready", 1, &err);

    if (rc != HF_ETIMEOUT)
        ASSERT_OK(rc, &err);
    assert_held(hold);
    rc = hf_cond_signal(hold, "ready", &err);
    if (rc != 0)
        FAIL("signal: %d: %s", rc, rc < 0 ? err.text : "");
}

void cuts_wait_on_condition(const struct rivals *two)
{
    hf_hold *hold = client_acquire(two->client, "jobs");
    hf_error err;

    ASSERT_OK(await_wake(two, hold, &err), &err);
    assert_held(hold);
    wait_in_vain(hold);
    client_release(hold);
}

void cuts_wait_or_lose(const struct rivals *two)
{
    hf_hold *hold = client_acquire(two->client, "jobs");
    hf_error err;
    int rc = await_wake(two, hold, &err);

    if (rc != HF_ELOST) {
        ASSERT_OK(rc, &err);
        assert_held(hold);
    }
    (void)hf_release(hold, NULL);
}

static void look(hf_client *client, uint64_t token)
{
    uint64_t version;
    hf_error err;
    int rc;

    done_or_cut("show", hf_show(client, "jobs", client_ignore_lock, NULL, &err),
                &err);
    done_or_cut("list", hf_list(client, NULL, client_ignore_lock, NULL, &err),
                &err);
    rc = hf_check_token(client, "jobs", token, &err);
    if (rc != HF_EUNSUPPORTED) /* Redis may know it after a renewal only */
        done_or_cut("check", rc, &err);
    done_or_cut("doctor", hf_doctor(client, client_ignore_finding, NULL, &err),
                &err);
    rc = hf_deadlocks(client, client_ignore_cycle, NULL, &err);
    if (rc != HF_EUNSUPPORTED) /* MySQL has no board */
        done_or_cut("deadlocks", rc, &err);
    if (hf_version_read(client, "page", &version, &err) == 0) {
        rc = hf_version_commit(client, "page", version, &version, &err);
        if (rc != HF_ECONFLICT) /* what was asked twice may have been done */
            done_or_cut("commit", rc, &err);
    }
}

void cuts_look(const struct rivals *two)
{
    struct client_wait parked =
        client_park(two->rival, "jobs", "ready", two->rival);
    hf_hold *hold = client_acquire(two->rival, "jobs");
    hf_request *request = client_start(two->rival, "jobs");

    look(two->client, hf_token(hold));
    ASSERT_EQ(hf_cond_signal(hold, "ready", NULL), 1);
    hf_request_free(request); /* that cancels it */
    client_release(hold);
    client_woken(&parked);
}

static void count_grant(const hf_watch_event *event, void *ctx)
{
    if (event->kind == HF_EV_GRANTED)
        event_tell(ctx, event->kind);
}

void cuts_watch(const struct rivals *two)
{
    struct event granted = EVENT_INIT;
    hf_watch *watches[2];
    hf_hold *hold;
    hf_error err;

    for (int i = 0; i < 2; i++)
        ASSERT_OK(hf_watch_start(two->client, "jobs", i == 0 ? 0 : HF_EXACT,
                                 count_grant, &granted, &watches[i], &err),
                  &err);
    hold = client_acquire(two->rival, "jobs");
    event_await(&granted, 2, EVENT_PATIENCE_MS);
    for (int i = 0; i < 2; i++)
        hf_watch_stop(watches[i]);
    client_release(hold);
}

/* ---- cuts ----------------------------------------------------------------- */

static void await_connection(hf_client *client)
{
    EVENTUALLY(hf_show(client, "jobs", client_ignore_lock, NULL, NULL) == 0);
}

static void cut_in(const struct rivals *two, cuts_scene_fn *scene,
                   enum proxy_direction direction, int times)
{
    uint64_t before;
    size_t whole;

    await_connection(two->client);
    before = proxy_bytes(two->proxy, direction);
    scene(two);
    whole = (size_t)(proxy_bytes(two->proxy, direction) - before);
    for (int i = 0; i < times; i++) {
        await_connection(two->client);
        proxy_cut_after(two->proxy, direction,
                        whole * (size_t)i / (size_t)times);
        scene(two);
    }
    proxy_pass(two->proxy);
    test_note("%d cuts in %zu bytes", times, whole);
}

static bool nothing_left(hf_client *client)
{
    return client_count(client, "jobs", HF_HOLDER) == 0 &&
           client_count(client, "jobs", HF_WAITER) == 0 &&
           client_count(client, "jobs", HF_PARKED) == 0;
}

void cuts(const struct rivals *two, cuts_scene_fn *scene, int times)
{
    scene(two);
    cut_in(two, scene, PROXY_TO_SERVER, times);
    cut_in(two, scene, PROXY_TO_CLIENT, times);
    EVENTUALLY(nothing_left(two->rival));
}
