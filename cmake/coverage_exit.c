/* SPDX-License-Identifier: MIT */
/*
 * coverage_exit.c - count the lines that forked tests run, too.
 *
 * A child of a test ends with _exit(), which skips the writing of the counters.
 * And gcc's fork() sets them to zero in the child, after the handlers of
 * pthread_atfork() have run: what those did would be forgotten. Linked into
 * tests of the coverage preset, with --wrap=_exit and --wrap=__gcov_fork.
 */
#include <gcov.h>
#include <unistd.h>

__attribute__((noreturn)) void __real__exit(int status);
__attribute__((noreturn)) void __wrap__exit(int status);
pid_t __wrap___gcov_fork(void);

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}

/* gcc would make a direct call of fork() one of this function. */
pid_t __wrap___gcov_fork(void)
{
    pid_t (*volatile real)(void) = fork;

    return real();
}
