/* SPDX-License-Identifier: MIT */
/*
 * cuts.h - the connection ends after n bytes, for many n.
 *
 * A client behind a proxy goes through a scene, and does so again and again:
 * each time its connection is reset somewhere else, in a request or in an answer.
 * It comes back, finds out what became of what it asked, and gets it: no lock is
 * lost, nobody waits for ever, and nothing is left.
 */
#ifndef HF_TESTS_CUTS_H
#define HF_TESTS_CUTS_H

#include "proxy.h"
#include "test_client.h"

typedef void cuts_scene_fn(const struct rivals *two);

/* It stands in line behind the rival, who goes; it gets the lock, downgrades,
 * verifies and releases. */
cuts_scene_fn cuts_stand_in_line;
/* It waits on a condition, is woken by the rival, waits again in vain, wakes
 * nobody and releases. */
cuts_scene_fn cuts_wait_on_condition;
/* The same where a client that does not hear of its grant has lost: without the
 * rest. */
cuts_scene_fn cuts_wait_or_lose;
/* It looks at a lock that is held, waited for, and waited on. */
cuts_scene_fn cuts_look;

/* A watch of it goes on: what the rival does later is told. */
cuts_scene_fn cuts_watch;

/* Play @scene with @times cuts in each direction; names of locks are "jobs". */
void cuts(const struct rivals *two, cuts_scene_fn *scene, int times);

#endif
