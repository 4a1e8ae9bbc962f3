/* SPDX-License-Identifier: MIT */
/* heap.h - an allocator that fails when told, and counts. */
#ifndef HF_TESTS_HEAP_H
#define HF_TESTS_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Give it to the library; before any other call of it. */
void heap_install(void);
/* Fail the @nth allocation from now (1 is the next one), once; 0: none. */
void heap_fail_at(long nth);
/* Has the failure happened since heap_fail_at()? */
bool heap_has_failed(void);
/* Allocations that were not freed. */
long heap_in_use(void);
/* Allocations so far. */
long heap_count(void);

#endif
