/* SPDX-License-Identifier: MIT */
/*
 * fault.c - the engine that breaks: "fault+local:?fault=renew:lost@2".
 *
 * It shows what a program does when a lock is lost, late, refused or of
 * unknown outcome. fault_script.c has the language.
 *
 * What it reports is always true: it withdraws a lock from the inner engine
 * before it reports it lost, so that another client can acquire it; an answer
 * that is dropped was given; a request that is cut was never made. So the
 * promises of holdfast hold under every script, and a program that misbehaves
 * under one has a bug of its own.
 *
 *   cut, drop   unknown is reported; the core asks again or withdraws. Until
 *               it does, the ticket is silent: we drop the inner engine's
 *               reports about it, as if the connection were gone
 *   lost,       the ticket is being taken: withdrawn from inside; "left" then
 *   expire      becomes "lost", or the answer to a release that came meanwhile
 *   down        all calls under way end unknown, calls are refused, reports are
 *               swallowed, until the core has connected again
 *
 * Failure: we retry a withdrawal that fails every 100 ms. One timer serves all
 * delays; without memory for it, open() fails.
 */
#include "core/client.h"
#include "engines/wrap/fault_script.h"
#include "engines/wrap/wrap.h"

enum { AGAIN_MS = 100 };

struct fault {
    struct hf__wrap wrap;
    struct hf__fault_script script;
    struct hf__timer timer;
    bool timer_reserved;
    struct hf__list active; /* tickets with something due or under way */
    int64_t connect_ns;     /* a delayed connect; HF_NEVER: none */
    bool inner_up;
    bool down; /* by our own doing */
    int64_t down_until_ns;
    struct hf__query *dropped; /* the signal whose answer is swallowed */
};

/* Our bytes of every ticket. */
struct fault_ticket {
    struct hf__ticket *ticket; /* NULL: not used yet */
    struct hf__ticket *old;    /* whose lock a park gives up */
    struct hf__list link;      /* fault->active */
    int64_t call_ns;           /* when the delayed call is made */
    int64_t take_ns;           /* when the lock is taken away; HF_NEVER */
    struct hf__fault_verdict verdict; /* of the delayed call */
    uint8_t delayed;                  /* 1 + enum hf__fault_call; 0: none */
    uint8_t under_way;                /* the same, of the call inside */
    bool drop;      /* swallow the answer of the call under way */
    bool silent;    /* swallow everything until the next call */
    bool taking;    /* we are withdrawing it */
    uint8_t reason; /* why: HF__LOST_* */
    uint8_t wanted; /* 1 + the call that the core made meanwhile */
};

static struct fault *fault_of(struct hf__engine *engine)
{
    return (struct fault *)engine;
}

static struct fault_ticket *mine_of(struct hf__engine *engine,
                                    struct hf__ticket *ticket)
{
    struct fault_ticket *mine = hf__engine_ticket(engine, ticket);

    if (!mine->ticket) {
        mine->ticket = ticket;
        mine->take_ns = HF_NEVER;
        hf__list_init(&mine->link);
    }
    return mine;
}

static void activate(struct fault *self, struct fault_ticket *mine)
{
    if (hf__list_empty(&mine->link))
        hf__list_append(&self->active, &mine->link);
}

/* The ticket is about to be freed. */
static void forget(struct fault_ticket *mine)
{
    hf__list_remove(&mine->link);
    mine->under_way = 0;
    mine->delayed = 0;
    mine->take_ns = HF_NEVER;
    mine->taking = false;
    mine->wanted = 0;
}

/* ---- one timer for all -------------------------------------------------- */

static int64_t due_of(const struct fault_ticket *mine)
{
    int64_t call_ns = mine->delayed ? mine->call_ns : HF_NEVER;

    return call_ns < mine->take_ns ? call_ns : mine->take_ns;
}

static void arm(struct fault *self)
{
    int64_t due_ns = self->connect_ns;

    HF_LIST_EACH(&self->active, link) {
        int64_t its_ns =
            due_of(HF_CONTAINER_OF(link, struct fault_ticket, link));

        if (its_ns < due_ns && !self->down)
            due_ns = its_ns;
    }
    if (due_ns == HF_NEVER)
        hf__timer_stop(self->wrap.base.host->loop, &self->timer);
    else
        hf__monitor_timer(hf__wrap_client(&self->wrap.base), &self->timer,
                          due_ns);
}

static struct fault_ticket *first_due(struct fault *self, int64_t now_ns)
{
    HF_LIST_EACH(&self->active, link) {
        struct fault_ticket *mine =
            HF_CONTAINER_OF(link, struct fault_ticket, link);

        if (due_of(mine) <= now_ns)
            return mine;
    }
    return NULL;
}

/* ---- what can go wrong -------------------------------------------------- */

static void report_unknown(struct fault *self, struct fault_ticket *mine,
                           const char *why)
{
    hf_error err;

    mine->silent = true;
    (void)hf__fail(&err, HF_EUNKNOWN, "fault: %s", why);
    hf__up_unknown(&self->wrap.base, mine->ticket, &err);
}

/* Take the lock away: "left" will end it. */
static void take(struct fault *self, struct fault_ticket *mine)
{
    struct hf__engine *inner = self->wrap.base.inner;

    mine->taking = true;
    mine->drop = false;
    mine->silent = false;
    mine->delayed = 0;
    mine->take_ns = HF_NEVER;
    if (inner->ops->withdraw(inner, mine->ticket, /* err= */ NULL) == 0)
        return;
    mine->take_ns = hf__instant_add(hf__now(), AGAIN_MS * HF_MS);
    activate(self, mine);
}

/* The ticket that was taken is gone inside. */
static void taken(struct fault *self, struct fault_ticket *mine)
{
    struct hf__ticket *ticket = mine->ticket;
    uint8_t wanted = mine->wanted;
    int reason = mine->reason;

    forget(mine);
    if (wanted == 1 + HF__FAULT_RELEASE)
        hf__up_left(&self->wrap.base, ticket, HF_ELOST);
    else if (wanted)
        hf__up_left(&self->wrap.base, ticket, 0);
    else
        hf__up_lost(&self->wrap.base, ticket, reason);
}

static struct fault_ticket *first_under_way(struct fault *self)
{
    HF_LIST_EACH(&self->active, link) {
        struct fault_ticket *mine =
            HF_CONTAINER_OF(link, struct fault_ticket, link);

        if (!mine->taking && (mine->under_way || mine->delayed))
            return mine;
    }
    return NULL;
}

static void break_connection(struct fault *self, int64_t ms)
{
    struct fault_ticket *mine;
    hf_error err;

    if (self->down)
        return;
    self->down = true;
    self->down_until_ns = hf__instant_add(hf__now(), hf__ms_to_ns(ms));
    for (mine = first_under_way(self); mine; mine = first_under_way(self)) {
        bool renewal = mine->under_way == 1 + HF__FAULT_RENEW ||
                       mine->delayed == 1 + HF__FAULT_RENEW;

        mine->under_way = 0;
        mine->delayed = 0;
        mine->drop = false;
        mine->silent = true;
        if (!renewal)
            report_unknown(self, mine, "the connection broke");
    }
    (void)hf__fail(&err, HF_EUNAVAILABLE, "fault: the connection broke");
    hf__up_down(&self->wrap.base, &err);
}

/* ---- calls of tickets --------------------------------------------------- */

static int pass_down(struct fault *self, struct fault_ticket *mine,
                     enum hf__fault_call call, hf_error *err)
{
    struct hf__engine *inner = self->wrap.base.inner;
    struct hf__ticket *ticket = mine->ticket;
    int rc;

    mine->under_way = (uint8_t)(1 + call);
    activate(self, mine);
    switch (call) {
    case HF__FAULT_ACQUIRE:
        rc = inner->ops->acquire(inner, ticket, err);
        break;
    case HF__FAULT_WITHDRAW:
        rc = inner->ops->withdraw(inner, ticket, err);
        break;
    case HF__FAULT_RELEASE:
        rc = inner->ops->release(inner, ticket, err);
        break;
    case HF__FAULT_RENEW:
        rc = inner->ops->renew(inner, &ticket, 1, err);
        break;
    case HF__FAULT_PARK:
        rc = inner->ops->park(inner, ticket, mine->old, err);
        break;
    case HF__FAULT_UNPARK:
        rc = inner->ops->unpark(inner, ticket, err);
        break;
    default:
        rc = inner->ops->downgrade(inner, ticket, err);
        break;
    }
    /* A call that was made may have been answered, and the ticket be gone. */
    if (rc != 0)
        mine->under_way = 0;
    return rc;
}

/* Refused, and nothing was done. */
static int refuse(struct fault *self, struct fault_ticket *mine,
                  enum hf__fault_call call, int code, hf_error *err)
{
    hf_error why;

    (void)hf__fail(&why, code, "fault: the call fails as ordered");
    if (call == HF__FAULT_ACQUIRE || call == HF__FAULT_PARK) {
        forget(mine);
        hf__up_failed(&self->wrap.base, mine->ticket, &why);
        return 0;
    }
    if (call == HF__FAULT_RENEW)
        return 0; /* silence: the core counts the time */
    return hf__fail_pass(err, &why);
}

static int make_call(struct fault *self, struct fault_ticket *mine,
                     enum hf__fault_call call,
                     const struct hf__fault_verdict *verdict, hf_error *err)
{
    switch (verdict->action) {
    case HF__FAULT_FAIL:
        return refuse(self, mine, call, verdict->code, err);
    case HF__FAULT_CUT:
        if (call != HF__FAULT_RENEW)
            report_unknown(self, mine, "the request was cut");
        return 0;
    case HF__FAULT_LOST:
        mine->reason = HF__LOST_TAKEN;
        take(self, mine);
        return 0;
    case HF__FAULT_DOWN:
        mine->under_way = (uint8_t)(1 + call);
        activate(self, mine);
        break_connection(self, verdict->ms);
        return 0;
    case HF__FAULT_DROP:
        mine->drop = true;
        break;
    default:
        break;
    }
    return pass_down(self, mine, call, err);
}

static int start_call(struct hf__engine *engine, struct hf__ticket *ticket,
                      enum hf__fault_call call, hf_error *err)
{
    struct fault *self = fault_of(engine);
    struct fault_ticket *mine = mine_of(engine, ticket);
    struct hf__fault_verdict verdict;

    if (self->down)
        return hf__fail(err, HF_EUNAVAILABLE, "fault: the connection is down");
    if (mine->taking) {
        if (call == HF__FAULT_RELEASE || call == HF__FAULT_WITHDRAW)
            mine->wanted = (uint8_t)(1 + call);
        return 0;
    }
    mine->silent = false;
    mine->drop = false;
    mine->delayed = 0;
    verdict = hf__fault_judge(&self->script, call);
    if (verdict.delay_ms == 0)
        return make_call(self, mine, call, &verdict, err);
    mine->delayed = (uint8_t)(1 + call);
    mine->verdict = verdict;
    mine->call_ns = hf__instant_add(hf__now(), hf__ms_to_ns(verdict.delay_ms));
    activate(self, mine);
    arm(self);
    return 0;
}

static void make_delayed_call(struct fault *self, struct fault_ticket *mine)
{
    enum hf__fault_call call = mine->delayed - 1U;
    hf_error err;
    int rc;

    mine->delayed = 0;
    rc = make_call(self, mine, call, &mine->verdict, &err);
    if (rc == 0 || call == HF__FAULT_RENEW)
        return;
    if (call == HF__FAULT_ACQUIRE || call == HF__FAULT_PARK) {
        forget(mine);
        hf__up_failed(&self->wrap.base, mine->ticket, &err);
    } else {
        report_unknown(self, mine, err.text);
    }
}

static int connect_now(struct fault *self, hf_error *err);

static void on_timer(struct hf__timer *timer)
{
    struct fault *self = HF_CONTAINER_OF(timer, struct fault, timer);
    int64_t now_ns = hf__now();
    struct fault_ticket *mine;
    hf_error err;

    if (self->connect_ns <= now_ns) {
        self->connect_ns = HF_NEVER;
        if (connect_now(self, &err) != 0)
            hf__up_down(&self->wrap.base, &err);
    }
    while (!self->down && (mine = first_due(self, now_ns)) != NULL) {
        if (mine->delayed && mine->call_ns <= now_ns) {
            make_delayed_call(self, mine);
        } else {
            mine->reason = mine->taking ? mine->reason : HF__LOST_EXPIRED;
            take(self, mine);
        }
    }
    arm(self);
}

#define FAULT_CALL(slot, kind)                                                 \
    static int fault_##slot(struct hf__engine *engine,                         \
                            struct hf__ticket *ticket, hf_error *err)          \
    {                                                                          \
        return start_call(engine, ticket, kind, err);                          \
    }
FAULT_CALL(acquire, HF__FAULT_ACQUIRE)
FAULT_CALL(withdraw, HF__FAULT_WITHDRAW)
FAULT_CALL(release, HF__FAULT_RELEASE)
FAULT_CALL(downgrade, HF__FAULT_DOWNGRADE)
FAULT_CALL(unpark, HF__FAULT_UNPARK)

/* A lock that is being taken away is lost, not given up. */
static int fault_park(struct hf__engine *engine, struct hf__ticket *ticket,
                      struct hf__ticket *old, hf_error *err)
{
    struct fault_ticket *its = mine_of(engine, old);

    if (its->taking)
        return hf__fail(err, HF_ELOST, "fault: the lock is being taken away");
    forget(its);
    mine_of(engine, ticket)->old = old;
    return start_call(engine, ticket, HF__FAULT_PARK, err);
}

static int fault_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    struct fault *self = fault_of(engine);

    if (self->down)
        return hf__fail(err, HF_EUNAVAILABLE, "fault: the connection is down");
    if (!hf__fault_concerns(&self->script, HF__FAULT_RENEW) &&
        !hf__fault_concerns(&self->script, HF__FAULT_HOLD))
        return engine->inner->ops->renew(engine->inner, tickets, n, err);
    /* A call that cannot be started has no answer, which the core notices. */
    for (size_t i = 0; i < n; i++)
        (void)start_call(engine, tickets[i], HF__FAULT_RENEW, err);
    return 0;
}

/* ---- calls of the connection -------------------------------------------- */

static int connect_now(struct fault *self, hf_error *err)
{
    struct hf__engine *inner = self->wrap.base.inner;

    self->down = false;
    if (!self->inner_up)
        return inner->ops->connect(inner, err);
    hf__up_connected(&self->wrap.base);
    arm(self);
    return 0;
}

static int fault_connect(struct hf__engine *engine, hf_error *err)
{
    struct fault *self = fault_of(engine);
    struct hf__fault_verdict verdict =
        hf__fault_judge(&self->script, HF__FAULT_CONNECT);
    hf_error why;

    if (self->down && hf__now() < self->down_until_ns) {
        (void)hf__fail(&why, HF_EUNAVAILABLE, "fault: the connection is down");
        hf__up_down(engine, &why);
        return 0;
    }
    if (verdict.action == HF__FAULT_FAIL) {
        (void)hf__fail(&why, verdict.code, "fault: connecting fails");
        hf__up_down(engine, &why);
        return 0;
    }
    if (verdict.delay_ms == 0)
        return connect_now(self, err);
    self->connect_ns =
        hf__instant_add(hf__now(), hf__ms_to_ns(verdict.delay_ms));
    arm(self);
    return 0;
}

static int fault_open(struct hf__engine *engine, hf_error *err)
{
    struct fault *self = fault_of(engine);
    int rc;

    hf__list_init(&self->active);
    self->connect_ns = HF_NEVER;
    self->timer.fire = on_timer;
    rc = hf__fault_parse(engine->host->settings->fault, &self->script, err);
    if (rc != 0)
        return rc;
    if (!self->script.seeded)
        self->script.random = hf__random_below(UINT64_MAX);
    rc = hf__monitor_timer_user(hf__wrap_client(engine));
    if (rc != 0)
        return hf__fail(err, rc, "fault: out of memory");
    self->timer_reserved = true;
    return hf__wrap_open(engine, &hf__fault_up, err);
}

static void fault_close(struct hf__engine *engine, bool forked)
{
    struct fault *self = fault_of(engine);

    if (self->timer_reserved) {
        hf__timer_stop(engine->host->loop, &self->timer);
        hf__monitor_timer_user_gone(hf__wrap_client(engine));
    }
    hf__wrap_close(engine, forked);
}

static int judge_query(struct fault *self,
                       const struct hf__fault_verdict *verdict, hf_error *err)
{
    if (verdict->action == HF__FAULT_DOWN)
        break_connection(self, verdict->ms);
    if (self->down)
        return hf__fail(err, HF_EUNAVAILABLE, "fault: the connection is down");
    if (verdict->action == HF__FAULT_FAIL)
        return hf__fail(err, verdict->code, "fault: the call fails as ordered");
    return 0;
}

static int fault_signal(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    struct fault *self = fault_of(engine);
    struct hf__fault_verdict verdict =
        hf__fault_judge(&self->script, HF__FAULT_SIGNAL);
    int rc = judge_query(self, &verdict, err);

    if (rc != 0)
        return rc;
    if (verdict.action == HF__FAULT_CUT) {
        (void)hf__fail(err, HF_EUNKNOWN, "fault: the request was cut");
        hf__up_answer(engine, query, HF_EUNKNOWN, err);
        return 0;
    }
    if (verdict.action == HF__FAULT_DROP)
        self->dropped = query;
    return engine->inner->ops->signal(engine->inner, query, err);
}

#define FAULT_QUERY(slot)                                                      \
    static int fault_##slot(struct hf__engine *engine,                         \
                            struct hf__query *query, hf_error *err)            \
    {                                                                          \
        struct fault *self = fault_of(engine);                                 \
        struct hf__fault_verdict verdict =                                     \
            hf__fault_judge(&self->script, HF__FAULT_QUERY);                   \
        int rc = judge_query(self, &verdict, err);                             \
                                                                               \
        return rc != 0 ? rc                                                    \
                       : engine->inner->ops->slot(engine->inner, query, err);  \
    }
FAULT_QUERY(list)
FAULT_QUERY(check_token)
FAULT_QUERY(break_lock)
FAULT_QUERY(version_read)
FAULT_QUERY(version_commit)
FAULT_QUERY(doctor)
FAULT_QUERY(board_post)
FAULT_QUERY(board_read)
FAULT_QUERY(connection)

/* ---- reports up --------------------------------------------------------- */

/* True if the report must be dropped; reports "unknown" where it is due. */
static bool swallow(struct fault *self, struct fault_ticket *mine)
{
    uint8_t call = mine->under_way;

    if (mine->taking || mine->silent || self->down)
        return true;
    mine->under_way = 0;
    if (!mine->drop)
        return false;
    mine->drop = false;
    mine->silent = call != 1 + HF__FAULT_RENEW;
    if (call != 1 + HF__FAULT_RENEW)
        report_unknown(self, mine, "the answer was dropped");
    return true;
}

static void fault_connected(void *owner)
{
    struct fault *self = owner;

    self->inner_up = true;
    hf__wrap_connected(owner);
    if (!self->down)
        hf__up_connected(owner);
}

static void fault_down(void *owner, const hf_error *err)
{
    struct fault *self = owner;

    self->inner_up = false;
    if (!self->down)
        hf__up_down(owner, err);
}

static void fault_granted(void *owner, struct hf__ticket *ticket,
                          const struct hf__grant *grant)
{
    struct fault *self = owner;
    struct fault_ticket *mine = mine_of(owner, ticket);
    struct hf__fault_verdict verdict;

    if (swallow(self, mine))
        return;
    verdict = hf__fault_judge(&self->script, HF__FAULT_HOLD);
    if (verdict.action == HF__FAULT_EXPIRE && mine->take_ns == HF_NEVER) {
        mine->take_ns = hf__instant_add(hf__now(), hf__ms_to_ns(verdict.ms));
        activate(self, mine);
        arm(self);
    }
    hf__up_granted(owner, ticket, grant);
}

static void fault_queued(void *owner, struct hf__ticket *ticket)
{
    if (!swallow(owner, mine_of(owner, ticket)))
        hf__up_queued(owner, ticket);
}

static void fault_parked(void *owner, struct hf__ticket *ticket)
{
    if (!swallow(owner, mine_of(owner, ticket)))
        hf__up_parked(owner, ticket);
}

static void fault_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                       const char *holder)
{
    struct fault_ticket *mine = mine_of(owner, ticket);

    if (swallow(owner, mine))
        return;
    forget(mine);
    hf__up_busy(owner, ticket, again_ns, holder);
}

static void fault_failed(void *owner, struct hf__ticket *ticket,
                         const hf_error *err)
{
    struct fault_ticket *mine = mine_of(owner, ticket);

    if (swallow(owner, mine))
        return;
    forget(mine);
    hf__up_failed(owner, ticket, err);
}

static void fault_unknown(void *owner, struct hf__ticket *ticket,
                          const hf_error *err)
{
    struct fault *self = owner;
    struct fault_ticket *mine = mine_of(owner, ticket);

    if (mine->taking) {
        mine->take_ns = hf__instant_add(hf__now(), AGAIN_MS * HF_MS);
        activate(self, mine);
        arm(self);
        return;
    }
    if (!swallow(self, mine))
        hf__up_unknown(owner, ticket, err);
}

static void fault_renewed(void *owner, struct hf__ticket *ticket,
                          const struct hf__grant *grant)
{
    if (!swallow(owner, mine_of(owner, ticket)))
        hf__up_renewed(owner, ticket, grant);
}

static void fault_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    struct fault_ticket *mine = mine_of(owner, ticket);

    if (swallow(owner, mine))
        return;
    forget(mine);
    hf__up_lost(owner, ticket, reason);
}

static void fault_left(void *owner, struct hf__ticket *ticket, int rc)
{
    struct fault *self = owner;
    struct fault_ticket *mine = mine_of(owner, ticket);

    if (mine->taking) {
        taken(self, mine);
        return;
    }
    if (swallow(self, mine))
        return;
    forget(mine);
    hf__up_left(owner, ticket, rc);
}

static void fault_answer(void *owner, struct hf__query *query, int rc,
                         const hf_error *err)
{
    struct fault *self = owner;
    hf_error dropped;

    if (query == self->dropped) {
        self->dropped = NULL;
        rc = hf__fail(&dropped, HF_EUNKNOWN, "fault: the answer was dropped");
        err = &dropped;
    }
    hf__up_answer(owner, query, rc, err);
}

/* Not connected is not told: the core looks when it is connected again. */
static void fault_changed(void *owner, const char *name)
{
    struct fault *self = owner;

    if (!self->down)
        hf__up_changed(owner, name);
}

const struct hf__engine_up hf__fault_up = HF__ENGINE_UP(fault_);

const struct hf__engine_ops hf__engine_fault = {
    .name = "fault",
    .schemes = "fault",
    .dialects = "",
    .size = sizeof(struct fault),
    .ticket_size = sizeof(struct fault_ticket),
    .open = fault_open,
    .connect = fault_connect,
    .close = fault_close,
    .acquire = fault_acquire,
    .withdraw = fault_withdraw,
    .release = fault_release,
    .renew = fault_renew,
    .downgrade = fault_downgrade,
    .pass = hf__wrap_pass,
    .park = fault_park,
    .unpark = fault_unpark,
    .signal = fault_signal,
    .list = fault_list,
    .check_token = fault_check_token,
    .break_lock = fault_break_lock,
    .version_read = fault_version_read,
    .version_commit = fault_version_commit,
    .doctor = fault_doctor,
    .board_post = fault_board_post,
    .board_read = fault_board_read,
    .connection = fault_connection,
    .finish = hf__wrap_finish,
    .watch = hf__wrap_watch,
    .unwatch = hf__wrap_unwatch,
    .wait = hf__wrap_wait,
    .attend = hf__wrap_attend,
    .kick = hf__wrap_kick,
    .sentry = hf__wrap_sentry,
    .flush = hf__wrap_flush,
};
