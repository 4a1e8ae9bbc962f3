/* SPDX-License-Identifier: MIT */
/* deadlock_engine.h - the engine "sim:" with a board and a list. */
#ifndef HF_SIM_DEADLOCK_ENGINE_H
#define HF_SIM_DEADLOCK_ENGINE_H

enum { SIM_FIRST_PID = 1000 }; /* the process of the first client */

/* Register it, with an empty board; clients are processes of their own. */
void deadlock_engine_register(void);
/* Nothing is under way any more: give back the memory. */
void deadlock_engine_release(void);

#endif
