/* SPDX-License-Identifier: MIT */
/*
 * What hf__deadlock_solve() calls stuck, against a run to the end: owners that
 * do not wait release everything, the next in line is served, until nothing
 * moves. Owners that still wait then, and hold something, are stuck.
 */
#include "core/deadlock.h"

#include "test.h"

enum { OWNERS = 6, NAMES = 4, STATES = 200000 };

struct place {
    int owner;
    int mode;
};

struct state {
    int names;
    int owners;
    int slots;
    int held[NAMES][OWNERS]; /* the mode; -1: not held */
    struct place line[NAMES][OWNERS];
    int line_n[NAMES];
    int waits_for[OWNERS]; /* a name; -1: it runs */
};

static uint64_t seed;

static int below(int bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)(seed % (uint64_t)bound);
}

static bool fits(const struct state *state, int name, int mode)
{
    int n = 0;

    for (int i = 0; i < state->owners; i++) {
        int held = state->held[name][i];

        if (held < 0)
            continue;
        n++;
        if (held != mode || mode == HF_EXCLUSIVE)
            return false;
    }
    return mode != HF_SLOT || n < state->slots;
}

static void ask(struct state *state, int owner, int name, int mode)
{
    if (state->waits_for[owner] >= 0 || state->held[name][owner] >= 0)
        return;
    if (state->line_n[name] == 0 && fits(state, name, mode)) {
        state->held[name][owner] = mode;
        return;
    }
    state->line[name][state->line_n[name]++] =
        (struct place){.owner = owner, .mode = mode};
    state->waits_for[owner] = name;
}

static void make(struct state *state)
{
    static const int modes[] = {HF_EXCLUSIVE, HF_EXCLUSIVE, HF_SHARED, HF_SLOT};

    state->names = 2 + below(NAMES - 1);
    state->owners = 2 + below(OWNERS - 1);
    state->slots = 1 + below(3);
    memset(state->line_n, 0, sizeof(state->line_n));
    for (int i = 0; i < OWNERS; i++) {
        state->waits_for[i] = -1;
        for (int name = 0; name < NAMES; name++)
            state->held[name][i] = -1;
    }
    for (int i = 0; i < 25; i++)
        ask(state, below(state->owners), below(state->names), modes[below(4)]);
}

static bool holds(const struct state *state, int owner)
{
    for (int name = 0; name < state->names; name++) {
        if (state->held[name][owner] >= 0)
            return true;
    }
    return false;
}

/* ---- the run to the end --------------------------------------------------- */

static bool release(struct state *state, int name)
{
    bool moved = false;

    for (int i = 0; i < state->owners; i++) {
        if (state->held[name][i] >= 0 && state->waits_for[i] < 0) {
            state->held[name][i] = -1;
            moved = true;
        }
    }
    return moved;
}

static bool serve(struct state *state, int name)
{
    struct place *line = state->line[name];
    bool moved = false;

    while (state->line_n[name] > 0 && fits(state, name, line[0].mode)) {
        state->held[name][line[0].owner] = line[0].mode;
        state->waits_for[line[0].owner] = -1;
        state->line_n[name]--;
        memmove(line, line + 1, (size_t)state->line_n[name] * sizeof(*line));
        moved = true;
    }
    return moved;
}

static void run_to_the_end(struct state *state)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (int name = 0; name < state->names; name++) {
            moved |= release(state, name);
            moved |= serve(state, name);
        }
    }
}

/* ---- the look -------------------------------------------------------------- */

struct members {
    int number[OWNERS]; /* of an owner; HF__DEADLOCK_NOBODY */
};

static size_t rows_of(const struct state *state, const struct members *members,
                      int owner, int *ret_mode, struct hf__deadlock_row *rows)
{
    int name = state->waits_for[owner];
    size_t n = 0;

    for (int i = 0; i < state->owners; i++) {
        if (state->held[name][i] >= 0)
            rows[n++] = (struct hf__deadlock_row){.role = HF_HOLDER,
                                                  .mode = state->held[name][i],
                                                  .member = members->number[i]};
    }
    for (int i = 0; state->line[name][i].owner != owner; i++)
        rows[n++] = (struct hf__deadlock_row){
            .role = HF_WAITER, .mode = state->line[name][i].mode};
    for (int i = 0; i < state->line_n[name]; i++) {
        if (state->line[name][i].owner == owner)
            *ret_mode = state->line[name][i].mode;
    }
    return n;
}

static void look(const struct state *state, struct members *members,
                 struct hf__deadlock *deadlock)
{
    struct hf__deadlock_row rows[2 * OWNERS];

    deadlock->n = 0;
    for (int i = 0; i < state->owners; i++)
        members->number[i] = state->waits_for[i] >= 0 && holds(state, i)
                                 ? (int)deadlock->n++
                                 : HF__DEADLOCK_NOBODY;
    for (int i = 0; i < state->owners; i++) {
        int mode = HF_EXCLUSIVE;
        size_t n;

        if (members->number[i] == HF__DEADLOCK_NOBODY)
            continue;
        n = rows_of(state, members, i, &mode, rows);
        hf__deadlock_rows(deadlock, (uint32_t)members->number[i], mode, rows,
                          n);
    }
    hf__deadlock_solve(deadlock);
}

static void check_cycle(const struct hf__deadlock *deadlock, uint32_t number)
{
    uint16_t cycle[HF__DEADLOCK_MEMBERS];
    uint32_t n = hf__deadlock_cycle(deadlock, number, cycle);

    for (uint32_t i = 0; i < n; i++) {
        ASSERT_TRUE(hf__deadlock_has(&deadlock->stuck, cycle[i]));
        ASSERT_TRUE(hf__deadlock_has(&deadlock->members[cycle[i]].holders,
                                     cycle[(i + 1) % n]));
        for (uint32_t j = 0; j < i; j++)
            ASSERT_TRUE(cycle[i] != cycle[j]);
    }
    ASSERT_TRUE(n == 0 || cycle[0] == number);
}

TEST(deadlock, stuck_is_what_a_run_to_the_end_leaves)
{
    static struct hf__deadlock deadlock;
    int deadlocks = 0;

    for (int i = 1; i <= STATES; i++) {
        struct members members;
        struct state state;
        bool stuck = false;

        seed = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
        make(&state);
        look(&state, &members, &deadlock);
        run_to_the_end(&state);
        for (int owner = 0; owner < state.owners; owner++) {
            int number = members.number[owner];
            bool left = number != HF__DEADLOCK_NOBODY &&
                        state.waits_for[owner] >= 0 && holds(&state, owner);

            if (number == HF__DEADLOCK_NOBODY)
                continue;
            if (left != hf__deadlock_has(&deadlock.stuck, (uint32_t)number))
                FAIL("state %d: owner %d is %s", i, owner,
                     left ? "missed" : "called stuck, and is not");
            stuck |= left;
            check_cycle(&deadlock, (uint32_t)number);
        }
        deadlocks += stuck;
    }
    ASSERT_TRUE(deadlocks > STATES / 4);
}

/* Everybody who is stuck waits, over others, for somebody in a cycle. */
TEST(deadlock, where_somebody_is_stuck_there_is_a_cycle)
{
    static struct hf__deadlock deadlock;

    for (int i = 1; i <= STATES / 10; i++) {
        uint16_t cycle[HF__DEADLOCK_MEMBERS];
        struct members members;
        struct state state;
        bool stuck = false;
        bool found = false;

        seed = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
        make(&state);
        look(&state, &members, &deadlock);
        for (uint32_t n = 0; n < deadlock.n; n++) {
            stuck |= hf__deadlock_has(&deadlock.stuck, n);
            found |= hf__deadlock_cycle(&deadlock, n, cycle) > 0;
        }
        ASSERT_EQ(stuck, found);
    }
}

static void wait_for(struct hf__deadlock *deadlock, uint32_t number,
                     int32_t holder)
{
    struct hf__deadlock_row row = {
        .role = HF_HOLDER, .mode = HF_EXCLUSIVE, .member = holder};

    hf__deadlock_rows(deadlock, number, HF_EXCLUSIVE, &row, 1);
}

TEST(deadlock, the_shortest_cycle_is_found)
{
    static struct hf__deadlock deadlock = {.n = HF__DEADLOCK_MEMBERS};
    struct hf__deadlock_row both[] = {
        {.role = HF_HOLDER, .mode = HF_SHARED, .member = 1},
        {.role = HF_HOLDER, .mode = HF_SHARED, .member = 200}};
    uint16_t cycle[HF__DEADLOCK_MEMBERS];

    for (uint32_t i = 0; i < deadlock.n; i++)
        wait_for(&deadlock, i, (int32_t)((i + 1) % deadlock.n));
    hf__deadlock_solve(&deadlock);
    ASSERT_EQ(hf__deadlock_cycle(&deadlock, 7, cycle), HF__DEADLOCK_MEMBERS);
    ASSERT_EQ(cycle[0], 7);
    ASSERT_EQ(cycle[HF__DEADLOCK_MEMBERS - 1], 6);

    hf__deadlock_rows(&deadlock, 0, HF_EXCLUSIVE, both, 2);
    wait_for(&deadlock, 200, 0);
    hf__deadlock_solve(&deadlock);
    ASSERT_EQ(hf__deadlock_cycle(&deadlock, 0, cycle), 2);
    ASSERT_EQ(cycle[1], 200);
    /* 255 waits for that cycle, and is in none. */
    ASSERT_TRUE(hf__deadlock_has(&deadlock.stuck, 255));
    ASSERT_EQ(hf__deadlock_cycle(&deadlock, 255, cycle), 0);
}

TEST(deadlock, an_owner_that_waits_for_itself_is_a_cycle_of_one)
{
    static struct hf__deadlock deadlock = {.n = 1};
    uint16_t cycle[HF__DEADLOCK_MEMBERS];

    wait_for(&deadlock, 0, 0);
    hf__deadlock_solve(&deadlock);
    ASSERT_EQ(hf__deadlock_cycle(&deadlock, 0, cycle), 1);
}
