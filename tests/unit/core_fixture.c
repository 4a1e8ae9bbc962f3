/* SPDX-License-Identifier: MIT */
#include "core_fixture.h"

#include <stdlib.h>

#include "core/monitor.h"

struct engine {
    struct hf__engine base;
};

static struct hf__world world;
static int64_t now_ns;
static uint64_t chance;
static hf_client *client;
static struct hf__engine *engine;
static int counts[CORE_OPS];
static struct hf__ticket *last[CORE_OPS];
static struct hf__query *last_query;
static int refusals[CORE_OPS];
static bool automatic;
static bool connection_held;
static bool pushes;
static uint64_t next_token;
static struct hf__engine_ops ops;
static void (*others)(void);

/* ---- the world ------------------------------------------------------------ */

static int64_t still_now(void)
{
    return now_ns;
}

static int64_t still_wall(void)
{
    return now_ns / 1000;
}

static int same_random(void *bytes, size_t len)
{
    unsigned char *to = bytes;

    for (size_t i = 0; i < len; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        to[i] = (unsigned char)(chance >> 56);
    }
    return 0;
}

/* A blocking call waits for what will not come: its time passes at once. */
static int passing_poll(struct hf__loop *loop, struct hf__loop_batch *batch,
                        int64_t until_ns)
{
    int n = hf__world_real.poll(loop, batch, 0);

    if (n == 0 && until_ns > now_ns && until_ns != HF_NEVER)
        now_ns = until_ns;
    return n;
}

static void yield_to_others(void)
{
    if (others)
        others();
}

void core_others(void (*run)(void))
{
    others = run;
}

/* ---- the engine ----------------------------------------------------------- */

static int note(enum core_op op, struct hf__ticket *ticket, hf_error *err)
{
    counts[op]++;
    last[op] = ticket;
    if (refusals[op] != 0)
        return hf__fail(err, refusals[op], "refused by the test");
    return 0;
}

static int test_open(struct hf__engine *self, hf_error *err)
{
    (void)err;
    engine = self;
    return 0;
}

static int test_connect(struct hf__engine *self, hf_error *err)
{
    int rc = note(CORE_CONNECT, NULL, err);

    if (rc == 0 && !connection_held)
        hf__up_connected(self);
    return rc;
}

static void test_close(struct hf__engine *self, bool forked)
{
    (void)self;
    (void)forked;
}

static void grant(struct hf__ticket *ticket, uint64_t token, uint32_t tokens)
{
    struct hf__grant granted = {
        .token = token,
        .tokens = tokens,
        .lease_ms = ticket->ttl_ms,
        .sent_ns = ticket->sent_ns,
    };

    hf__up_granted(engine, ticket, &granted);
}

static int test_acquire(struct hf__engine *self, struct hf__ticket *ticket,
                        hf_error *err)
{
    int rc = note(CORE_ACQUIRE, ticket, err);

    (void)self;
    if (rc == 0 && automatic) {
        next_token += ticket->reserve;
        grant(ticket, next_token - ticket->reserve + 1, ticket->reserve);
    }
    return rc;
}

static void leave(struct hf__ticket *ticket, int rc)
{
    for (size_t i = 0; i < CORE_OPS; i++)
        last[i] = last[i] == ticket ? NULL : last[i];
    hf__up_left(engine, ticket, rc);
}

static int depart(enum core_op op, struct hf__ticket *ticket, hf_error *err)
{
    int rc = note(op, ticket, err);

    if (rc == 0 && automatic)
        leave(ticket, 0);
    return rc;
}

#define TEST_CALL_OF(slot, act, op)                                            \
    static int test_##slot(struct hf__engine *self, struct hf__ticket *ticket, \
                           hf_error *err)                                      \
    {                                                                          \
        (void)self;                                                            \
        return act(op, ticket, err);                                           \
    }
TEST_CALL_OF(withdraw, depart, CORE_WITHDRAW)
TEST_CALL_OF(release, depart, CORE_RELEASE)
TEST_CALL_OF(downgrade, note, CORE_DOWNGRADE)

static int test_renew(struct hf__engine *self, struct hf__ticket **tickets,
                      size_t n, hf_error *err)
{
    (void)self;
    for (size_t i = 0; i < n; i++) {
        int rc = note(CORE_RENEW, tickets[i], err);

        if (rc != 0)
            return rc;
    }
    return 0;
}

static int test_query(struct hf__engine *self, struct hf__query *query,
                      hf_error *err)
{
    (void)self;
    last_query = query;
    return note(CORE_QUERY, NULL, err);
}

static int test_finish(struct hf__engine *self, struct hf__query *query,
                       hf_error *err)
{
    int rc = note(CORE_FINISH, NULL, err);

    if (rc == 0)
        hf__up_answer(self, query, 0, /* err= */ NULL);
    return rc;
}

static void test_watch(struct hf__engine *self, struct hf__feed *feed)
{
    (void)self;
    counts[CORE_WATCH]++;
    feed->live = pushes;
}

static void test_unwatch(struct hf__engine *self, struct hf__feed *feed)
{
    (void)self;
    (void)feed;
    counts[CORE_UNWATCH]++;
}

static void test_flush(struct hf__engine *self)
{
    (void)self;
    counts[CORE_FLUSH]++;
}

static const struct hf__engine_ops standard_ops = {
    .name = "test",
    .schemes = "test",
    .dialects = "native",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DOWNGRADE | HF_CAP_LOCK_DELAY |
            HF_CAP_TOLD_BEFORE_REGRANT,
    .flags = HF__RESERVES_TOKENS,
    .size = sizeof(struct engine),
    .open = test_open,
    .connect = test_connect,
    .close = test_close,
    .acquire = test_acquire,
    .withdraw = test_withdraw,
    .release = test_release,
    .renew = test_renew,
    .downgrade = test_downgrade,
    .list = test_query,
    .version_read = test_query,
    .break_lock = test_query,
    .version_commit = test_query,
    .finish = test_finish,
    .watch = test_watch,
    .unwatch = test_unwatch,
    .flush = test_flush,
};

/* ---- the client ------------------------------------------------------------ */

void core_close(void)
{
    if (!client)
        return;
    memset(refusals, 0, sizeof(refusals));
    hf_close(client);
    hf__engine_register(NULL);
    hf__world = &hf__world_real;
    client = NULL;
    ops = standard_ops;
}

static void close_quietly(void *arg)
{
    (void)arg;
    automatic = true; /* what is left goes quietly */
    core_close();
}

void core_traits(uint64_t caps, uint32_t flags)
{
    ops = standard_ops;
    ops.caps = caps;
    ops.flags = flags;
}

void core_push(bool push)
{
    pushes = push;
}

void core_hold_connection(bool held)
{
    connection_held = held;
}

hf_client *core_open(const char *query)
{
    return core_open_behind("", query);
}

hf_client *core_open_behind(const char *wrappers, const char *query)
{
    char url[256];
    hf_error err;

    world = hf__world_real;
    world.now_ns = still_now;
    world.wall_us = still_wall;
    world.random = same_random;
    world.poll = passing_poll;
    world.yield = yield_to_others;
    others = NULL;
    hf__world = &world;
    now_ns = 1000 * HF_SECOND;
    chance = 1;
    memset(counts, 0, sizeof(counts));
    memset(last, 0, sizeof(last));
    memset(refusals, 0, sizeof(refusals));
    automatic = false;
    connection_held = false;
    pushes = false;
    next_token = 0;
    if (!ops.name)
        ops = standard_ops;
    hf__engine_register(&ops);
    (void)snprintf(url, sizeof(url), "%stest:?drive=app%s%s", wrappers,
                   query[0] ? "&" : "", query);
    ASSERT_OK(hf_open(url, NULL, &client, &err), &err);
    test_defer(close_quietly, NULL);
    return client;
}

struct hf__engine *core_engine(void)
{
    return engine;
}

struct hf__world *core_world(void)
{
    return &world;
}

int core_count(enum core_op op)
{
    return counts[op];
}

struct hf__ticket *core_last(enum core_op op)
{
    return last[op];
}

struct hf__query *core_query(void)
{
    return last_query;
}

void core_auto(void)
{
    automatic = true;
}

void core_refuse(enum core_op op, int code)
{
    refusals[op] = code;
}

int64_t core_now_ns(void)
{
    return now_ns;
}

void core_stop_ms(int64_t ms)
{
    now_ns += ms * HF_MS;
}

void core_advance_ms(int64_t ms)
{
    int64_t until_ns = now_ns + ms * HF_MS;

    for (;;) {
        int64_t due_ns = hf__loop_next_due(&client->loop);

        now_ns =
            due_ns < until_ns ? (due_ns > now_ns ? due_ns : now_ns) : until_ns;
        ASSERT_GE(hf_dispatch(client), 0);
        if (now_ns >= until_ns && hf__loop_next_due(&client->loop) > until_ns)
            return;
    }
}

/* ---- reports ---------------------------------------------------------------- */

#define INSIDE(statement)                                                      \
    do {                                                                       \
        ASSERT_EQ(hf__monitor_enter_any(client, NULL), 0);                     \
        statement;                                                             \
        hf__monitor_leave(client);                                             \
        ASSERT_GE(hf_dispatch(client), 0);                                     \
    } while (0)

void core_granted(struct hf__ticket *ticket, uint64_t token, uint32_t tokens)
{
    INSIDE(grant(ticket, token, tokens));
}

void core_queued(struct hf__ticket *ticket)
{
    INSIDE(hf__up_queued(engine, ticket));
}

void core_busy(struct hf__ticket *ticket, int64_t again_ns, const char *holder)
{
    INSIDE(hf__up_busy(engine, ticket, again_ns, holder));
}

void core_failed(struct hf__ticket *ticket, int code)
{
    hf_error err;

    (void)hf__fail(&err, code, "reported by the test");
    INSIDE(hf__up_failed(engine, ticket, &err));
}

void core_unknown(struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNKNOWN, "reported by the test");
    INSIDE(hf__up_unknown(engine, ticket, &err));
}

void core_renewed(struct hf__ticket *ticket)
{
    struct hf__grant renewed = {
        .lease_ms = ticket->ttl_ms,
        .sent_ns = ticket->sent_ns,
    };

    INSIDE(hf__up_renewed(engine, ticket, &renewed));
}

void core_lost(struct hf__ticket *ticket)
{
    INSIDE(hf__up_lost(engine, ticket, HF__LOST_TAKEN));
}

void core_left(struct hf__ticket *ticket, int rc)
{
    INSIDE(leave(ticket, rc));
}

void core_answer(int rc)
{
    hf_error err;

    (void)hf__fail(&err, rc, "reported by the test");
    INSIDE(hf__up_answer(engine, last_query, rc, rc == 0 ? NULL : &err));
}

void core_down(int code)
{
    hf_error err;

    (void)hf__fail(&err, code, "reported by the test");
    INSIDE(hf__up_down(engine, &err));
}

void core_changed(const char *name)
{
    INSIDE(hf__up_changed(engine, name));
}

void core_connected(void)
{
    INSIDE(hf__up_connected(engine));
}

/* ---- asking ------------------------------------------------------------------ */

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct core_ask *ask = ctx;

    ask->outcomes++;
    ask->rc = rc;
    ask->hold = hold;
    if (err)
        ask->err = *err;
}

void core_ask_with(struct core_ask *ask, const char *name, const hf_opts *opts)
{
    hf_error err;

    memset(ask, 0, sizeof(*ask));
    ASSERT_OK(
        hf_acquire_start(client, name, opts, on_done, ask, &ask->request, &err),
        &err);
    ASSERT_GE(hf_dispatch(client), 0);
}

void core_ask(struct core_ask *ask, const char *name, int64_t wait_ms,
              const char *owner)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.wait_ms = wait_ms;
    opts.owner = owner;
    core_ask_with(ask, name, &opts);
}

hf_hold *core_take(struct core_ask *ask, const char *name, uint64_t token,
                   uint32_t tokens)
{
    core_ask(ask, name, HF_FOREVER, NULL);
    core_granted(core_last(CORE_ACQUIRE), token, tokens);
    ASSERT_EQ(ask->outcomes, 1);
    ASSERT_EQ(ask->rc, 0);
    return ask->hold;
}

struct hf__ticket *core_open_asking(struct core_ask *ask, const char *query)
{
    core_open(query);
    core_ask(ask, "jobs", HF_FOREVER, NULL);
    return core_last(CORE_ACQUIRE);
}

void core_comes_after_ms(enum core_op op, int64_t ms)
{
    int before = core_count(op);

    core_advance_ms(ms - 1);
    ASSERT_EQ(core_count(op), before);
    core_advance_ms(1);
    ASSERT_EQ(core_count(op), before + 1);
}

void core_end(struct core_ask *ask)
{
    hf_hold_unref(ask->hold);
    hf_request_free(ask->request);
    ask->hold = NULL;
    ask->request = NULL;
}
