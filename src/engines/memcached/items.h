/* SPDX-License-Identifier: MIT */
/*
 * items.h - the key and the value of a lock's item.
 */
#ifndef HF_MEMCACHED_ITEMS_H
#define HF_MEMCACHED_ITEMS_H

#include "engines/engine.h"
#include "engines/memcached/wire.h"

struct hf__memcached;

enum { HF__MEMCACHED_KEY = 250, HF__MEMCACHED_VALUE = 1200 };

int hf__memcached_items_key(const struct hf__memcached *memcached,
                            const struct hf__ticket *ticket,
                            char to[HF__MEMCACHED_KEY + 1], hf_error *err);
/* Ticket, colon, host, process, owner, note, name in lines; its length. */
size_t hf__memcached_items_value(const struct hf__memcached *memcached,
                                 const struct hf__ticket *ticket,
                                 char to[HF__MEMCACHED_VALUE]);
bool hf__memcached_items_is_ours(const struct hf__memcached *memcached,
                                 const struct hf__ticket *ticket,
                                 const struct hf__meta *meta);
/* Another name with the same hash? Foreign values have no name. */
bool hf__memcached_items_is_other_name(const struct hf__memcached *memcached,
                                       const struct hf__ticket *ticket,
                                       const struct hf__meta *meta);
/* "db1:4211 (thread 1)", or nothing for a value that is not our kind. */
bool hf__memcached_items_holder(const struct hf__meta *meta, char *to,
                                size_t size);

#endif
