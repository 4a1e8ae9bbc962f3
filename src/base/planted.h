/* SPDX-License-Identifier: MIT */
/*
 * planted.h - mistakes on purpose, which the suites have to find.
 *
 *     if (!HF__PLANTED("release_without_compare"))
 *         … what is right …
 *
 * In a build with -DHOLDFAST_PLANTS=ON the environment chooses one of them
 * (HOLDFAST_TEST_PLANT); tests/chaos/plants.py has the list. In every other
 * build the condition is the constant 0, and nothing of it is compiled.
 */
#ifndef HF_BASE_PLANTED_H
#define HF_BASE_PLANTED_H

#ifdef HF__PLANTS
#include <stdbool.h>

bool hf__planted(const char *name);
#define HF__PLANTED(name) hf__planted(name)
#else
#define HF__PLANTED(name) 0
#endif

#endif
