/* SPDX-License-Identifier: MIT */
/*
 * redis_clock_test.c - tokens grow whatever becomes of the server's clock.
 *
 * A token is at least the server's time, so a clock that was ahead gives tokens
 * from the future. The server must not forget such a token before its clock
 * has passed it.
 */
#include "clock.h"
#include "event.h"

enum { AHEAD_S = 3600, LATER_S = 660 };

static uint64_t take(hf_client *client, uint64_t above)
{
    hf_hold *hold = client_acquire(client, "jobs");
    uint64_t token = hf_token(hold);

    ASSERT_GT(token, above);
    client_release(hold);
    return token;
}

TEST(clock, that_was_ahead_and_is_set_right_repeats_no_token)
{
    struct server *server = clock_start_server("no");
    uint64_t token;

    clock_set_ahead(server, AHEAD_S);
    token = take(redis_open(server_port(server), NULL), 0);
    clock_set_ahead(server, 0);
    /* A new client asks by script, and writes the memory anew. */
    token = take(redis_open(server_port(server), NULL), token);
    clock_set_ahead(server, LATER_S);
    token = take(redis_open(server_port(server), NULL), token);
    clock_set_ahead(server, AHEAD_S + LATER_S);
    (void)take(redis_open(server_port(server), NULL), token);
}

/* The line is gone with the token in it; it was handed on before. */
TEST(clock, that_was_ahead_repeats_no_token_after_a_hand_over)
{
    struct server *server = clock_start_server("no");
    int port = server_port(server);
    uint64_t token;
    hf_hold *hold;

    clock_set_ahead(server, AHEAD_S);
    (void)take(redis_open(port, NULL), 0);
    clock_set_ahead(server, 0);
    for (int i = 0; i < 2; i++) {
        hf_request *request;

        hold = client_acquire(redis_open(port, NULL), "jobs");
        request = client_start(redis_open(port, NULL), "jobs");
        EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
        client_release(hold);
        hold = client_finish(request);
        token = hf_token(hold);
        client_release(hold);
        clock_set_ahead(server, LATER_S * (i + 1));
        token = take(redis_open(port, NULL), token);
    }
}

/* Holder and waiters vanish: nobody tidies up, the keys of the line end by
 * themselves. */
TEST(clock, that_was_ahead_repeats_no_token_after_a_whole_line_died)
{
    struct server *server = clock_start_server("no");
    struct proxy *proxy = proxy_start(server_port(server));
    int port = server_port(server);
    hf_request *request;
    hf_hold *hold;
    uint64_t token;

    clock_set_ahead(server, AHEAD_S);
    (void)take(redis_open(port, NULL), 0);
    clock_set_ahead(server, 0);
    hold = client_acquire(redis_open(proxy_port(proxy), NULL), "jobs");
    token = hf_token(hold);
    request = client_start(redis_open(proxy_port(proxy), NULL), "jobs");
    EVENTUALLY(strstr(redis_do(server, "LLEN hf:{jobs}:q"), ":1") != NULL);
    proxy_refuse(proxy, true);
    proxy_reset(proxy);
    clock_set_ahead(server, LATER_S);
    (void)take(redis_open(port, NULL), token);
    (void)hf_release(hold, NULL);
    hf_request_free(request);
}
