/* SPDX-License-Identifier: MIT */
/* redis_cut_test.c - connections that end in every step of a lock's life. */
#include "cuts.h"
#include "redis.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&ttl=30s"

static void cut(cuts_scene_fn *scene)
{
    struct rivals two = redis_proxied(QUICK, QUICK);

    cuts(&two, scene, 30);
    (void)redis_do(two.server, "DEL hf:{page}:v"); /* a version stays */
    EVENTUALLY(redis_leftovers(two.server) == 0);
}

TEST_CALL(cut, while_in_line, cut(cuts_stand_in_line))
TEST_CALL(cut, while_on_a_condition, cut(cuts_wait_or_lose))
TEST_CALL(cut, while_looking, cut(cuts_look))
TEST_CALL(cut, while_watching, cut(cuts_watch))
