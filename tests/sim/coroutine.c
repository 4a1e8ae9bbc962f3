/* SPDX-License-Identifier: MIT */
/*
 * coroutine.c - switch from stack to stack, and tell sanitizers so.
 *
 * Contexts begin a coroutine; jumps continue it, which need no system call.
 */
/* The checked longjmp() takes another stack for a mistake. */
#undef _FORTIFY_SOURCE
#include "coroutine.h"

#include <stdlib.h>
#include <sys/mman.h>

#if SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

enum { STACK_SIZE = 256 * 1024 };

/* The stack of the program. */
static struct {
    jmp_buf place;
    void *fake_stack;
    void *fiber;
    const void *stack;
    size_t stack_size;
} program;
static struct coroutine *running; /* NULL: none */

static void before_switch(void **fake_stack, const void *stack, size_t size,
                          void *fiber)
{
#if SIM_ASAN
    __sanitizer_start_switch_fiber(fake_stack, stack, size);
#else
    (void)fake_stack;
    (void)stack;
    (void)size;
#endif
#if SIM_TSAN
    __tsan_switch_to_fiber(fiber, 0);
#else
    (void)fiber;
#endif
}

static void after_switch(void *fake_stack)
{
#if SIM_ASAN
    if (running)
        __sanitizer_finish_switch_fiber(fake_stack, &program.stack,
                                        &program.stack_size);
    else
        __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#else
    (void)fake_stack;
#endif
}

/*
 * Each side notes its place before the sanitizers hear of the switch: TSan
 * keeps the places of a fiber in a list, where it never forgets one of another
 * stack. @fake_stack: NULL of one that ends.
 */
static void to_program(struct coroutine *self, void **fake_stack)
{
    if (_setjmp(self->place) == 0) {
        before_switch(fake_stack, program.stack, program.stack_size,
                      program.fiber);
        _longjmp(program.place, 1);
    }
}

static void entry(void)
{
    after_switch(NULL);
    running->run();
    to_program(running, NULL);
}

/* One that ends never returns from its functions: its fiber has them still. */
static void renew_fiber(struct coroutine *coroutine, bool again)
{
#if SIM_TSAN
    if (coroutine->fiber)
        __tsan_destroy_fiber(coroutine->fiber);
    coroutine->fiber = again ? __tsan_create_fiber(0) : NULL;
#else
    (void)coroutine;
    (void)again;
#endif
}

bool coroutine_init(struct coroutine *coroutine, void (*run)(void))
{
    if (!coroutine->stack) {
        coroutine->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (coroutine->stack == MAP_FAILED) {
            coroutine->stack = NULL;
            return false;
        }
    }
    renew_fiber(coroutine, true);
    coroutine->run = run;
    coroutine->fake_stack = NULL;
    coroutine->begun = false;
    (void)getcontext(&coroutine->context);
    coroutine->context.uc_stack.ss_sp = coroutine->stack;
    coroutine->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&coroutine->context, entry, 0);
    return true;
}

static _Noreturn void go_on(struct coroutine *coroutine)
{
    if (coroutine->begun)
        _longjmp(coroutine->place, 1);
    coroutine->begun = true;
    (void)setcontext(&coroutine->context);
    abort();
}

void coroutine_enter(struct coroutine *coroutine)
{
    running = coroutine;
#if SIM_TSAN
    program.fiber = __tsan_get_current_fiber();
#endif
    if (_setjmp(program.place) == 0) {
        before_switch(&program.fake_stack, coroutine->stack, STACK_SIZE,
                      coroutine->fiber);
        go_on(coroutine);
    }
    running = NULL;
    after_switch(program.fake_stack);
}

void coroutine_leave(struct coroutine *coroutine)
{
    to_program(coroutine, &coroutine->fake_stack);
    after_switch(coroutine->fake_stack);
}

void coroutine_release(struct coroutine *coroutine)
{
    if (coroutine->stack)
        (void)munmap(coroutine->stack, STACK_SIZE);
    coroutine->stack = NULL;
    renew_fiber(coroutine, false);
}
