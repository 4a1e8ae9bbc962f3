/* SPDX-License-Identifier: MIT */
/*
 * redlock_quorum.c - the arithmetic of RedLock.
 *
 * ASKING. A majority of all nodes, not of those that answer, has to say yes.
 * As soon as that cannot happen any more it is over: busy if the nodes that are
 * out would not have prevented it, else too few.
 *
 * LEAVING. We are certainly not the holder any more when so many nodes have
 * nothing of us that the others are no majority. Whether it was ours until now
 * is another matter: a majority must say so.
 *
 * QUARANTINE. A node that was restarted without its memory may have voted for
 * somebody who still holds the lock. It must not vote before the longest lease
 * that it can have forgotten has ended. The same holds for one whose clock
 * jumped ahead: it has ended leases too early.
 */
#include "engines/redis/redlock_quorum.h"

#include "base/world.h"

static uint32_t nodes_in(const struct hf__redlock_tally *tally)
{
    return tally->yes + tally->no + tally->open + tally->out;
}

enum hf__redlock_verdict hf__redlock_quorum_ask(
    const struct hf__redlock_tally *tally)
{
    uint32_t nodes = nodes_in(tally);
    uint32_t quorum = hf__redlock_quorum(nodes);

    if (tally->yes + HF__PLANTED("less_than_a_majority") >= quorum)
        return HF__REDLOCK_WON;
    if (tally->yes + tally->open >= quorum)
        return HF__REDLOCK_OPEN;
    return tally->out > nodes - quorum ? HF__REDLOCK_TOO_FEW : HF__REDLOCK_BUSY;
}

enum hf__redlock_verdict hf__redlock_quorum_release(
    const struct hf__redlock_tally *tally, bool releasing)
{
    uint32_t nodes = nodes_in(tally);
    uint32_t quorum = hf__redlock_quorum(nodes);
    bool gone = tally->yes + tally->no > nodes - quorum;

    if (tally->yes >= quorum || (gone && !releasing))
        return HF__REDLOCK_LEFT;
    if (tally->no > nodes - quorum)
        return HF__REDLOCK_LOST;
    if (tally->open > 0)
        return HF__REDLOCK_OPEN;
    return HF__REDLOCK_UNKNOWN;
}

int64_t hf__redlock_quorum_quarantine_ns(int64_t uptime_s, int64_t seen_ns,
                                         int64_t longest_ms)
{
    int64_t up_ns = seen_ns; /* no longer than it was seen */
    int64_t left_ns;

    if (uptime_s <= 0)
        up_ns = 0;
    else if (uptime_s - 1 < seen_ns / HF_SECOND)
        up_ns = (uptime_s - 1) * HF_SECOND;
    left_ns = hf__ms_to_ns(longest_ms) - up_ns;
    return left_ns > 0 ? left_ns : 0;
}

bool hf__redlock_quorum_clock_jumped(struct hf__redlock_clock *clock,
                                     int64_t server_ns, int64_t sent_ns,
                                     int64_t now_ns, int64_t most_ns,
                                     int64_t window_ns)
{
    struct hf__redlock_clock reading = {.low_ns = server_ns - now_ns,
                                        .high_ns = server_ns - sent_ns,
                                        .since_ns = now_ns};
    bool jumped =
        clock->since_ns != 0 && reading.low_ns - clock->high_ns > most_ns;

    /* A clock that is behind the reading we compare with could jump unseen:
     * compare with where it is now. */
    if (jumped || clock->since_ns == 0 ||
        now_ns - clock->since_ns > window_ns || reading.high_ns < clock->low_ns)
        *clock = reading;
    return jumped;
}
