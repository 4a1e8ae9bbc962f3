/* SPDX-License-Identifier: MIT */
/* script_engine.h - the engine of the simulation, "sim:". */
#ifndef HF_SIM_SCRIPT_ENGINE_H
#define HF_SIM_SCRIPT_ENGINE_H

/* Register the engine for the service's kind (sim_kind). */
void sim_engine_register(void);

#endif
