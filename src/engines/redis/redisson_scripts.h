/* SPDX-License-Identifier: MIT */
/* redisson_scripts.h - the texts of redisson_scripts.c, for scripts.c. */
#ifndef HF_REDIS_REDISSON_SCRIPTS_H
#define HF_REDIS_REDISSON_SCRIPTS_H

extern const char hf__redisson_head[];
extern const char hf__redisson_lock_try[];
extern const char hf__redisson_lock_leave[];
extern const char hf__redisson_fair_try[];
extern const char hf__redisson_fair_leave[];
extern const char hf__redisson_rw_try[];
extern const char hf__redisson_rw_leave[];
extern const char hf__redisson_permit_try[];
extern const char hf__redisson_permit_leave[];
extern const char hf__redisson_semaphore_try[];
extern const char hf__redisson_semaphore_leave[];
extern const char hf__redisson_beat[];
extern const char hf__redisson_permit_beat[];
extern const char hf__redisson_semaphore_beat[];
extern const char hf__redisson_downgrade[];
extern const char hf__redisson_check[];
extern const char hf__redisson_look[];
extern const char hf__redisson_forget[];

#endif
