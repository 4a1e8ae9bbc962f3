/* SPDX-License-Identifier: MIT */
/* caps.h - capabilities that several engines, modes and dialects promise. */
#ifndef HF_ENGINES_CAPS_H
#define HF_ENGINES_CAPS_H

#include "holdfast.h"

/* A lock on a server with a lease: its holder hears of a loss in time. */
#define HF__CAPS_LEASED                                                        \
    (HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_LOCK_DELAY |                  \
     HF_CAP_TOLD_BEFORE_REGRANT)
/* One with tokens and a queue on the server, whose waiters poll. What the store
 * survives is not in it. */
#define HF__CAPS_QUEUE                                                         \
    (HF__CAPS_LEASED | HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED |           \
     HF_CAP_SLOTS | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS | HF_CAP_LIST |         \
     HF_CAP_BREAK | HF_CAP_CHECK_TOKEN)
/* A row of a table that another library made. */
#define HF__CAPS_ROW (HF__CAPS_LEASED | HF_CAP_SURVIVES_RESTART | HF_CAP_BREAK)
/* The lock of a session or transaction of a database. */
#define HF__CAPS_SESSION                                                       \
    (HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_VERSIONS)

#endif
