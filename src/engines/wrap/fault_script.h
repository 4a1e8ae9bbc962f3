/* SPDX-License-Identifier: MIT */
/* fault_script.h - the rules of "fault+…:?fault=", parsed. */
#ifndef HF_WRAP_FAULT_SCRIPT_H
#define HF_WRAP_FAULT_SCRIPT_H

#include "base/base.h"

enum hf__fault_call {
    HF__FAULT_CONNECT,
    HF__FAULT_ACQUIRE,
    HF__FAULT_WITHDRAW,
    HF__FAULT_RELEASE,
    HF__FAULT_RENEW,
    HF__FAULT_DOWNGRADE,
    HF__FAULT_PARK,
    HF__FAULT_UNPARK,
    HF__FAULT_SIGNAL,
    HF__FAULT_QUERY,
    HF__FAULT_HOLD, /* not a call: what befalls a granted lock */
    HF__FAULT_CALLS
};

enum hf__fault_action {
    HF__FAULT_NONE,
    HF__FAULT_FAIL,
    HF__FAULT_DELAY,
    HF__FAULT_CUT,
    HF__FAULT_DROP,
    HF__FAULT_LOST,
    HF__FAULT_EXPIRE,
    HF__FAULT_DOWN
};

enum { HF__FAULT_RULES = 32 };

struct hf__fault_rule {
    uint32_t calls; /* 1 << enum hf__fault_call, or several */
    uint8_t action; /* enum hf__fault_action */
    int code;       /* fail: HF_E* */
    int64_t ms;     /* delay, expire, down */
    uint64_t first; /* applies to the first…last of its calls, from 1 */
    uint64_t last;
    double percent; /* and of these to so many in a hundred */
    uint64_t count; /* calls seen so far */
};

struct hf__fault_script {
    struct hf__fault_rule rules[HF__FAULT_RULES];
    size_t n;
    uint64_t random; /* state of the dice */
    bool seeded;
};

/* What the rules say about one call. */
struct hf__fault_verdict {
    uint8_t action; /* the first that applies, delays aside */
    int code;
    int64_t ms;       /* of expire and down */
    int64_t delay_ms; /* of all delays that apply */
};

/* HF_ECONFIG says where the text is wrong, and what is allowed there. */
int hf__fault_parse(const char *text, struct hf__fault_script *ret_script,
                    hf_error *err);
/* Count one @call, and decide what happens to it. */
struct hf__fault_verdict hf__fault_judge(struct hf__fault_script *script,
                                         enum hf__fault_call call);
/* True if a rule speaks of @call. */
bool hf__fault_concerns(const struct hf__fault_script *script,
                        enum hf__fault_call call);

#endif
