/* SPDX-License-Identifier: MIT */
/* check.c - what must be true at every step of the simulation. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>

#include "server.h"

enum {
    CLAIMS_MAX = 64,
    BROKEN_MAX = 256,
    TURN_MAX = 20000,
    STEPS_MAX = 5000000 /* of one seed: a hundred times what they take */
};
/* The margin of a lease is 2 % and 2 ms; the service may grant after that. */
#define TOLD_WITHIN_NS (2 * HF_MS)
#define PROMPT_NS (50 * HF_MS)
/* Threads of one process pass a lock on for ten milliseconds, and what it takes
 * until they know. */
#define PASSED_NS (2 * PROMPT_NS)

bool check_promptness;

static struct claim claims[CLAIMS_MAX];
static uint64_t seen_tokens[SIM_NAMES];
static uint64_t seen_exclusive[SIM_NAMES];
static int teller_busy[SIM_MACHINES];
static int64_t teller_free_ns[SIM_MACHINES];
/* What was broken: tokens from first up to end. */
static struct broken {
    int name;
    uint64_t first;
    uint64_t end;
    int64_t until_ns;
} broken[BROKEN_MAX];
static int n_broken;
static uint32_t steps;
static uint64_t all_steps;
static bool good;
static char why[512];

static void on_broken(int name, uint64_t first, uint64_t end, int64_t until_ns)
{
    broken[n_broken++ % BROKEN_MAX] =
        (struct broken){name, first, end, until_ns};
}

void check_reset(void)
{
    memset(claims, 0, sizeof(claims));
    memset(seen_tokens, 0, sizeof(seen_tokens));
    memset(seen_exclusive, 0, sizeof(seen_exclusive));
    memset(teller_busy, 0, sizeof(teller_busy));
    memset(teller_free_ns, 0, sizeof(teller_free_ns));
    n_broken = 0;
    steps = 0;
    sim_broken = on_broken;
    check_promptness = false;
    good = true;
    why[0] = '\0';
}

bool check_is_good(void)
{
    return good;
}

const char *check_why(void)
{
    return why;
}

void check_fail(const char *format, ...)
{
    va_list args;

    if (!good)
        return;
    good = false;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
}

uint64_t check_token_seen(int name, int mode)
{
    return mode == HF_EXCLUSIVE ? seen_tokens[name] : seen_exclusive[name];
}

static void see_token(int name, int mode, uint64_t token)
{
    if (token > seen_tokens[name])
        seen_tokens[name] = token;
    if (mode == HF_EXCLUSIVE && token > seen_exclusive[name])
        seen_exclusive[name] = token;
}

static int machine_number(const struct claim *claim)
{
    return (int)(claim->machine - sim_machines);
}

void check_teller_busy(struct sim_machine *machine, bool busy)
{
    int i = (int)(machine - sim_machines);

    teller_busy[i] += busy ? 1 : -1;
    teller_free_ns[i] = sim_now();
}

/* ---- new claims --------------------------------------------------------- */

static bool is_reentry(const struct claim *claim)
{
    for (int i = 0; i < CLAIMS_MAX; i++)
        if (claims[i].hold && &claims[i] != claim &&
            claims[i].owner == claim->owner &&
            claims[i].tokens[0] == claim->tokens[0] &&
            claims[i].names[0] == claim->names[0])
            return true;
    return false;
}

/* What was passed on inside the process is left out: members of a multi-lock
 * and forgotten requests hold it, too, without a claim. */
static void check_prompt(const struct claim *claim, int64_t asked_ns)
{
    int64_t granted_ns;
    int64_t late_ns;
    bool first;

    if (!check_promptness || claim->n > 1 ||
        !sim_server_holds(claim->names[0], claim->tokens[0], &granted_ns,
                          &first))
        return;
    late_ns = sim_now() - (asked_ns > granted_ns ? asked_ns : granted_ns);
    if (first && late_ns > PROMPT_NS)
        check_fail("machine %d heard of its grant of lock %d only after %lld "
                   "ms",
                   machine_number(claim), claim->names[0],
                   (long long)(late_ns / HF_MS));
    if (!first && sim_now() - granted_ns > PASSED_NS)
        check_fail("machine %d passes lock %d on since %lld ms",
                   machine_number(claim), claim->names[0],
                   (long long)((sim_now() - granted_ns) / HF_MS));
}

struct claim *check_claim(hf_hold *hold, const struct claim *what,
                          const uint64_t *seen, int64_t asked_ns)
{
    struct claim *claim = claims;

    while (claim->hold)
        claim++;
    *claim = *what;
    claim->hold = hold;
    for (int i = 0; i < claim->n; i++)
        claim->tokens[i] = hf_token_at(hold, (size_t)i);
    /* What was broken may be passed on inside its process, in its range. */
    if (is_reentry(claim) || check_is_broken(claim))
        return claim;
    for (int i = 0; i < claim->n; i++) {
        if (claim->tokens[i] <= seen[i])
            check_fail("lock %d was granted with token %llu after token %llu "
                       "was seen",
                       claim->names[i], (unsigned long long)claim->tokens[i],
                       (unsigned long long)seen[i]);
        see_token(claim->names[i], claim->mode, claim->tokens[i]);
    }
    check_prompt(claim, asked_ns);
    return claim;
}

void check_unclaim(struct claim *claim)
{
    claim->hold = NULL;
}

/* ---- after every step --------------------------------------------------- */

/* Does the program believe that it holds it? */
static bool is_live(struct claim *claim)
{
    int state;

    sim_look_as(claim->machine);
    state = hf_check(claim->hold);
    sim_look_as(NULL);
    if (state == HF_HELD || state == HF_JEOPARDY) {
        if (claim->lost)
            check_fail("machine %d: a lost hold of lock %d says %d again",
                       machine_number(claim), claim->names[0], state);
        return true;
    }
    /* While a machine stands still nobody there can have looked. */
    if (!claim->lost && !claim->machine->frozen && !claim->machine->stopped) {
        claim->lost = true;
        claim->lost_ns = sim_now();
        if (state == HF_RELEASED)
            claim->wants_told = false; /* by closing the client */
    }
    return false;
}

/* A grant of the claim that somebody broke, or NULL. */
static const struct broken *broken_of(const struct claim *claim)
{
    for (int i = 0; i < n_broken && i < BROKEN_MAX; i++)
        for (int j = 0; j < claim->n; j++)
            if (broken[i].name == claim->names[j] &&
                claim->tokens[j] >= broken[i].first &&
                claim->tokens[j] < broken[i].end)
                return &broken[i];
    return NULL;
}

static void check_broken(const struct claim *claim, const struct broken *grant)
{
    if (sim_now() > grant->until_ns)
        check_fail("machine %d believes in token %llu of lock %d, which was "
                   "broken, beyond its lease",
                   machine_number(claim), (unsigned long long)grant->first,
                   grant->name);
}

bool check_is_broken(const struct claim *claim)
{
    return broken_of(claim) != NULL;
}

uint64_t check_draw_token(int name)
{
    uint64_t skip = sim_below(CLAIMS_MAX);

    for (uint64_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &claims[(i + skip) % CLAIMS_MAX];

        for (int j = 0; claim->hold && j < claim->n; j++)
            if (claim->names[j] == name)
                return claim->tokens[j];
    }
    return 0;
}

static bool same_lock(const struct claim *a, const struct claim *b,
                      int *ret_name)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            if (a->names[i] == b->names[j]) {
                *ret_name = a->names[i];
                return true;
            }
    return false;
}

static void check_pair(const struct claim *a, const struct claim *b)
{
    int name;

    if (a->owner == b->owner || !same_lock(a, b, &name))
        return;
    if (a->mode != b->mode || a->mode == HF_EXCLUSIVE)
        check_fail("lock %d is claimed twice: by machine %d (owner %llu, mode "
                   "%d, token %llu) and machine %d (owner %llu, mode %d, "
                   "token %llu)",
                   name, machine_number(a), (unsigned long long)a->owner,
                   a->mode, (unsigned long long)a->tokens[0], machine_number(b),
                   (unsigned long long)b->owner, b->mode,
                   (unsigned long long)b->tokens[0]);
}

/* No owner re-enters a slot while others are counted: their handles have one
 * token. */
static void check_slots(const struct claim *claim, struct claim *const *live,
                        int n)
{
    int count = 1;

    for (int i = 0; i < n && claim->mode == HF_SLOT; i++)
        count += live[i]->mode == HF_SLOT && live[i]->owner != claim->owner &&
                 live[i]->names[0] == claim->names[0] && !is_reentry(live[i]);
    if (claim->mode == HF_SLOT && count > claim->slots)
        check_fail("lock %d has %d holders, and only %d slots", claim->names[0],
                   count, claim->slots);
}

static void check_truth(const struct claim *claim)
{
    int64_t granted_ns;
    bool first;

    for (int i = 0; i < claim->n; i++)
        if (!sim_server_holds(claim->names[i], claim->tokens[i], &granted_ns,
                              &first))
            check_fail("machine %d believes to hold lock %d (mode %d) under "
                       "token %llu, and the service does not",
                       machine_number(claim), claim->names[i], claim->mode,
                       (unsigned long long)claim->tokens[i]);
}

static void check_told(const struct claim *claim)
{
    int i = machine_number(claim);
    int64_t since_ns = claim->lost_ns;

    if (!claim->lost || !claim->wants_told || claim->told ||
        claim->machine->frozen || teller_busy[i] > 0)
        return;
    if (claim->machine->thawed_ns > since_ns)
        since_ns = claim->machine->thawed_ns;
    if (teller_free_ns[i] > since_ns)
        since_ns = teller_free_ns[i];
    if (sim_now() - since_ns > TOLD_WITHIN_NS)
        check_fail("machine %d was not told that it lost lock %d (%d locks, "
                   "token %llu)",
                   i, claim->names[0], claim->n,
                   (unsigned long long)claim->tokens[0]);
}

uint64_t check_steps(void)
{
    return all_steps;
}

bool check_step(void)
{
    struct claim *live[CLAIMS_MAX];
    int n = 0;

    all_steps++;
    if (++steps > STEPS_MAX)
        check_fail("no end after %u steps", steps);
    for (int i = 0; i < CLAIMS_MAX && good; i++) {
        if (!claims[i].hold)
            continue;
        if (!is_live(&claims[i]))
            check_told(&claims[i]);
        else if (broken_of(&claims[i]))
            check_broken(&claims[i], broken_of(&claims[i]));
        else
            live[n++] = &claims[i];
    }
    if (sim_longest_turn() > TURN_MAX)
        check_fail("a thread has asked for the time %u times in one turn",
                   sim_longest_turn());
    for (int i = 0; i < n && good; i++) {
        check_truth(live[i]);
        check_slots(live[i], live, n);
        for (int j = 0; j < i; j++)
            check_pair(live[i], live[j]);
    }
    return good;
}
