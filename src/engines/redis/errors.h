/* SPDX-License-Identifier: MIT */
/* errors.h - what the server says went wrong, in our words. */
#ifndef HF_REDIS_ERRORS_H
#define HF_REDIS_ERRORS_H

#include "engines/redis/redis.h"

/* Is the answer "no such script"? */
/* Fill @err from an error of the server. True if it is
 * certain that nothing was done. */
bool hf__redis_errors_explain(struct hf__redis *redis,
                              const struct hf__resp_value *value,
                              hf_error *err);
void hf__redis_errors_explain_lost(struct hf__redis *redis, hf_error *err);
/* Is it an error that begins with @word? */
bool hf__redis_errors_begins(const struct hf__resp_value *value,
                             const char *word);

#endif
