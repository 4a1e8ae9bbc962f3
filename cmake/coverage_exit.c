/* SPDX-License-Identifier: MIT */
/*
 * coverage_exit.c - count the lines that forked tests run, too.
 *
 * A child of a test ends with _exit(), which skips the writing of the
 * counters. Linked into tests of the coverage preset, with --wrap=_exit.
 */
#include <gcov.h>
#include <unistd.h>

__attribute__((noreturn)) void __real__exit(int status);
__attribute__((noreturn)) void __wrap__exit(int status);

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
