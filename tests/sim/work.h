/* SPDX-License-Identifier: MIT */
/* work.h - the programs that use locks in the simulation. */
#ifndef HF_SIM_WORK_H
#define HF_SIM_WORK_H

#include <stdbool.h>

enum { WORK_PROGRAMS = 3 };

/* Start all programs, each on a machine of its own. */
void work_start(void);
/* All workers have ended; the clients are still open. */
bool work_is_done(void);
/* Programs that closed under way and left something unconfirmed. */
bool work_left_unconfirmed(int program);
/* Let the programs close their clients, and end. */
void work_finish(void);

#endif
