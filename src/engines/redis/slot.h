/* SPDX-License-Identifier: MIT */
/* slot.h - which of a cluster's slots a key is in; what its nodes say of them. */
#ifndef HF_REDIS_SLOT_H
#define HF_REDIS_SLOT_H

#include "engines/redis/resp.h"

enum { HF__SLOTS = 16384 };

/* The slot of @key: of what stands in its first braces, if anything does. */
uint16_t hf__slot_of(const char *key, size_t len);

/* An address that a node told; host is "" for the node's own. */
struct hf__slot_address {
    char host[256];
    int port;
};
/* "MOVED 3999 127.0.0.1:6381", or "ASK …": only this once. */
struct hf__slot_redirect {
    bool ask;
    uint16_t slot;
    struct hf__slot_address to;
};
/* False if @error is neither. */
bool hf__slot_read_redirect(const struct hf__resp_value *error,
                            struct hf__slot_redirect *ret_redirect);
/* One range of the answer to CLUSTER SLOTS, @head is its list; what follows it
 * is read. False if it is none. */
bool hf__slot_read_range(struct hf__resp *reply,
                         const struct hf__resp_value *head, uint16_t *ret_first,
                         uint16_t *ret_last, struct hf__slot_address *ret_at);

#endif
