/* SPDX-License-Identifier: MIT */
/* release.h - the parts of releasing and verifying that do not wait. */
#ifndef HF_RELEASE_H
#define HF_RELEASE_H

#include "core/hold.h"
#include "core/waiter.h"

/* The answer is still to come: the waiter is told. */
enum { HF__RELEASE_PENDING = 1 };

/* With the monitor, no callback of @hold in the list: part it from its ticket,
 * and free the lock if that was the last hold. 0, HF_ELOST, or pending. */
int hf__release_begin(hf_hold *hold, struct hf__waiter *waiter);
/* With the monitor: ask the engine about @hold. HF_E*, or pending. */
int hf__release_verify(hf_hold *hold, struct hf__waiter *waiter, hf_error *err);
/* Until when an answer is awaited. */
int64_t hf__release_deadline(const hf_client *client);
/* What @rc means to who released; returns @rc. */
int hf__release_explain(const char *name, int rc, hf_error *err);
/* With the monitor: drop one reference; the last one lets go. */
void hf__release_unref(hf_hold *hold);
/* In a forked child: drop one reference; HF_EFORK. */
int hf__release_forked(hf_hold *hold, hf_error *err);
/* hf_release() of one hold, with the monitor, which it leaves while it waits;
 * the reference stays. */
int hf__release_hold(hf_hold *hold);

#endif
