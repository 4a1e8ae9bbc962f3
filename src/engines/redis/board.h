/* SPDX-License-Identifier: MIT */
/* board.h - the board of a Redis server, where waiters post notices. */
#ifndef HF_REDIS_BOARD_H
#define HF_REDIS_BOARD_H

#include "engines/engine.h"

/* The board is beside the lock of this name: in a cluster in its slot. */
extern const char hf__redis_board_name[];

hf__engine_query_fn hf__redis_board_post;
hf__engine_query_fn hf__redis_board_read;

#endif
