/* SPDX-License-Identifier: MIT */
/* etcd_cut_test.c - connections that end in every step of a lock's life. */
#include "cuts.h"
#include "etcd.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&ttl=30s"

static void cut(cuts_scene_fn *scene)
{
    struct etcd_detour at = etcd_detour(QUICK);
    struct rivals two = {.proxy = at.proxy,
                         .client = at.client,
                         .rival = etcd_open(at.etcd, QUICK)};

    cuts(&two, scene, 30);
    EVENTUALLY(etcd_keys(at.etcd, "") == 0);
}

TEST_CALL(cut, while_in_line, cut(cuts_stand_in_line))
TEST_CALL(cut, while_on_a_condition, cut(cuts_wait_on_condition))
TEST_CALL(cut, while_looking, cut(cuts_look))
TEST_CALL(cut, while_watching, cut(cuts_watch))
