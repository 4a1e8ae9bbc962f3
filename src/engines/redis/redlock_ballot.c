/* SPDX-License-Identifier: MIT */
/*
 * redlock_ballot.c - one request, cast at all nodes.
 *
 * A ballot has a paper: a ticket of our own, which is what the nodes see. The
 * core's ticket is answered as soon as the outcome is certain by majority; the
 * paper lives on until no node has anything of it, also those that answer late
 * or come back later. So one stopped server costs nobody time, and gets back
 * what it was given.
 *
 *   ASKING ──majority──▶ HELD ──release──▶ RELEASING ──▶ freed
 *      │                  └──withdraw, loss──▶ WITHDRAWING ──▶ freed
 *      └──none possible, or withdrawn────────▲
 *
 * A ballot whose answer the core did not hear is ASKING again.
 *
 * Each attempt is a new ballot. What a failed one got is taken back before the
 * core hears "busy", on the same connections on which it will ask again: our
 * own leftovers are never in our way.
 *
 * RENEWING. A majority of the nodes that voted for us has to say "renewed".
 * With each renewal the nodes that have no vote of ours are asked as well (they
 * were away, or restarted), so that a lock held for long outlives restarts of
 * all of them, one after the other; such a vote counts from the next time on. A
 * lock that has lost the majority of its votes is lost, at once.
 *
 * Reports of a node may come from inside the call: votes are noted, and judged
 * after the call returns.
 */
#include <stdio.h>

#include "engines/redis/redlock.h"
#include "engines/redis/tickets.h"

enum stage { ASKING, HELD, RELEASING, WITHDRAWING };

struct hf__redlock_ballot {
    struct hf__ticket paper; /* the nodes' bytes follow the ballot */
    struct hf__redlock *redlock;
    struct hf__ticket *ticket; /* the core's; NULL: it has been answered */
    struct hf__list link;
    struct hf__list waiting; /* in redlock->impatient */
    int64_t cast_ns;         /* before the first node was asked */
    int64_t renew_ns;        /* the same of the renewal; 0: none */
    int64_t wait_ns;         /* for answers no longer than this */
    int64_t sent_ns;         /* what could make it live longer, last */
    uint8_t stage;
    bool calling;     /* a node; the votes are judged after it */
    bool overdue;     /* node_timeout has passed */
    uint16_t renewed; /* nodes that have renewed, by bit */
    uint8_t votes[HF__REDLOCK_NODES];
};

static struct hf__redlock_ballot *ballot_of(struct hf__ticket *paper)
{
    return HF_CONTAINER_OF(paper, struct hf__redlock_ballot, paper);
}

static struct hf__redlock_ticket *mine(struct hf__redlock *redlock,
                                       struct hf__ticket *ticket)
{
    return hf__engine_ticket(&redlock->base, ticket);
}

static struct hf__engine *engine_at(struct hf__redlock *redlock, uint32_t i)
{
    return &redlock->nodes[i].redis->base;
}

/* ---- stages -------------------------------------------------------------- */

#define STEP(stage) (1u << (stage))

static const uint8_t steps[] = {
    [ASKING] = STEP(ASKING) | STEP(HELD) | STEP(RELEASING) | STEP(WITHDRAWING),
    [HELD] = STEP(ASKING) | STEP(RELEASING) | STEP(WITHDRAWING),
    [RELEASING] = STEP(RELEASING) | STEP(WITHDRAWING),
    [WITHDRAWING] = STEP(WITHDRAWING),
};

static void stage_to(struct hf__redlock_ballot *ballot, enum stage stage)
{
    assert(steps[ballot->stage] & STEP(stage));
    ballot->stage = (uint8_t)stage;
}

static bool leaves(const struct hf__redlock_ballot *ballot)
{
    return ballot->stage >= RELEASING;
}

/* ---- votes --------------------------------------------------------------- */

#define MAY(vote) (1u << HF__VOTE_##vote)

static const uint8_t moves[] = {
    [HF__VOTE_NONE] = MAY(NONE) | MAY(ASKED),
    [HF__VOTE_ASKED] =
        MAY(NONE) | MAY(ASKED) | MAY(YES) | MAY(NO) | MAY(DOUBT) | MAY(LEAVING),
    [HF__VOTE_YES] =
        MAY(NONE) | MAY(ASKED) | MAY(YES) | MAY(DOUBT) | MAY(LEAVING),
    [HF__VOTE_NO] = MAY(ASKED),
    [HF__VOTE_DOUBT] =
        MAY(NONE) | MAY(ASKED) | MAY(YES) | MAY(NO) | MAY(DOUBT) | MAY(LEAVING),
    [HF__VOTE_LEAVING] = MAY(NONE) | MAY(OWED) | MAY(WAS),
    [HF__VOTE_OWED] = MAY(NONE) | MAY(LEAVING),
    [HF__VOTE_WAS] = 0,
};

static void vote_to(struct hf__redlock_ballot *ballot, size_t i,
                    enum hf__redlock_vote vote)
{
    assert(moves[ballot->votes[i]] & (1u << vote));
    ballot->votes[i] = (uint8_t)vote;
}

static uint32_t count(const struct hf__redlock_ballot *ballot, int vote)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ballot->redlock->n; i++)
        n += ballot->votes[i] == vote;
    return n;
}

/* ---- votes for people -------------------------------------------------- */

static void add_vote(const struct hf__redlock_ballot *ballot, uint32_t i,
                     char *to, size_t size)
{
    const struct hf__redlock_node *node = &ballot->redlock->nodes[i];
    char excuse[80];

    switch (ballot->votes[i]) {
    case HF__VOTE_YES:
        (void)snprintf(to, size, "%s yes", node->name);
        break;
    case HF__VOTE_NO:
        (void)snprintf(to, size, "%s no", node->name);
        break;
    case HF__VOTE_ASKED:
        (void)snprintf(to, size, "%s silent", node->name);
        break;
    default:
        hf__redlock_node_excuse(node, excuse, sizeof(excuse));
        (void)snprintf(to, size, "%s %s", node->name, excuse);
    }
}

/* "db1:6379 yes, db2:6379 no, db3:6379 away" */
static const char *read_out(const struct hf__redlock_ballot *ballot,
                            char text[HF__REDLOCK_VOTES])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < ballot->redlock->n; i++) {
        if (used > 0 && used + 2 < HF__REDLOCK_VOTES)
            used +=
                (size_t)snprintf(text + used, HF__REDLOCK_VOTES - used, ", ");
        add_vote(ballot, i, text + used, HF__REDLOCK_VOTES - used);
        used += strlen(text + used);
    }
    return text;
}

/* ---- making and ending ------------------------------------------------- */

static size_t round_up(size_t size)
{
    return (size + 15) / 16 * 16;
}

size_t hf__redlock_ballot_offset(size_t index)
{
    return round_up(sizeof(struct hf__redlock_ballot)) +
           index * round_up(hf__engine_redis.ticket_size);
}

static void be_patient(struct hf__redlock_ballot *ballot)
{
    struct hf__redlock *redlock = ballot->redlock;
    const struct hf__engine_host *host = redlock->base.host;

    ballot->overdue = false;
    ballot->wait_ns =
        hf__now() + hf__ms_to_ns(redlock->settings.node_timeout_ms);
    hf__list_remove(&ballot->waiting);
    hf__list_append(&redlock->impatient, &ballot->waiting);
    if (!hf__timer_running(&redlock->patience))
        host->timer(host, &redlock->patience, ballot->wait_ns);
}

static struct hf__redlock_ballot *ballot_new(struct hf__redlock *redlock,
                                             struct hf__ticket *ticket)
{
    struct hf__redlock_ballot *ballot = hf__calloc(1, redlock->ballot_size);

    if (!ballot)
        return NULL;
    ballot->redlock = redlock;
    ballot->ticket = ticket;
    ballot->paper.id = ++redlock->ballots_made;
    ballot->paper.name = ticket->name;
    ballot->paper.name_len = ticket->name_len;
    ballot->paper.owner = ticket->owner;
    ballot->paper.note = ticket->note;
    ballot->paper.mode = ticket->mode;
    ballot->paper.ttl_ms = ticket->ttl_ms;
    ballot->paper.reserve = 1;
    ballot->paper.nowait = true;
    hf__list_init(&ballot->waiting);
    hf__list_append(&redlock->ballots, &ballot->link);
    mine(redlock, ticket)->ballot = ballot;
    return ballot;
}

/* The core's ticket is answered, and may be gone after the next report. Its
 * texts are not needed any more: a paper is only taken back. */
static struct hf__ticket *detach(struct hf__redlock_ballot *ballot)
{
    struct hf__ticket *ticket = ballot->ticket;

    mine(ballot->redlock, ticket)->ballot = NULL;
    ballot->ticket = NULL;
    ballot->paper.name = "";
    ballot->paper.name_len = 0;
    ballot->paper.owner = "";
    ballot->paper.note = "";
    return ticket;
}

static void ballot_free(struct hf__redlock_ballot *ballot)
{
    hf__list_remove(&ballot->link);
    hf__list_remove(&ballot->waiting);
    hf__free(ballot);
}

/* Free it when nobody knows of it any more. */
static void tidy(struct hf__redlock_ballot *ballot)
{
    if (!ballot->ticket &&
        count(ballot, HF__VOTE_LEAVING) + count(ballot, HF__VOTE_OWED) == 0)
        ballot_free(ballot);
}

/* ---- leaving ----------------------------------------------------------- */

static void take_back_at(struct hf__redlock_ballot *ballot, uint32_t i)
{
    struct hf__engine *engine = engine_at(ballot->redlock, i);
    int rc;

    vote_to(ballot, i, HF__VOTE_LEAVING);
    rc = ballot->stage == RELEASING
             ? engine->ops->release(engine, &ballot->paper, /* err= */ NULL)
             : engine->ops->withdraw(engine, &ballot->paper, /* err= */ NULL);
    if (rc != 0)
        vote_to(ballot, i, HF__VOTE_OWED);
}

/* From every node that may have something of it. */
static void take_back(struct hf__redlock_ballot *ballot, enum stage stage)
{
    stage_to(ballot, stage);
    ballot->calling = true;
    for (uint32_t i = 0; i < ballot->redlock->n; i++) {
        switch (ballot->votes[i]) {
        case HF__VOTE_ASKED:
        case HF__VOTE_YES:
        case HF__VOTE_DOUBT:
        case HF__VOTE_OWED:
            take_back_at(ballot, i);
            break;
        default:
            break;
        }
    }
    ballot->calling = false;
}

/* ---- judging ----------------------------------------------------------- */

static void judge_asking(struct hf__redlock_ballot *ballot)
{
    struct hf__redlock *redlock = ballot->redlock;
    struct hf__redlock_tally tally = {
        .yes = count(ballot, HF__VOTE_YES),
        .no = count(ballot, HF__VOTE_NO),
        .open = count(ballot, HF__VOTE_ASKED),
    };
    enum hf__redlock_verdict verdict;
    struct hf__grant grant = {.tokens = 1,
                              .lease_ms = ballot->paper.ttl_ms,
                              .sent_ns = ballot->cast_ns};
    struct hf__ticket *ticket;
    char votes[HF__REDLOCK_VOTES];
    hf_error err;

    tally.out = redlock->n - tally.yes - tally.no - tally.open;
    verdict = hf__redlock_quorum_ask(&tally);
    if (verdict == HF__REDLOCK_OPEN)
        return;
    hf__list_remove(&ballot->waiting);
    grant.by = read_out(ballot, votes);
    if (verdict == HF__REDLOCK_WON) {
        stage_to(ballot, HELD);
        hf__up_granted(&redlock->base, ballot->ticket, &grant);
        return;
    }
    ticket = detach(ballot);
    take_back(ballot, WITHDRAWING);
    tidy(ballot);
    if (verdict == HF__REDLOCK_BUSY) {
        hf__up_busy(&redlock->base, ticket, /* again_ns= */ 0, votes);
    } else {
        hf__redlock_node_no_majority(redlock, &err);
        hf__up_failed(&redlock->base, ticket, &err);
    }
}

static void judge_held(struct hf__redlock_ballot *ballot)
{
    struct hf__redlock *redlock = ballot->redlock;
    struct hf__grant grant = {.tokens = 1,
                              .lease_ms = ballot->paper.ttl_ms,
                              .sent_ns = ballot->renew_ns};
    struct hf__ticket *ticket;
    char votes[HF__REDLOCK_VOTES];

    if (count(ballot, HF__VOTE_YES) < redlock->quorum) {
        ticket = detach(ballot);
        take_back(ballot, WITHDRAWING);
        tidy(ballot);
        hf__up_lost(&redlock->base, ticket, HF__LOST_TAKEN);
    } else if (ballot->renew_ns != 0 &&
               (uint32_t)__builtin_popcount(ballot->renewed) >=
                   redlock->quorum) {
        ballot->renew_ns = 0;
        grant.by = read_out(ballot, votes);
        hf__up_renewed(&redlock->base, ballot->ticket, &grant);
    }
}

static void judge_leaving(struct hf__redlock_ballot *ballot)
{
    struct hf__redlock *redlock = ballot->redlock;
    uint32_t leaving = count(ballot, HF__VOTE_LEAVING);
    struct hf__redlock_tally tally = {
        .yes = count(ballot, HF__VOTE_WAS),
        .open = ballot->overdue ? 0 : leaving,
        .out = count(ballot, HF__VOTE_OWED) + (ballot->overdue ? leaving : 0),
    };
    enum hf__redlock_verdict verdict;
    struct hf__ticket *ticket;
    hf_error err;

    if (ballot->ticket) {
        tally.no = redlock->n - tally.yes - tally.open - tally.out;
        verdict =
            hf__redlock_quorum_release(&tally, ballot->stage == RELEASING);
        if (verdict == HF__REDLOCK_OPEN)
            return;
        hf__list_remove(&ballot->waiting);
        if (verdict == HF__REDLOCK_UNKNOWN) {
            hf__redlock_node_no_majority(redlock, &err);
            hf__up_unknown(&redlock->base, ballot->ticket, &err);
            return;
        }
        ticket = detach(ballot);
        tidy(ballot);
        hf__up_left(&redlock->base, ticket,
                    verdict == HF__REDLOCK_LOST ? HF_ELOST : 0);
        return;
    }
    tidy(ballot);
}

/* The ballot, and its ticket, may be gone afterwards. */
static void judge(struct hf__redlock_ballot *ballot)
{
    if (ballot->calling)
        return;
    if (ballot->stage == ASKING)
        judge_asking(ballot);
    else if (ballot->stage == HELD)
        judge_held(ballot);
    else
        judge_leaving(ballot);
}

/* Who has not answered by now is late, and decides nothing. */
static void write_off(struct hf__redlock_ballot *ballot)
{
    struct hf__redlock *redlock = ballot->redlock;

    ballot->overdue = true;
    for (uint32_t i = 0; i < redlock->n; i++) {
        bool silent = ballot->votes[i] == HF__VOTE_ASKED ||
                      ballot->votes[i] == HF__VOTE_LEAVING;

        if (silent && redlock->nodes[i].state == HF__PEER_UP)
            redlock->nodes[i].state = HF__PEER_LATE;
        if (ballot->votes[i] == HF__VOTE_ASKED)
            vote_to(ballot, i, HF__VOTE_DOUBT);
    }
    judge(ballot);
}

static void patience_fire(struct hf__timer *timer)
{
    struct hf__redlock *redlock =
        HF_CONTAINER_OF(timer, struct hf__redlock, patience);
    const struct hf__engine_host *host = redlock->base.host;
    struct hf__list *link;

    while ((link = hf__list_first(&redlock->impatient)) != NULL) {
        struct hf__redlock_ballot *ballot =
            HF_CONTAINER_OF(link, struct hf__redlock_ballot, waiting);

        if (ballot->wait_ns > hf__now()) {
            host->timer(host, timer, ballot->wait_ns);
            return;
        }
        hf__list_remove(link);
        write_off(ballot);
    }
}

/* ---- calls of the core -------------------------------------------------- */

static int ask_at(struct hf__redlock_ballot *ballot, uint32_t i)
{
    struct hf__engine *engine = engine_at(ballot->redlock, i);
    uint8_t before = ballot->votes[i];

    if (hf__redlock_node_look(&ballot->redlock->nodes[i]) != 0)
        return HF_ENOMEM;
    vote_to(ballot, i, HF__VOTE_ASKED);
    if (engine->ops->acquire(engine, &ballot->paper, /* err= */ NULL) == 0)
        return 0;
    ballot->votes[i] = before; /* nothing was asked */
    return HF_ENOMEM;
}

static uint32_t voters(const struct hf__redlock *redlock)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < redlock->n; i++)
        n += hf__redlock_node_votes(&redlock->nodes[i]);
    return n;
}

static void remember_lease(struct hf__redlock *redlock, int64_t ttl_ms)
{
    int64_t lease_ms = ttl_ms + redlock->settings.lock_delay_ms;

    if (lease_ms > redlock->longest_ms)
        redlock->longest_ms = lease_ms;
    if (ttl_ms < redlock->shortest_ms)
        redlock->shortest_ms = ttl_ms;
}

int hf__redlock_ballot_acquire(struct hf__engine *engine,
                               struct hf__ticket *ticket, hf_error *err)
{
    struct hf__redlock *redlock = (struct hf__redlock *)engine;
    struct hf__redlock_ballot *ballot;

    remember_lease(redlock, ticket->ttl_ms);
    if (voters(redlock) < redlock->quorum) {
        hf__redlock_node_no_majority(redlock, err);
        return HF_EUNAVAILABLE;
    }
    ballot = mine(redlock, ticket)->ballot; /* our answer was not heard */
    if (!ballot)
        ballot = ballot_new(redlock, ticket);
    if (!ballot)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    stage_to(ballot, ASKING);
    ballot->cast_ns = ballot->sent_ns = hf__now();
    ballot->calling = true;
    for (uint32_t i = 0; i < redlock->n; i++) {
        if (hf__redlock_node_votes(&redlock->nodes[i]))
            (void)ask_at(ballot, i);
    }
    ballot->calling = false;
    be_patient(ballot);
    judge(ballot);
    hf__redlock_count(redlock);
    return 0;
}

static int leave(struct hf__engine *engine, struct hf__ticket *ticket,
                 enum stage stage)
{
    struct hf__redlock *redlock = (struct hf__redlock *)engine;
    struct hf__redlock_ballot *ballot = mine(redlock, ticket)->ballot;

    if (!ballot) {
        hf__up_left(engine, ticket, stage == RELEASING ? HF_ELOST : 0);
        return 0;
    }
    take_back(ballot, stage);
    be_patient(ballot);
    judge(ballot);
    hf__redlock_count(redlock);
    return 0;
}

int hf__redlock_ballot_withdraw(struct hf__engine *engine,
                                struct hf__ticket *ticket, hf_error *err)
{
    (void)err;
    return leave(engine, ticket, WITHDRAWING);
}

int hf__redlock_ballot_release(struct hf__engine *engine,
                               struct hf__ticket *ticket, hf_error *err)
{
    (void)err;
    return leave(engine, ticket, RELEASING);
}

/* The nodes that have no vote of ours are asked for one. */
static void canvass(struct hf__redlock_ballot *ballot)
{
    struct hf__redlock *redlock = ballot->redlock;

    for (uint32_t i = 0; i < redlock->n; i++) {
        bool missing = ballot->votes[i] == HF__VOTE_NONE ||
                       ballot->votes[i] == HF__VOTE_NO ||
                       ballot->votes[i] == HF__VOTE_DOUBT;

        if (missing && hf__redlock_node_votes(&redlock->nodes[i]))
            (void)ask_at(ballot, i);
    }
}

static void renew_at(struct hf__redlock *redlock, uint32_t i,
                     struct hf__ticket **tickets, size_t n)
{
    struct hf__engine *engine = engine_at(redlock, i);
    struct hf__ticket *papers[HF__REDIS_RENEWALS];
    size_t used = 0;

    for (size_t t = 0; t < n; t++) {
        struct hf__redlock_ballot *ballot = mine(redlock, tickets[t])->ballot;

        if (ballot && ballot->stage == HELD && ballot->votes[i] == HF__VOTE_YES)
            papers[used++] = &ballot->paper;
        if (used == HF_COUNT_OF(papers) || (used > 0 && t + 1 == n)) {
            (void)engine->ops->renew(engine, papers, used, /* err= */ NULL);
            used = 0;
        }
    }
}

int hf__redlock_ballot_renew(struct hf__engine *engine,
                             struct hf__ticket **tickets, size_t n,
                             hf_error *err)
{
    struct hf__redlock *redlock = (struct hf__redlock *)engine;
    int64_t now_ns = hf__now();

    (void)err;
    for (size_t t = 0; t < n; t++) {
        struct hf__redlock_ballot *ballot = mine(redlock, tickets[t])->ballot;

        if (!ballot || ballot->stage != HELD)
            continue;
        ballot->renew_ns = ballot->sent_ns = now_ns;
        ballot->renewed = 0;
        canvass(ballot);
    }
    for (uint32_t i = 0; i < redlock->n; i++) {
        if (redlock->nodes[i].state >= HF__PEER_UP)
            renew_at(redlock, i, tickets, n);
    }
    hf__redlock_count(redlock);
    return 0;
}

/* ---- reports of the nodes ----------------------------------------------- */

static void set_vote(struct hf__redlock_node *node, struct hf__ticket *paper,
                     enum hf__redlock_vote vote)
{
    struct hf__redlock_ballot *ballot = ballot_of(paper);

    vote_to(ballot, node->index, vote);
    judge(ballot);
}

static void on_granted(void *owner, struct hf__ticket *paper,
                       const struct hf__grant *grant)
{
    struct hf__redlock_node *node = owner;

    (void)grant;
    hf__redlock_node_heard(node);
    if (!leaves(ballot_of(paper)))
        set_vote(node, paper,
                 hf__redlock_node_quarantined(node) ? HF__VOTE_DOUBT
                                                    : HF__VOTE_YES);
}

static void on_busy(void *owner, struct hf__ticket *paper, int64_t again_ns,
                    const char *holder)
{
    (void)again_ns;
    (void)holder;
    hf__redlock_node_heard(owner);
    set_vote(owner, paper, HF__VOTE_NO);
}

static void on_failed(void *owner, struct hf__ticket *paper,
                      const hf_error *err)
{
    struct hf__redlock_node *node = owner;

    hf__redlock_node_heard(node);
    node->err = *err;
    set_vote(node, paper, HF__VOTE_NONE);
}

static void on_unknown(void *owner, struct hf__ticket *paper,
                       const hf_error *err)
{
    struct hf__redlock_ballot *ballot = ballot_of(paper);

    (void)err;
    set_vote(owner, paper, leaves(ballot) ? HF__VOTE_OWED : HF__VOTE_DOUBT);
}

static void on_renewed(void *owner, struct hf__ticket *paper,
                       const struct hf__grant *grant)
{
    struct hf__redlock_node *node = owner;
    struct hf__redlock_ballot *ballot = ballot_of(paper);

    hf__redlock_node_heard(node);
    if (ballot->stage != HELD || ballot->renew_ns == 0 ||
        grant->sent_ns < ballot->renew_ns)
        return;
    ballot->renewed = (uint16_t)(ballot->renewed | 1u << node->index);
    judge(ballot);
}

static void on_lost(void *owner, struct hf__ticket *paper, int reason)
{
    (void)reason;
    hf__redlock_node_heard(owner);
    set_vote(owner, paper, HF__VOTE_NONE);
}

static void on_left(void *owner, struct hf__ticket *paper, int rc)
{
    hf__redlock_node_heard(owner);
    set_vote(owner, paper, rc == 0 ? HF__VOTE_WAS : HF__VOTE_NONE);
}

static void on_answer(void *owner, struct hf__query *query, int rc,
                      const hf_error *err)
{
    hf__redlock_node_heard(owner);
    hf__redlock_doctor_answered(owner, query, rc, err);
}

static void on_connected(void *owner)
{
    hf__redlock_node_connected(owner);
}

static void on_down(void *owner, const hf_error *err)
{
    hf__redlock_node_down(owner, err);
}

const struct hf__engine_up hf__redlock_ballot_reports = {
    .connected = on_connected,
    .down = on_down,
    .granted = on_granted,
    .queued = NULL, /* plain never queues */
    .busy = on_busy,
    .failed = on_failed,
    .unknown = on_unknown,
    .renewed = on_renewed,
    .lost = on_lost,
    .left = on_left,
    .answer = on_answer,
};

/* ---- all of them --------------------------------------------------------- */

void hf__redlock_ballot_init(struct hf__redlock *redlock)
{
    hf__list_init(&redlock->ballots);
    hf__list_init(&redlock->impatient);
    redlock->patience.fire = patience_fire;
}

void hf__redlock_ballot_settle(struct hf__redlock_node *node)
{
    HF_LIST_EACH(&node->redlock->ballots, link) {
        struct hf__redlock_ballot *ballot =
            HF_CONTAINER_OF(link, struct hf__redlock_ballot, link);

        if (leaves(ballot) && ballot->votes[node->index] == HF__VOTE_OWED) {
            ballot->calling = true;
            take_back_at(ballot, (uint32_t)node->index);
            ballot->calling = false;
            tidy(ballot);
        }
    }
}

void hf__redlock_ballot_sweep(struct hf__redlock_node *node)
{
    int64_t now_ns = hf__now();

    HF_LIST_EACH(&node->redlock->ballots, link) {
        struct hf__redlock_ballot *ballot =
            HF_CONTAINER_OF(link, struct hf__redlock_ballot, link);
        int64_t lease_ms =
            ballot->paper.ttl_ms + node->redlock->settings.lock_delay_ms;

        if (ballot->ticket || ballot->votes[node->index] != HF__VOTE_OWED ||
            now_ns < hf__instant_add(ballot->sent_ns, hf__ms_to_ns(lease_ms)))
            continue;
        hf__redis_tickets_forget(node->redis, &ballot->paper);
        vote_to(ballot, node->index, HF__VOTE_NONE);
        tidy(ballot);
    }
}

void hf__redlock_ballot_free_all(struct hf__redlock *redlock)
{
    struct hf__list *link;

    while ((link = hf__list_first(&redlock->ballots)) != NULL)
        ballot_free(HF_CONTAINER_OF(link, struct hf__redlock_ballot, link));
}
