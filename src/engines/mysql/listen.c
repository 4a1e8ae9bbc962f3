/* SPDX-License-Identifier: MIT */
/*
 * listen.c - whoever holds a lock hears when its session ends.
 *
 * A session that ends says so to whoever reads, and somebody does as long as an
 * answer is to come. So one counts as to come while something is held. Not at
 * once: another thread would be woken for every lock, however short, which cost
 * a pair of GET_LOCK and RELEASE_LOCK a third of its time.
 */
#include "engines/mysql/mysql.h"

/* Who holds a lock for so long wants to hear when its session ends. */
static const int64_t listen_after_ns = 20 * HF_MS;

static void listen_on(struct hf__mysql *mysql, bool on)
{
    if (mysql->listening == on)
        return;
    mysql->listening = on;
    mysql->base.under_way += on ? 1U : UINT32_MAX;
}

int64_t hf__mysql_listen(struct hf__mysql *mysql, int64_t now_ns)
{
    if (mysql->held == 0 || mysql->listening)
        return HF_NEVER;
    if (now_ns < mysql->held_ns + listen_after_ns)
        return mysql->held_ns + listen_after_ns;
    listen_on(mysql, true);
    return HF_NEVER;
}

void hf__mysql_set_held(struct hf__mysql *mysql, struct hf__mysql_ticket *mine,
                        bool held)
{
    if (mine->held == held)
        return;
    mine->held = held;
    if (held && mysql->held++ == 0) {
        mysql->held_ns = hf__now();
        hf__mysql_wake(mysql, mysql->held_ns + listen_after_ns);
    } else if (!held && --mysql->held == 0) {
        listen_on(mysql, false);
    }
}
