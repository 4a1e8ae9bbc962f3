/* SPDX-License-Identifier: MIT */
/* request.h - what other files of the core need of request.c. */
#ifndef HF_REQUEST_H
#define HF_REQUEST_H

#include "core/hold.h"

/* The caller's options, of this header or of the first one, completed with
 * zeroes; the standard ones for NULL. */
int hf__request_opts(const hf_opts *given, hf_opts *opts, hf_error *err);
/* hf_acquire() with the monitor held; leaves it while it waits. */
int hf__request_acquire(hf_client *client, const char *name,
                        const hf_opts *opts, hf_hold **ret_hold, hf_error *err);
/* With the monitor, which it leaves while it waits: the outcome of a started
 * request without callback, which ends. The caller frees its memory. */
int hf__request_take(struct hf_request *request, hf_error *err);
/* How long to wait for @name where the caller does not say. */
int64_t hf__request_configured_wait(const hf_client *client, const char *name);
/* With the monitor: part @hold from its ticket and release without waiting. */
void hf__request_let_go(hf_hold *hold);

#endif
