/* SPDX-License-Identifier: MIT */
/* coroutine.h - functions with stacks of their own, one of which runs. */
#ifndef HF_SIM_COROUTINE_H
#define HF_SIM_COROUTINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <ucontext.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SIM_ASAN 1
#else
#define SIM_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#else
#define SIM_TSAN 0
#endif

struct coroutine {
    ucontext_t context; /* where it begins, */
    jmp_buf place;      /* and where it goes on */
    void (*run)(void);
    void *stack;
    void *fake_stack; /* the address sanitizer's */
    void *fiber;      /* the thread sanitizer's */
    bool begun;       /* place is set */
};

/* It will execute @run. @coroutine is all zeroes, or one that has ended, whose
 * stack is used again. False: there is no memory. */
bool coroutine_init(struct coroutine *coroutine, void (*run)(void));
/* From the stack of the program to it; returns when it leaves or ends. */
void coroutine_enter(struct coroutine *coroutine);
/* From the coroutine that runs to the program; returns when it runs again. */
void coroutine_leave(struct coroutine *coroutine);
/* Also of one that has not ended. */
void coroutine_release(struct coroutine *coroutine);

#endif
