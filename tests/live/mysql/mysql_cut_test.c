/* SPDX-License-Identifier: MIT */
/* mysql_cut_test.c - connections that end in every step of a lock's life. */
#include "cuts.h"
#include "mysql.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&ttl=30s"

static void cut(cuts_scene_fn *scene)
{
    int port = mysql_fresh();
    struct proxy *proxy = proxy_start(port);
    struct rivals two = {.proxy = proxy,
                         .client = mysql_open(proxy_port(proxy), QUICK),
                         .rival = mysql_open(port, QUICK)};

    cuts(&two, scene, 30);
}

TEST_CALL(cut, while_in_line, cut(cuts_stand_in_line))
TEST_CALL(cut, while_on_a_condition, cut(cuts_wait_on_condition))
TEST_CALL(cut, while_looking, cut(cuts_look))
TEST_CALL(cut, while_watching, cut(cuts_watch))
