/* SPDX-License-Identifier: MIT */
/* waits.h - who of this process waits for long, and what those hold. */
#ifndef HF_CORE_WAITS_H
#define HF_CORE_WAITS_H

#include "core/client.h"
#include "core/fork.h"
#include "core/notice.h"

/* A wait is long after this. */
#define HF__WAITS_LONG_NS HF_SECOND

enum { HF__WAITS_CLIENTS = 64 }; /* more of one process are not asked */

/* The long waits of a client, with what their owners hold in all clients of
 * the process. */
struct hf__waits {
    uint32_t n;
    struct hf__notice_wait at[HF__NOTICE_WAITS];
    /* Which of clients each hold is of. */
    uint8_t held_at[HF__NOTICE_WAITS][HF__NOTICE_HOLDS];
    bool twice[HF__NOTICE_WAITS]; /* its owner waits for something else, too */
    uint32_t clients_n;
    struct hf__fork_client clients[HF__WAITS_CLIENTS];
    uint64_t stores[HF__WAITS_CLIENTS]; /* 0: not known, or has no board */
    bool used[HF__WAITS_CLIENTS];       /* an owner holds something there */
};

/* With the monitor: the long waits of @client, without holds. */
void hf__waits_collect(hf_client *client, struct hf__waits *waits);
/* Without any monitor: what their owners hold. Owners that wait for two locks
 * are left out: neither alone stops them. */
void hf__waits_gather(struct hf__waits *waits);
/* Once waits->stores are known: leave out what has no board, and who holds
 * nothing. */
void hf__waits_settle(struct hf__waits *waits);
/* With the monitor: the request of a wait, if it still waits. */
struct hf_request *hf__waits_find(hf_client *client,
                                  const struct hf__notice_wait *wait);
/* With the monitor: when the next wait of @client will be a long one; HF_NEVER:
 * nobody waits. @ret_long: one is. */
int64_t hf__waits_next(const hf_client *client, bool *ret_long);

#endif
