/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_cut_test.c - connections that end in every step of a lock's life, on
 * the server of HOLDFAST_TEST_URL.
 */
#include <stdlib.h>

#include "cuts.h"
#include "test.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&ttl=30s"

static const char *url_of(int port)
{
    return test_text("zk://127.0.0.1:%d/locks?" QUICK, port);
}

static void cut(cuts_scene_fn *scene)
{
    int port = client_port_of(getenv("HOLDFAST_TEST_URL"));
    struct proxy *proxy = proxy_start(port);
    struct rivals two = {.proxy = proxy,
                         .client = client_open(url_of(proxy_port(proxy))),
                         .rival = client_open(url_of(port))};

    cuts(&two, scene, 30);
}

TEST_CALL(cut, while_in_line, cut(cuts_stand_in_line))
TEST_CALL(cut, while_on_a_condition, cut(cuts_wait_on_condition))
TEST_CALL(cut, while_looking, cut(cuts_look))
TEST_CALL(cut, while_watching, cut(cuts_watch))
