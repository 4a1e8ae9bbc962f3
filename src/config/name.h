/* SPDX-License-Identifier: MIT */
/* name.h - what may be a name, and how a name becomes an engine's key. */
#ifndef HF_NAME_H
#define HF_NAME_H

#include "base/base.h"

/* hf_name_check() for names, owners and notes: 1…max bytes (notes: 0) of
 * well-formed UTF-8 without control characters (C0, DEL, C1). @what begins the
 * error: "name", "owner", "note". */
int hf__name_check_text(const char *what, const char *text, size_t len,
                        size_t min, size_t max, hf_error *err);
/* Percent-encode every byte of @name that is not in [A-Za-z0-9._-]: injective,
 * reversible, and safe in a key, path or line. A leading dot is encoded too.
 * Returns the length, or 0 if @size is too small (3 * len + 1 is enough). */
size_t hf__name_encode(const char *name, size_t len, char *to, size_t size);
/* The reverse; 0 for what hf__name_encode() cannot have made. */
size_t hf__name_decode(const char *text, size_t len, char *to, size_t size);
/* A quick hash of @bytes under @key: keyed by chance, so nobody can aim at a
 * bucket. No proof of anything: names that share it are compared. Part of the
 * local store's layout. */
uint64_t hf__name_hash(const void *bytes, size_t len, const uint64_t key[2]);

#endif
