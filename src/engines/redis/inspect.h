/* SPDX-License-Identifier: MIT */
/* inspect.h - queries: inspect.c, versions.c, doctor.c. */
#ifndef HF_REDIS_INSPECT_H
#define HF_REDIS_INSPECT_H

#include "engines/redis/redis.h"

void hf__redis_inspect_refused(struct hf__redis *redis, struct hf__query *query,
                               const struct hf__resp_value *value);
/* The first value of the answer, *ret_value. False: there is no answer, or an
 * error, or, where @list, not a list; that is reported. */
bool hf__redis_inspect_answered(struct hf__redis *redis,
                                struct hf__query *query, struct hf__resp *reply,
                                bool list, struct hf__resp_value *ret_value);
/* The key of query->name in redis->scratch, by @dialect; or not connected. */
int hf__redis_inspect_key(struct hf__redis *redis,
                          const struct hf__query *query,
                          const struct hf__redis_dialect *dialect,
                          hf_error *err);

hf__engine_query_fn hf__redis_inspect_list;
hf__engine_query_fn hf__redis_inspect_check_token;
hf__engine_query_fn hf__redis_inspect_break;
hf__engine_query_fn hf__redis_versions_read;
hf__engine_query_fn hf__redis_versions_commit;
/* The lock that doctor() tries out. */
extern const char hf__redis_doctor_name[];
hf__engine_query_fn hf__redis_doctor;
/* The value after @key in the answer to CONFIG GET; "" if it is not there. */
void hf__redis_doctor_read_config(struct hf__resp reply, const char *key,
                                  char *to, size_t size);

/* The name behind "hf:{…}" or "hf:{…}:p", without the prefix; false if it is
 * none. */
bool hf__redis_inspect_name(const struct hf__redis *redis,
                            const struct hf__resp_value *key, char *to,
                            size_t size);
/* It was sent, and may have been done. */
void hf__redis_inspect_unknown(struct hf__redis *redis,
                               struct hf__query *query);
/* "'name': @text". */
void hf__redis_inspect_text(struct hf__redis *redis, struct hf__query *query,
                            int code, const char *text);
/* The key in redis->scratch becomes an argument; scratch is released. */
void hf__redis_inspect_put_key(struct hf__redis *redis);

#endif
