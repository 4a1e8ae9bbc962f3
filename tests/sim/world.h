/* SPDX-License-Identifier: MIT */
/*
 * world.h - a world in which a test owns time, chance and threads.
 *
 * Threads are coroutines; one runs at a time, and which one runs next is drawn
 * from a seed. When all sleep, time jumps to the next thing due. So a run of
 * minutes takes milliseconds, and the same seed makes the same run.
 *
 * Machines have clocks of their own that go a little wrong, and can be stopped
 * at any point, also inside the library with the monitor held, as SIGSTOP or a
 * hypervisor does. "True" time is that of the simulation.
 */
#ifndef HF_SIM_WORLD_H
#define HF_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/world.h"

enum { SIM_MACHINES = 4 };

struct sim_thread;

struct sim_machine {
    int64_t offset_ns;          /* of its clock */
    int64_t drift_ppm;          /* its clock's speed, against the truth */
    int64_t wall_ahead_us;      /* of its wall clock, which is set at times */
    int64_t frozen_until_ns;    /* true time; 0: it runs */
    int64_t thawed_ns;          /* when it ran again, last */
    struct sim_thread *stopped; /* the one that runs first then */
    uint64_t turns;             /* of its threads */
    bool frozen;
};

typedef void sim_fn(void *arg);

/* What the world does to its threads; zeroed is "nothing". */
struct sim_faults {
    uint32_t
        freeze_per_million; /* a machine stops, at each call of the world */
    int64_t freeze_max_ns;
    uint32_t wall_jumps_per_mille; /* at each reading of a wall clock */
    uint32_t spurious_per_mille;   /* a park ends for no reason */
    uint32_t lost_wakes_per_mille; /* a planted bug: unpark does nothing */
};

extern const struct hf__world sim_world;
extern struct sim_faults sim_faults;
extern struct sim_machine sim_machines[SIM_MACHINES];

/* A new world; everything of the last one must have ended. */
void sim_reset(uint64_t seed);
/* Free the pooled stacks. */
void sim_end(void);

uint64_t sim_below(uint64_t bound);
bool sim_chance(uint32_t per_mille);

/* True time, and its relation to a machine's clock. */
int64_t sim_now(void);
int64_t sim_local(const struct sim_machine *machine, int64_t true_ns);
/* Its wall clock, which may have been set by an hour since. */
int64_t sim_wall_us(struct sim_machine *machine);

/* Call @fn(@arg) at @true_ns, outside all threads. */
void sim_at(int64_t true_ns, sim_fn *fn, void *arg);
/* A thread on @machine. */
void sim_spawn(struct sim_machine *machine, sim_fn *run, void *arg);
/* The machine of the running thread. */
struct sim_machine *sim_here(void);
/* In a thread: sleep for so long, by true time. */
void sim_sleep(int64_t ns);
/* In a thread: sleep until sim_wake(@thing), or @until_ns of its own clock. */
void sim_wait_for(const void *thing, int64_t until_ns);
void sim_wake(const void *thing);
/* In a thread: poll as an application does (drive=app): sleep until @loop has
 * something to do, by its timer too, or @fd is readable, or sim_wake(@loop). */
void sim_wait_app(struct hf__loop *loop, int fd);
/* How often the longest turn of a thread has asked for the time: one that does
 * not end starves the others. */
uint32_t sim_longest_turn(void);
/* Outside all threads: look at things with the clock of @machine. */
void sim_look_as(struct sim_machine *machine);

/* Something is readable for @loop: @io of it, or NULL for a kick. */
void sim_loop_ready(struct hf__loop *loop, struct hf__io *io);
/* Nothing is, any more. */
void sim_loop_drained(struct hf__loop *loop);

/* Run until there is nothing left to do, or @until_ns; @each is called after
 * every step, and stops the run by returning false. True if all threads have
 * ended. */
bool sim_run(int64_t until_ns, bool (*each)(void));
/* Threads that have not ended. */
int sim_threads_alive(void);
/* Print what each of them is doing. */
void sim_print_threads(void);

#endif
