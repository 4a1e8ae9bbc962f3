/* SPDX-License-Identifier: MIT */
/*
 * resolve.h - a host name becomes addresses, without keeping anybody waiting.
 *
 * getaddrinfo() may block for as long as a name server is silent, so it runs on
 * a thread of its own that ends with the answer. Numeric addresses need none.
 */
#ifndef HF_NET_RESOLVE_H
#define HF_NET_RESOLVE_H

#include <netdb.h>

#include "base/base.h"

struct hf__resolve;

/* Addresses of a numeric @host at once; NULL if it is a name. Free with
 * freeaddrinfo(). */
struct addrinfo *hf__resolve_numeric(const char *host, int port);
/* Begin to look @host up. 0, or HF_ENOMEM. */
int hf__resolve_start(const char *host, int port,
                      struct hf__resolve **ret_resolve);
/* Readable when the answer is there. */
int hf__resolve_fd(const struct hf__resolve *resolve);
/* The answer, which the caller owns: 0 and addresses, or an EAI_* code. */
int hf__resolve_take(struct hf__resolve *resolve, struct addrinfo **ret_list);
/* Give up; an answer that comes later is dropped. NULL is ignored. */
void hf__resolve_free(struct hf__resolve *resolve);
/* In a forked child: close the descriptor, nothing else. */
void hf__resolve_abandon(struct hf__resolve *resolve);

#endif
