/* SPDX-License-Identifier: MIT */
/*
 * scripts.h - the scripts that run inside the server.
 *
 * Redis runs a script as one step, so each of them is one atomic change of a
 * lock. HF__SCRIPT_NATIVE_ACQUIRE is lua/native_acquire.lua: lua/embed.cmake
 * reads this list, and writes the texts and their digests into a C file.
 */
#ifndef HF_REDIS_SCRIPTS_H
#define HF_REDIS_SCRIPTS_H

#include "base/base.h"

enum {
    /* Run all the time, by their digest. */
    HF__SCRIPT_NATIVE_ACQUIRE,
    HF__SCRIPT_NATIVE_RELEASE,
    HF__SCRIPT_NATIVE_RENEW,
    HF__SCRIPT_NATIVE_DOWNGRADE,
    HF__SCRIPT_NATIVE_PARK,
    HF__SCRIPT_NATIVE_UNPARK,
    HF__SCRIPT_NATIVE_SIGNAL,
    HF__SCRIPT_PLAIN_RELEASE,
    HF__SCRIPT_PLAIN_RENEW,
    HF__SCRIPT_REDISSON_LOCK_TRY,
    HF__SCRIPT_REDISSON_LOCK_RELEASE,
    HF__SCRIPT_REDISSON_FAIR_TRY,
    HF__SCRIPT_REDISSON_FAIR_RELEASE,
    HF__SCRIPT_REDISSON_RW_TRY,
    HF__SCRIPT_REDISSON_RW_RELEASE,
    HF__SCRIPT_REDISSON_PERMIT_TRY,
    HF__SCRIPT_REDISSON_PERMIT_RELEASE,
    HF__SCRIPT_REDISSON_SEMAPHORE_TRY,
    HF__SCRIPT_REDISSON_SEMAPHORE_RELEASE,
    HF__SCRIPT_REDISSON_RENEW,
    HF__SCRIPT_REDISSON_PERMIT_RENEW,
    HF__SCRIPT_REDISSON_SEMAPHORE_RENEW,
    HF__SCRIPT_REDISSON_DOWNGRADE,
    /* Questions. */
    HF__SCRIPT_NATIVE_GONE,
    HF__SCRIPT_NATIVE_LOOK,
    HF__SCRIPT_NATIVE_CHECK,
    HF__SCRIPT_NATIVE_BREAK,
    HF__SCRIPT_VERSION_COMMIT,
    HF__SCRIPT_BOARD_POST,
    HF__SCRIPT_BOARD_READ,
    HF__SCRIPT_PLAIN_LOOK,
    HF__SCRIPT_PLAIN_BREAK,
    HF__SCRIPT_REDISSON_CHECK,
    HF__SCRIPT_REDISSON_LOOK,
    HF__SCRIPT_REDISSON_FORGET,
    HF__SCRIPTS
};

struct hf__redis_script {
    const char *text;
    size_t len;
    char digest[41]; /* SHA-1 in hex */
};

/* For a server alone, and for the nodes of a cluster. */
extern const struct hf__redis_script hf__redis_scripts[2][HF__SCRIPTS];

#endif
