/* SPDX-License-Identifier: MIT */
/* diff.h - what happened between two lists of holders and waiters. */
#ifndef HF_DIFF_H
#define HF_DIFF_H

#include "core/query.h"

/* What one row has to do with the other list. */
enum hf__change {
    HF__CHANGE_ENDED,   /* it held, and does not any more */
    HF__CHANGE_GRANTED, /* it holds now */
    HF__CHANGE_LEFT,    /* it waited, and neither waits nor holds now */
    HF__CHANGE_QUEUED   /* it waits now */
};

typedef void hf__diff_fn(void *ctx, enum hf__change change,
                         struct hf__row *row);

/* Rows of lists, sorted by name. */
struct hf__diff_list {
    struct hf__row *const *at;
    size_t n;
};

/* Tell each difference, name by name: ends, grants, then waiters that left and
 * waiters that came. 0 or HF_ENOMEM, and then nothing was told. */
int hf__diff_rows(struct hf__diff_list before, struct hf__diff_list after,
                  hf__diff_fn *tell, void *ctx);
/* Is this a row that holds or waits? Others are nobody's event. */
bool hf__diff_counts(const struct hf__row *row);
/* Why a holder that was seen as @row is gone at @now_ns, as far as a row can
 * tell: HF_EV_BROKEN, HF_EV_LOST or HF_EV_RELEASED. */
int hf__diff_ending(const struct hf__row *row, int64_t now_ns);

#endif
