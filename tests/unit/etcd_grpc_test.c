/* SPDX-License-Identifier: MIT */
/* etcd_grpc_test.c - a connection of gRPC whose server we are. */
#include "engines/etcd/grpc.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event.h"
#include "sockets.h"
#include "test.h"

#define PATH "/some.Service/Call"

/* The one connection, and what was heard of it. */
static struct {
    struct hf__loop loop;
    struct hf__grpc grpc;
    int listener;
    int server; /* our end of it */
    char heard[1 << 12];
    size_t heard_len;
    int done;
    int code;
    int lost;
} us;

static void on_done(struct hf__grpc_call *call)
{
    us.done++;
    us.code = call->code;
    hf__grpc_stop(call);
}

static void on_lost(struct hf__grpc *grpc, const hf_error *err)
{
    (void)grpc;
    ASSERT_EQ(err->code, HF_EUNAVAILABLE);
    us.lost++;
}

static void on_wake(struct hf__grpc *grpc, int64_t due_ns)
{
    (void)grpc;
    ASSERT_NE(due_ns, HF_NEVER);
}

static void tear_down(void *unused)
{
    (void)unused;
    hf__grpc_release(&us.grpc, /* forked= */ false);
    hf__loop_release(&us.loop);
    (void)close(us.listener);
    if (us.server > 0)
        (void)close(us.server);
    memset(&us, 0, sizeof(us));
}

static void set_up(void)
{
    hf_error err;

    us.listener = socket_listen(&us.grpc.stream.peer.port);
    ASSERT_EQ(hf__loop_init(&us.loop), 0);
    ASSERT_OK(hf__grpc_load(&err), &err);
    us.grpc.lost = on_lost;
    us.grpc.wake = on_wake;
    us.grpc.call_size = sizeof(struct hf__grpc_call);
    us.grpc.token = "";
    us.grpc.stream.loop = &us.loop;
    us.grpc.stream.peer.host = "127.0.0.1";
    hf__grpc_init(&us.grpc);
    test_defer(tear_down, NULL);
}

static struct hf__grpc_call *start(int wanted_rc)
{
    struct hf__grpc_call *call = hf__grpc_call_new(&us.grpc);
    int done = us.done;
    hf_error err = {0};

    ASSERT_NOT_NULL(call);
    call->done = on_done;
    ASSERT_RC(hf__grpc_start(call, PATH, 60000, &err), wanted_rc, &err);
    ASSERT_EQ(us.done, done); /* never from inside */
    return call;
}

static bool turn(void)
{
    struct hf__loop_batch batch;

    hf__loop_poll(&us.loop, &batch, hf__now() + 10 * HF_MS);
    hf__loop_handle(&us.loop, &batch);
    hf__grpc_flush(&us.grpc);
    return true;
}

/* The connection is made, and what is to be sent is. */
static void meet(struct hf__grpc_call *call)
{
    EVENTUALLY(turn() && call->body_at > 0);
    us.server = accept4(us.listener, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_GT(us.server, 0);
}

TEST(call, that_finds_nobody_was_certainly_not_sent)
{
    set_up();
    (void)close(us.listener);
    us.listener = -1;
    (void)start(0);
    EVENTUALLY(turn() && hf__grpc_due(&us.grpc, hf__now()) && us.done == 1);
    ASSERT_EQ(us.code, HF__GRPC_UNSENT);
    ASSERT_EQ(us.lost, 1);
}

TEST(call, that_was_sent_and_gets_no_answer_is_lost)
{
    set_up();
    meet(start(0));
    ASSERT_NE(hf__grpc_due(&us.grpc, hf__now()), HF_NEVER);
    ASSERT_EQ(us.done, 0);
    (void)hf__grpc_due(&us.grpc, hf__now() + 61000 * HF_MS);
    ASSERT_EQ(us.done, 1);
    ASSERT_EQ(us.code, HF__GRPC_LOST);
    ASSERT_EQ(us.lost, 0); /* who is told decides about the connection */
}

TEST(call, whose_server_goes_is_lost_at_once)
{
    set_up();
    meet(start(0));
    (void)close(us.server);
    us.server = -1;
    EVENTUALLY(turn() && us.done == 1);
    ASSERT_EQ(us.code, HF__GRPC_LOST);
    ASSERT_EQ(us.lost, 1);
}

TEST(connection, that_is_used_up_is_replaced)
{
    struct hf__grpc_call *call;

    set_up();
    meet(start(0));
    ASSERT_EQ(nghttp2_session_set_next_stream_id(us.grpc.session, INT32_MAX),
              0);
    (void)start(0);
    call = start(HF_EUNAVAILABLE);
    hf__grpc_stop(call);
    (void)hf__grpc_due(&us.grpc, hf__now());
    ASSERT_EQ(us.done, 2);
    ASSERT_EQ(us.lost, 1);
    (void)close(us.server);
    meet(start(0));
}

/* The least that a server says, and a PING. */
static const char ping[] = "\0\0\0\x04\0\0\0\0\0"
                           "\0\0\x08\x06\0\0\0\0\0pingpong";
static const char pong[] = "\0\0\x08\x06\x01\0\0\0\0pingpong";

static bool heard_pong(void)
{
    ssize_t n = recv(us.server, us.heard + us.heard_len,
                     sizeof(us.heard) - us.heard_len, MSG_DONTWAIT);

    us.heard_len += n > 0 ? (size_t)n : 0;
    return memmem(us.heard, us.heard_len, pong, sizeof(pong) - 1) != NULL;
}

/* By the thread that reads it: no timer has to run. */
TEST(ping, is_answered_at_once)
{
    set_up();
    meet(start(0));
    ASSERT_EQ(send(us.server, ping, sizeof(ping) - 1, 0), sizeof(ping) - 1);
    EVENTUALLY(turn() && heard_pong());
    ASSERT_EQ(us.done, 0);
}
