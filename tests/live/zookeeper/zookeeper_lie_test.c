/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_lie_test.c - an answer that nobody expects, in every step.
 *
 * Between a client and the server of HOLDFAST_TEST_URL stands a liar. It lets
 * everything pass but one request, and does that for each request of a scene: it
 * answers with an error instead of asking the server, or loses the server's
 * answer, or ends the session. Whatever comes: every call ends, two never hold
 * the lock, and after the client has gone nothing is left.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/zookeeper/wire.h"
#include "event.h"
#include "sockets.h"
#include "test.h"
#include "test_client.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&ttl=30s"

enum { FRAME = 1 << 14, STEPS = 200, SHORT_MS = 100, PARTS = 3 };

enum fate {
    TOLD,   /* answered with an error; the server is not asked */
    LOST,   /* carried out, but the connection ends before the answer */
    EXPIRED /* it ends the session */
};

struct lie {
    enum fate fate;
    int32_t error;
    int part; /* of a transaction, that has failed; 0: all */
};

struct liar {
    int fd;
    int port;
    int server_port;
    pthread_t thread;
    hf_client *client;
    const char *dialect;
    struct lie lie;
    _Atomic int at;      /* the request it lies about; 0: none */
    _Atomic int heard;   /* requests so far */
    _Atomic int32_t xid; /* whose answer it waits for; 0: none */
    int32_t types[STEPS];
};

/* ---- frames ---------------------------------------------------------------- */

static bool say(int fd, const char *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* One frame, with the four bytes of its length; 0: the connection has ended. */
static size_t hear(int fd, char *to)
{
    int64_t len;

    if (recv(fd, to, 4, MSG_WAITALL) != 4)
        return 0;
    len = hf__zk_wire_frame(to, 4);
    if (len <= 0 || len > FRAME - 4 ||
        recv(fd, to + 4, (size_t)len, MSG_WAITALL) != (ssize_t)len)
        return 0;
    return (size_t)len + 4;
}

static bool pass(int from, int to)
{
    char bytes[FRAME];
    size_t len = hear(from, bytes);

    return len > 0 && say(to, bytes, len);
}

static bool say_frame(int fd, struct hf__buf *frame)
{
    bool said;

    hf__zk_wire_patch_int(frame, 0, (int32_t)frame->len - 4);
    said = say(fd, frame->text, frame->len);
    hf__buf_release(frame);
    return said;
}

/* A request in the place of another, so that answers come in their order. */
static bool ask_instead(int fd, int32_t xid, int32_t type)
{
    struct hf__buf frame = {0};

    hf__zk_wire_put_int(&frame, 0);
    hf__zk_wire_put_int(&frame, xid);
    hf__zk_wire_put_int(&frame, type);
    if (type == HF__ZK_EXISTS) {
        hf__zk_wire_put_text(&frame, "/", 1);
        hf__zk_wire_put_bool(&frame, false);
    }
    return say_frame(fd, &frame);
}

/* What a server says of a transaction whose @failed-th part was refused. */
static void put_parts(struct hf__buf *frame, int failed, int32_t error)
{
    for (int i = 0; i <= PARTS; i++) {
        bool last = i == PARTS;
        int32_t said = i < failed    ? HF__ZK_OK
                       : i == failed ? error
                                     : HF__ZK_OTHER_PART;

        hf__zk_wire_put_int(frame, -1);
        hf__zk_wire_put_bool(frame, last);
        hf__zk_wire_put_int(frame, last ? -1 : said);
        if (!last)
            hf__zk_wire_put_int(frame, said);
    }
}

static bool tell(const struct liar *liar, int fd, int32_t xid, int64_t zxid)
{
    struct hf__buf frame = {0};
    bool parts = liar->lie.part > 0;

    hf__zk_wire_put_int(&frame, 0);
    hf__zk_wire_put_int(&frame, xid);
    hf__zk_wire_put_long(&frame, zxid);
    hf__zk_wire_put_int(&frame, parts ? HF__ZK_OK : liar->lie.error);
    if (parts)
        put_parts(&frame, liar->lie.part, liar->lie.error);
    return say_frame(fd, &frame);
}

/* ---- the liar -------------------------------------------------------------- */

/* A request; false: the connection ends. */
static bool from_client(struct liar *liar, int client, int server)
{
    char bytes[FRAME];
    size_t len = hear(client, bytes);
    struct hf__zk_wire in = {bytes + 4, bytes + len, false};
    int32_t xid;
    int32_t type;
    int n;

    if (len < 12)
        return false;
    xid = hf__zk_wire_int(&in);
    type = hf__zk_wire_int(&in);
    if (xid <= 0 || type == HF__ZK_CLOSE)
        return say(server, bytes, len); /* a ping, or the end */
    n = atomic_fetch_add(&liar->heard, 1) + 1;
    if (n < STEPS && liar->at == 0)
        liar->types[n] = type;
    if (n != liar->at)
        return say(server, bytes, len);
    atomic_store(&liar->xid, xid);
    if (liar->lie.fate == LOST)
        return say(server, bytes, len);
    return ask_instead(
        server, xid, liar->lie.fate == EXPIRED ? HF__ZK_CLOSE : HF__ZK_EXISTS);
}

static bool from_server(struct liar *liar, int client, int server)
{
    char bytes[FRAME];
    size_t len = hear(server, bytes);
    struct hf__zk_wire in = {bytes + 4, bytes + len, false};
    int32_t xid;

    if (len < 20)
        return false;
    xid = hf__zk_wire_int(&in);
    if (xid <= 0 || xid != atomic_load(&liar->xid))
        return say(client, bytes, len);
    atomic_store(&liar->xid, 0);
    return liar->lie.fate == TOLD &&
           tell(liar, client, xid, hf__zk_wire_long(&in));
}

static void carry(struct liar *liar, int client, int server)
{
    struct pollfd fds[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    bool goes_on = pass(client, server) && pass(server, client);

    while (goes_on && poll(fds, 2, -1) > 0) {
        if (fds[0].revents)
            goes_on = from_client(liar, client, server);
        if (goes_on && fds[1].revents)
            goes_on = from_server(liar, client, server);
    }
}

static void *serve(void *arg)
{
    struct liar *liar = arg;
    int client;

    while ((client = accept4(liar->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        int server = socket_dial(liar->server_port);

        if (server >= 0) {
            carry(liar, client, server);
            (void)close(server);
        }
        (void)close(client);
    }
    return NULL;
}

static void end_liar(void *arg)
{
    struct liar *liar = arg;

    hf_close(liar->client);
    socket_unlisten(liar->fd, liar->thread);
    free(liar);
}

static struct liar *start_liar(int server_port)
{
    struct liar *liar = calloc(1, sizeof(*liar));

    ASSERT_NOT_NULL(liar);
    liar->server_port = server_port;
    liar->fd = socket_listen(&liar->port);
    ASSERT_EQ(pthread_create(&liar->thread, NULL, serve, liar), 0);
    test_defer(end_liar, liar);
    return liar;
}

/* ---- scenes ---------------------------------------------------------------- */

typedef void scene_fn(hf_client *client, hf_client *rival, bool honest);

/* Who believes to hold it is alone, unless its session was ended in spite of its
 * messages, which no server does. */
static void held_alone(hf_hold *hold, hf_client *rival, bool honest)
{
    if (honest && hf_check(hold) == HF_HELD)
        ASSERT_NE(client_try(rival, "jobs", NULL), 0);
}

static void stand_in_line(hf_client *client, hf_client *rival, bool honest)
{
    hf_hold *first = client_acquire(rival, "jobs");
    hf_request *request;
    hf_hold *hold = NULL;

    if (hf_acquire_start(client, "jobs", WITHIN(10 * SHORT_MS), NULL, NULL,
                         &request, NULL) != 0)
        request = NULL;
    (void)hf_acquire(client, "jobs", WITHIN(1), &hold, NULL);
    ASSERT_NULL(hold);
    client_release(first);
    if (request &&
        hf_request_wait(request, EVENT_PATIENCE_MS, &hold, NULL) == 0) {
        held_alone(hold, rival, honest);
        (void)hf_downgrade(hold, NULL);
        (void)hf_verify(hold, NULL);
        (void)hf_release(hold, NULL);
    }
    hf_request_free(request);
}

/* A waiter that parks gives the lock up, so that @rival gets it. */
static void wake(hf_client *rival)
{
    hf_hold *hold;

    if (hf_acquire(rival, "jobs", WITHIN(4 * SHORT_MS), &hold, NULL) == 0) {
        (void)hf_cond_signal(hold, "ready", NULL);
        client_release(hold);
    }
}

/* It may not get the lock again, behind a node of its own that it was told is
 * gone: then it gives up. */
static void begin_wait(hf_hold *hold, int64_t wait_ms, hf_client *rival)
{
    hf_request *request;

    if (hf_cond_wait_start(hold, "ready", wait_ms, NULL, NULL, &request,
                           NULL) != 0)
        return;
    if (rival)
        wake(rival);
    (void)hf_request_wait(request, wait_ms + 5 * SHORT_MS, NULL, NULL);
    hf_request_free(request);
}

static void wait_on_condition(hf_client *client, hf_client *rival, bool honest)
{
    hf_hold *hold;

    if (hf_acquire(client, "jobs", WITHIN(10 * SHORT_MS), &hold, NULL) != 0)
        return;
    held_alone(hold, rival, honest);
    begin_wait(hold, 10 * SHORT_MS, rival);
    held_alone(hold, rival, honest);
    begin_wait(hold, 1, NULL);
    (void)hf_cond_broadcast(hold, "ready", NULL);
    held_alone(hold, rival, honest);
    (void)hf_release(hold, NULL);
}

/* A woken waiter bears the wake-up until it releases. */
static void release_the_woken(hf_client *client, hf_client *rival, bool honest)
{
    hf_hold *hold;

    if (hf_acquire(client, "jobs", WITHIN(10 * SHORT_MS), &hold, NULL) != 0)
        return;
    begin_wait(hold, 10 * SHORT_MS, rival);
    held_alone(hold, rival, honest);
    (void)hf_release(hold, NULL);
}

/* One parked is woken and, before it can have the lock, cancelled. */
static void cancel_the_woken(hf_client *client, hf_client *rival, bool honest)
{
    hf_request *request;
    hf_hold *hold;
    hf_hold *next;

    (void)honest;
    if (hf_acquire(client, "jobs", WITHIN(10 * SHORT_MS), &hold, NULL) != 0)
        return;
    if (hf_cond_wait_start(hold, "ready", HF_FOREVER, NULL, NULL, &request,
                           NULL) == 0) {
        if (hf_acquire(rival, "jobs", WITHIN(SHORT_MS), &next, NULL) == 0) {
            (void)hf_cond_signal(next, "ready", NULL);
            hf_cancel(request);
            client_release(next);
        }
        hf_cancel(request);
        (void)hf_request_wait(request, 20 * SHORT_MS, NULL, NULL);
        hf_request_free(request);
    }
    (void)hf_release(hold, NULL);
}

/* @client looks, and breaks in the end what the other two have. */
static void look(hf_client *client, hf_client *rival, bool honest)
{
    struct client_wait parked = client_park(rival, "jobs", "ready", rival);
    hf_hold *hold = client_acquire(rival, "jobs");
    uint64_t version;

    (void)honest;
    (void)hf_show(client, "jobs", client_ignore_lock, NULL, NULL);
    (void)hf_list(client, NULL, client_ignore_lock, NULL, NULL);
    (void)hf_check_token(client, "jobs", hf_token(hold), NULL);
    (void)hf_deadlocks(client, client_ignore_cycle, NULL, NULL);
    if (hf_version_read(client, "page", &version, NULL) == 0)
        (void)hf_version_commit(client, "page", version, &version, NULL);
    (void)hf_break(client, "jobs", hf_token(hold), NULL, NULL);
    (void)hf_release(hold, NULL);
    hf_request_free(parked.request);
    (void)hf_release(parked.hold, NULL);
}

/* ---- lies ------------------------------------------------------------------ */

static const char *url_of(int port, const char *query)
{
    return test_text("zk://127.0.0.1:%d/locks?%s", port, query);
}

static bool nothing_left(hf_client *client)
{
    return client_count(client, "jobs", HF_HOLDER) == 0 &&
           client_count(client, "jobs", HF_WAITER) == 0 &&
           client_count(client, "jobs", HF_PARKED) == 0;
}

/* Can a server answer a request of @type so? */
static bool is_likely(const struct lie *lie, int32_t type)
{
    if (lie->part > 0)
        return type == HF__ZK_MULTI;
    if (lie->error == HF__ZK_BAD_VERSION)
        return type == HF__ZK_MULTI || type == HF__ZK_SET_DATA ||
               type == HF__ZK_DELETE;
    if (lie->error == HF__ZK_NODE_EXISTS)
        return type == HF__ZK_MULTI || type == HF__ZK_CREATE ||
               type == HF__ZK_CREATE_CONTAINER;
    return true;
}

/* Play @scene with a client of its own; how many requests that took. */
static int play(struct liar *liar, hf_client *rival, scene_fn *scene, int at)
{
    hf_error err;

    atomic_store(&liar->xid, 0);
    atomic_store(&liar->heard, 0);
    atomic_store(&liar->at, at);
    if (hf_open(
            url_of(liar->port, test_text(QUICK "&dialect=%s", liar->dialect)),
            NULL, &liar->client, &err) != 0)
        return 0;
    scene(liar->client, rival, liar->lie.fate != EXPIRED);
    hf_close(liar->client);
    liar->client = NULL;
    EVENTUALLY(nothing_left(rival));
    return atomic_load(&liar->heard);
}

static void lie_in(const char *dialect, scene_fn *scene, struct lie lie)
{
    int port = client_port_of(getenv("HOLDFAST_TEST_URL"));
    struct liar *liar = start_liar(port);
    hf_client *rival = client_open(
        url_of(port, test_text("io_timeout=60s&dialect=%s", dialect)));
    int lies = 0;
    int n;

    liar->dialect = dialect;
    n = play(liar, rival, scene, 0);
    ASSERT_GT(n, 0);
    ASSERT_LT(n, STEPS);
    liar->lie = lie;
    for (int at = 1; at <= n; at++) {
        if (is_likely(&lie, liar->types[at])) {
            (void)play(liar, rival, scene, at);
            lies++;
        }
    }
    ASSERT_EQ(client_try(rival, "jobs", NULL), 0);
    test_note("%d requests, %d lies", n, lies);
}

static void lie_to(scene_fn *scene, struct lie lie)
{
    lie_in("curator", scene, lie);
}

/* Every lie, in every step of @scene_. */
#define LIES(suite, scene_)                                                    \
    TEST_CALL(suite, no_node,                                                  \
              lie_to(scene_, (struct lie){TOLD, HF__ZK_NO_NODE, 0}))           \
    TEST_CALL(suite, no_node_for_the_second_part,                              \
              lie_to(scene_, (struct lie){TOLD, HF__ZK_NO_NODE, 1}))           \
    TEST_CALL(suite, no_node_for_the_third_part,                               \
              lie_to(scene_, (struct lie){TOLD, HF__ZK_NO_NODE, 2}))           \
    TEST_CALL(suite, bad_version,                                              \
              lie_to(scene_, (struct lie){TOLD, HF__ZK_BAD_VERSION, 0}))       \
    TEST_CALL(suite, node_exists,                                              \
              lie_to(scene_, (struct lie){TOLD, HF__ZK_NODE_EXISTS, 0}))       \
    TEST_CALL(suite, no_right,                                                 \
              lie_to(scene_, (struct lie){TOLD, HF__ZK_NO_AUTH, 0}))           \
    TEST_CALL(suite, an_answer_is_lost,                                        \
              lie_to(scene_, (struct lie){LOST, 0, 0}))                        \
    TEST_CALL(suite, the_session_ends,                                         \
              lie_to(scene_, (struct lie){EXPIRED, 0, 0}))

LIES(line, stand_in_line)
LIES(wait, wait_on_condition)
LIES(release, release_the_woken)
LIES(cancel, cancel_the_woken)
LIES(look, look)

/* Its nodes do not tell whose they are: they are sought by their data. */
TEST_CALL(medallion, an_answer_is_lost,
          lie_in("medallion-rw", stand_in_line, (struct lie){LOST, 0, 0}))
TEST_CALL(medallion, no_right,
          lie_in("medallion-rw", stand_in_line,
                 (struct lie){TOLD, HF__ZK_NO_AUTH, 0}))
