/* SPDX-License-Identifier: MIT */
/*
 * redlock_quorum.h - the arithmetic of RedLock: who has won, is it over, may this node
 * vote. Pure: numbers in, a verdict out.
 */
#ifndef HF_REDLOCK_QUORUM_H
#define HF_REDLOCK_QUORUM_H

#include "base/base.h"

/* How the nodes stand; the sum is their number. */
struct hf__redlock_tally {
    uint32_t yes;  /* asking: voted for us. Leaving: it was ours until now */
    uint32_t no;   /* asking: another has it. Leaving: nothing of us there */
    uint32_t open; /* may still answer */
    uint32_t out;  /* cannot be asked, or did not answer in time */
};

enum hf__redlock_verdict {
    HF__REDLOCK_OPEN,    /* wait for more votes */
    HF__REDLOCK_WON,     /* a majority is ours */
    HF__REDLOCK_BUSY,    /* it cannot be any more: others have votes */
    HF__REDLOCK_TOO_FEW, /* it cannot be any more: too few can be asked */
    HF__REDLOCK_LEFT,    /* certain: no majority is ours any more */
    HF__REDLOCK_LOST,    /* the same, and it was not ours before */
    HF__REDLOCK_UNKNOWN  /* too few have confirmed that we left */
};

/* ⌊n/2⌋ + 1. */
static inline uint32_t hf__redlock_quorum(uint32_t nodes)
{
    return nodes / 2 + 1;
}

/* OPEN, WON, BUSY or TOO_FEW. */
enum hf__redlock_verdict hf__redlock_quorum_ask(
    const struct hf__redlock_tally *tally);
/* OPEN, LEFT, LOST (only @releasing) or UNKNOWN. */
enum hf__redlock_verdict hf__redlock_quorum_release(
    const struct hf__redlock_tally *tally, bool releasing);

/* How long a node that forgets in a restart must not vote yet. @uptime_s is
 * what it says (in whole seconds, of two rounded clocks); @seen_ns is for how
 * long it can have been running at most, as far as we know; @longest_ms the
 * longest lease that it may have forgotten. */
int64_t hf__redlock_quorum_quarantine_ns(int64_t uptime_s, int64_t seen_ns,
                                         int64_t longest_ms);

/* What is known of a server's clock: its reading minus ours lies between. */
struct hf__redlock_clock {
    int64_t low_ns;
    int64_t high_ns;
    int64_t since_ns; /* our time of the reading; 0: none */
};

/* The server said @server_ns to a question sent at @sent_ns, answered at
 * @now_ns. True if its clock has jumped ahead by more than @most_ns since the
 * reading in @clock, which is replaced then, and when it is older than
 * @window_ns. A clock that went back ends no lease too early. */
bool hf__redlock_quorum_clock_jumped(struct hf__redlock_clock *clock,
                                     int64_t server_ns, int64_t sent_ns,
                                     int64_t now_ns, int64_t most_ns,
                                     int64_t window_ns);

#endif
