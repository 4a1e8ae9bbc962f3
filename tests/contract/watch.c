/* SPDX-License-Identifier: MIT */
/* watch.c - being told what happens to locks. */
#include <pthread.h>

#include "contract.h"

enum { TOLD_MAX = 64 };

/* What a watch has told. */
struct told {
    pthread_mutex_t guard;
    int n;
    struct {
        int kind;
        char name[300];
        char owner[200];
        uint64_t token;
    } at[TOLD_MAX];
    hf_watch *watch; /* to be stopped in the first event */
};

#define TOLD_INIT                                                              \
    {                                                                          \
        .guard = PTHREAD_MUTEX_INITIALIZER                                     \
    }

static void write_down(const hf_watch_event *event, void *ctx)
{
    struct told *told = ctx;
    const hf_lock_info *row = event->row;

    ASSERT_EQ(event->size, sizeof(hf_watch_event));
    ASSERT_TRUE((row == NULL) == (event->kind == HF_EV_RESYNC));
    pthread_mutex_lock(&told->guard);
    ASSERT_LT(told->n, TOLD_MAX);
    told->at[told->n].kind = event->kind;
    if (row) {
        told->at[told->n].token = row->token;
        (void)snprintf(told->at[told->n].name, sizeof(told->at[0].name), "%s",
                       row->name);
        (void)snprintf(told->at[told->n].owner, sizeof(told->at[0].owner), "%s",
                       row->owner);
    }
    told->n++;
    pthread_mutex_unlock(&told->guard);
}

/* How often @kind was told of an owner that contains @owner. */
static int told_of(struct told *told, int kind, const char *owner)
{
    int n = 0;

    pthread_mutex_lock(&told->guard);
    for (int i = 0; i < told->n; i++)
        n += told->at[i].kind == kind && strstr(told->at[i].owner, owner);
    pthread_mutex_unlock(&told->guard);
    return n;
}

static int told_ends(struct told *told, const char *owner)
{
    return told_of(told, HF_EV_RELEASED, owner) +
           told_of(told, HF_EV_LOST, owner) +
           told_of(told, HF_EV_BROKEN, owner);
}

static void stop(void *arg)
{
    hf_watch_stop(arg);
}

/* Stopped at the end of the test; its first event has come. */
static void watch(hf_client *client, const char *name, uint32_t flags,
                  struct told *told)
{
    hf_watch *made;
    hf_error err;

    ASSERT_OK(
        hf_watch_start(client, name, flags, write_down, told, &made, &err),
        &err);
    test_defer(stop, made);
    EVENTUALLY(told_of(told, HF_EV_RESYNC, "") == 1);
    ASSERT_EQ(told->at[0].kind, HF_EV_RESYNC);
}

static hf_hold *acquire_as(hf_client *client, const char *name,
                           const char *owner)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.owner = owner;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    return hold;
}

static hf_request *wait_as(hf_client *client, const char *name,
                           const char *owner)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_error err;

    opts.owner = owner;
    opts.wait_ms = EVENT_PATIENCE_MS;
    ASSERT_OK(hf_acquire_start(client, name, &opts, NULL, NULL, &request, &err),
              &err);
    return request;
}

TEST(watch, a_lock_is_followed_from_hand_to_hand)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    hf_client *watcher = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_request *request;
    hf_hold *hold;

    NEEDS(HF_CAP_LIST);
    told = (struct told)TOLD_INIT;
    watch(watcher, name, HF_EXACT, &told);
    hold = acquire_as(client, name, "alice");
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "alice") == 1);
    ASSERT_EQ(told.at[1].token, hf_token(hold));
    ASSERT_STREQ(told.at[1].name, name);
    request = wait_as(rival, name, "bob");
    EVENTUALLY(told_of(&told, HF_EV_QUEUED, "bob") == 1);
    client_release(hold);
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "bob") == 1);
    ASSERT_EQ(told_ends(&told, "alice"), 1);
    ASSERT_EQ(told_of(&told, HF_EV_LEFT, "bob"), 0);
    client_release(client_finish(request));
    EVENTUALLY(told_ends(&told, "bob") == 1);
    ASSERT_EQ(told_of(&told, HF_EV_RESYNC, ""), 1);
}

TEST(watch, who_holds_already_is_told_first)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold;

    NEEDS(HF_CAP_LIST);
    told = (struct told)TOLD_INIT;
    hold = acquire_as(client, name, "alice");
    watch(client, name, HF_EXACT, &told);
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "alice") == 1);
    client_release(hold);
    EVENTUALLY(told_ends(&told, "alice") == 1);
}

TEST(watch, a_prefix_has_its_names_and_no_others)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_client *watcher = contract_open(NULL);
    hf_hold *holds[3];

    NEEDS(HF_CAP_LIST);
    told = (struct told)TOLD_INIT;
    watch(watcher, "eyes/", 0, &told);
    holds[0] = acquire_as(client, contract_name("ears/one"), "ear");
    holds[1] = acquire_as(client, contract_name("eyes/one"), "left");
    holds[2] = acquire_as(client, contract_name("eyes/two"), "right");
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "left") == 1 &&
               told_of(&told, HF_EV_GRANTED, "right") == 1);
    for (int i = 0; i < 3; i++)
        client_release(holds[i]);
    EVENTUALLY(told_ends(&told, "left") == 1 && told_ends(&told, "right") == 1);
    ASSERT_EQ(told_of(&told, HF_EV_GRANTED, "ear"), 0);
}

TEST(watch, a_waiter_that_gives_up_has_left)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_request *request;
    hf_hold *hold;

    NEEDS(HF_CAP_LIST);
    told = (struct told)TOLD_INIT;
    watch(client, name, HF_EXACT, &told);
    hold = acquire_as(client, name, "alice");
    request = wait_as(rival, name, "bob");
    EVENTUALLY(told_of(&told, HF_EV_QUEUED, "bob") == 1);
    hf_request_free(request);
    EVENTUALLY(told_of(&told, HF_EV_LEFT, "bob") == 1);
    ASSERT_EQ(told_ends(&told, "alice"), 0);
    client_release(hold);
}

TEST(watch, a_lock_that_this_client_breaks_is_broken)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_client *watcher = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_FENCED);
    told = (struct told)TOLD_INIT;
    watch(watcher, name, HF_EXACT, &told);
    hold = acquire_as(client, name, "alice");
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "alice") == 1);
    ASSERT_OK(hf_break(watcher, name, hf_token(hold), NULL, &err), &err);
    EVENTUALLY(told_of(&told, HF_EV_BROKEN, "alice") == 1);
    (void)hf_release(hold, NULL);
}

TEST(watch, a_reconnect_begins_anew)
{
    static struct told told;
    hf_client *other = contract_open(NULL);
    hf_client *watcher = contract_open_url(
        contract_wrapped_url("fault", "fault=acquire:down=100ms@1"));
    const char *name = contract_name("jobs");
    hf_hold *hold;

    NEEDS(HF_CAP_LIST);
    told = (struct told)TOLD_INIT;
    watch(watcher, name, HF_EXACT, &told);
    hold = acquire_as(other, name, "alice");
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "alice") == 1);
    client_release(contract_acquire(watcher, contract_name("else")));
    EVENTUALLY(told_of(&told, HF_EV_RESYNC, "") == 2);
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "alice") == 2);
    ASSERT_EQ(told_ends(&told, "alice"), 0);
    client_release(hold);
    EVENTUALLY(told_ends(&told, "alice") == 1);
}

TEST(watch, a_lease_that_ends_is_a_loss)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_client *watcher = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_LIST | HF_CAP_LEASED);
    if (contract_can(HF_CAP_SESSION_BOUND)) {
        test_not_tested("%s: one lease for all locks", test_name());
        return;
    }
    told = (struct told)TOLD_INIT;
    watch(watcher, name, HF_EXACT, &told);
    opts.owner = "alice";
    opts.flags = HF_NO_RENEW;
    opts.ttl_ms = 3000;
    ASSERT_OK(hf_acquire(client, name, &opts, &hold, &err), &err);
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "alice") == 1);
    EVENTUALLY(told_ends(&told, "alice") == 1);
    (void)hf_release(hold, NULL);
}

static void stop_at_once(const hf_watch_event *event, void *ctx)
{
    struct told *told = ctx;

    pthread_mutex_lock(&told->guard);
    hf_watch_stop(told->watch);
    told->watch = NULL;
    told->at[told->n++].kind = event->kind;
    pthread_mutex_unlock(&told->guard);
}

TEST(watch, a_watch_may_be_stopped_in_its_own_event)
{
    static struct told told;
    hf_client *client;
    const char *name = contract_name("jobs");
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_LIST);
    client = contract_open(NULL);
    hold = contract_acquire(client, name);
    told = (struct told)TOLD_INIT;
    pthread_mutex_lock(&told.guard);
    ASSERT_OK(hf_watch_start(client, name, HF_EXACT, stop_at_once, &told,
                             &told.watch, &err),
              &err);
    pthread_mutex_unlock(&told.guard);
    EVENTUALLY(told_of(&told, HF_EV_RESYNC, "") == 1);
    client_release(hold);
    contract_close(client);
    ASSERT_EQ(told.n, 1);
}

TEST(watch, a_watch_outlives_its_client_in_silence)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_client *other = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_watch *made;
    hf_error err;
    int n;

    NEEDS(HF_CAP_LIST);
    told = (struct told)TOLD_INIT;
    ASSERT_OK(
        hf_watch_start(client, name, HF_EXACT, write_down, &told, &made, &err),
        &err);
    contract_close(client);
    n = told.n;
    client_release(contract_acquire(other, name));
    ASSERT_EQ(told.n, n);
    hf_watch_stop(made);
}

/* ---- hints ----------------------------------------------------------------- */

static struct event hints = EVENT_INIT;

/* trace+ says what the engine says. */
static void hear(int level, const char *text, void *ctx)
{
    (void)level;
    if (strncmp(text, "changed ", 8) == 0 && strstr(text, ctx))
        event_tell(&hints, 0);
}

/* Does this engine say by itself that a name changed? */
static bool hints_at_names(const char *engine)
{
    static const char *const some[] = {"etcd", "local", "redis", "zookeeper"};

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        if (strcmp(engine, some[i]) == 0)
            return true;
    return false;
}

TEST(watch, an_engine_that_pushes_says_what_changed)
{
    static char name[] = "a/b'c";
    static char any_name[] = "anything"; /* all that local: says */
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_config *config = hf_config_new();
    hf_client *watcher;
    hf_watch *made;
    hf_hold *hold;
    hf_error err;
    int before;

    if (!contract_can(HF_CAP_LIST) || !hints_at_names(hf_engine_name(client))) {
        test_not_tested("%s: it is asked in turns", test_name());
        hf_config_free(config);
        return;
    }
    told = (struct told)TOLD_INIT;
    hf_config_set_log(config, hear, HF_LOG_INFO,
                      strcmp(hf_engine_name(client), "local") == 0 ? any_name
                                                                   : name);
    ASSERT_OK(
        hf_open(contract_wrapped_url("trace", NULL), config, &watcher, &err),
        &err);
    hf_config_free(config);
    ASSERT_OK(hf_watch_start(watcher, "a/", 0, write_down, &told, &made, &err),
              &err);
    EVENTUALLY(told_of(&told, HF_EV_RESYNC, "") == 1);
    /* Until it is live, changes are found by looks. */
    before = event_count(&hints);
    while (event_count(&hints) == before) {
        hold = acquire_as(client, contract_name("a/b'c"), "alice");
        client_release(hold);
        event_breathe();
    }
    hold = acquire_as(client, contract_name("a/b'c"), "bob");
    EVENTUALLY(told_of(&told, HF_EV_GRANTED, "bob") == 1);
    client_release(hold);
    EVENTUALLY(told_ends(&told, "bob") == 1);
    hf_watch_stop(made);
    hf_close(watcher);
}

TEST(watch, wrong_arguments_are_refused)
{
    static struct told told;
    hf_client *client = contract_open(NULL);
    hf_watch *made = NULL;
    hf_error err;

    if (!contract_can(HF_CAP_LIST)) {
        ASSERT_RC(
            hf_watch_start(client, NULL, 0, write_down, &told, &made, &err),
            HF_EUNSUPPORTED, &err);
        ASSERT_NULL(made);
        return;
    }
    ASSERT_RC(hf_watch_start(client, NULL, 0, NULL, &told, &made, &err),
              HF_EINVAL, &err);
    ASSERT_RC(
        hf_watch_start(client, NULL, HF_EXACT, write_down, &told, &made, &err),
        HF_EINVAL, &err);
    ASSERT_RC(
        hf_watch_start(client, "", HF_EXACT, write_down, &told, &made, &err),
        HF_EINVAL, &err);
    ASSERT_RC(hf_watch_start(client, "a", 8, write_down, &told, &made, &err),
              HF_EINVAL, &err);
    ASSERT_NULL(made);
    hf_watch_stop(NULL);
}
