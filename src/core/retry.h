/* SPDX-License-Identifier: MIT */
/* retry.h - when to try again. */
#ifndef HF_RETRY_H
#define HF_RETRY_H

#include "config/config.h"

/* The pause after @attempt (from 0) failed, by the policy, with jitter. */
int64_t hf__retry_pause_ns(const struct hf__settings *settings,
                           uint32_t attempt);
/* The same for a lock that was taken, where nobody is woken. It does not grow as
 * far: the server answers, and a client that asks rarely misses the free moments.
 * @taken_ns: for how long the same grant has been seen; -1: not known. A pause is
 * a tenth of that: short grants are polled for more often. */
int64_t hf__retry_poll_ns(const struct hf__settings *settings, uint32_t attempt,
                          int64_t taken_ns);
/* Has the policy given up after @attempts tries since @since_ns? */
bool hf__retry_over(const struct hf__settings *settings, uint32_t attempts,
                    int64_t since_ns, int64_t now_ns);

#endif
