/* SPDX-License-Identifier: MIT */
/* keys.h - the table of all keys, and finding in it. */
#ifndef HF_KEYS_H
#define HF_KEYS_H

#include "config/value.h"

enum {
    HF__KEYS = 53,
    HF__NOWHERE = 0xffff /* .offset of a key that is no setting */
};

extern const struct hf__key hf__keys[HF__KEYS];

/* NULL if there is none. */
const struct hf__key *hf__key_find(const char *name);
/* What was probably meant by @name, or NULL. */
const char *hf__key_similar(const char *name);
/* HF_ECONFIG: no such key, with a hint. */
int hf__key_unknown(const char *name, hf_error *err);

#endif
