/* SPDX-License-Identifier: MIT */
/* inspect.h - asking the engine a question, for inspect.c and version.c. */
#ifndef HF_INSPECT_H
#define HF_INSPECT_H

#include "engines/engine.h"

struct hf__query *hf__query_new(hf_error *err);
/* NULL is ignored. */
void hf__query_free(struct hf__query *query);
/* Copy a text into a field of a query. */
int hf__query_set(const char **to, const char *text, hf_error *err);
/* The name, checked. */
int hf__query_name(struct hf__query *query, const char *name, hf_error *err);
/* Ask by the slot of struct hf__engine_ops at @slot_offset, and wait. *query is
 * NULL afterwards if the answer is still to come. */
int hf__query_ask(hf_client *client, size_t slot_offset,
                  struct hf__query **query, hf_error *err);

#endif
