/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_attack_test.c - answers that no ZooKeeper would give.
 *
 * A server of our own greets, and answers each kind of request with what the
 * test wants. Whatever comes: no crash, nothing believed, and an end.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/zookeeper/zookeeper.h"
#include "event.h"
#include "sockets.h"
#include "test.h"
#include "test_client.h"

enum { TYPES = 32, STAT = 68 };

/* What a client asks for, and where. */
struct call {
    int fd;
    int32_t xid;
    int32_t type;
};

struct fake {
    int fd;
    int port;
    struct hf__buf bodies[TYPES]; /* of a good answer, by the request's type */
    _Atomic int requests[TYPES];
    _Atomic int visits; /* connections */
    /* What answers instead, if there is one; false: the connection ends. */
    bool (*answer)(struct fake *fake, struct call call, struct hf__zk_wire in);
    char own[128]; /* the path of the client's node */
    char old[128]; /* of one that it had in an earlier session */
    char deleted[128];
    int greetings;
    int expired; /* the greeting that says so; 0: none */
    sem_t go;    /* the first create is answered then */
    pthread_t thread;
};

/* ---- the server ------------------------------------------------------------ */

static bool receive(int fd, char *to, size_t len)
{
    return recv(fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

static bool say(int fd, const struct hf__buf *frame)
{
    return send(fd, frame->text, frame->len, MSG_NOSIGNAL) ==
           (ssize_t)frame->len;
}

/* One message of the client; its length, or 0 at the end. */
static size_t hear(int fd, char *to, size_t size)
{
    char head[4];
    int64_t len;

    if (!receive(fd, head, 4))
        return 0;
    len = hf__zk_wire_frame(head, 4);
    return len > 0 && (size_t)len <= size && receive(fd, to, (size_t)len)
               ? (size_t)len
               : 0;
}

static bool greet(struct fake *fake, int fd)
{
    struct hf__buf frame = {0};
    bool said;

    fake->greetings++;
    hf__zk_wire_put_int(&frame, 36);
    hf__zk_wire_put_int(&frame, 0);
    hf__zk_wire_put_int(&frame, /* the session's timeout */
                        fake->greetings == fake->expired ? 0 : 30000);
    hf__zk_wire_put_long(&frame, 7 + fake->greetings);
    hf__zk_wire_put_text(&frame, "0123456789abcdef", 16);
    said = say(fd, &frame);
    hf__buf_release(&frame);
    return said;
}

static bool say_answer(int fd, int32_t xid, int32_t error,
                       const struct hf__buf *body)
{
    struct hf__buf frame = {0};
    bool said;

    hf__zk_wire_put_int(&frame, (int32_t)(16 + body->len));
    hf__zk_wire_put_int(&frame, xid);
    hf__zk_wire_put_long(&frame, 9);
    hf__zk_wire_put_int(&frame, error);
    hf__buf_append(&frame, body->text, body->len);
    said = say(fd, &frame);
    hf__buf_release(&frame);
    return said;
}

static bool answer(struct fake *fake, struct call call, struct hf__zk_wire in)
{
    (void)in;
    atomic_fetch_add(&fake->requests[call.type], 1);
    return say_answer(call.fd, call.xid, HF__ZK_OK, &fake->bodies[call.type]);
}

/* Hear one request and answer it; false: the connection ends. */
static bool serve_one(struct fake *fake, int fd)
{
    char bytes[1 << 12];
    size_t len = hear(fd, bytes, sizeof(bytes));
    struct hf__zk_wire in = {bytes, bytes + len, false};
    struct call call = {.fd = fd};

    call.xid = hf__zk_wire_int(&in);
    call.type = hf__zk_wire_int(&in);
    if (len == 0 || call.type < 0 || call.type >= TYPES)
        return false; /* the client says goodbye */
    return (fake->answer ? fake->answer : answer)(fake, call, in);
}

static void *serve(void *arg)
{
    struct fake *fake = arg;
    char greeting[1 << 12];
    int fd;

    while ((fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        atomic_fetch_add(&fake->visits, 1);
        if (hear(fd, greeting, sizeof(greeting)) > 0 && greet(fake, fd)) {
            while (serve_one(fake, fd))
                continue;
        }
        (void)close(fd);
    }
    return NULL;
}

static void end_fake(void *arg)
{
    struct fake *fake = arg;

    socket_unlisten(fake->fd, fake->thread);
    for (int i = 0; i < TYPES; i++)
        hf__buf_release(&fake->bodies[i]);
    free(fake);
}

/* Its bodies are filled in, then it is started. */
static struct fake *make_fake(void)
{
    struct fake *fake = calloc(1, sizeof(*fake));

    ASSERT_NOT_NULL(fake);
    return fake;
}

static hf_client *open_fake(struct fake *fake, const char *query)
{
    char url[128];

    fake->fd = socket_listen(&fake->port);
    ASSERT_EQ(pthread_create(&fake->thread, NULL, serve, fake), 0);
    test_defer(end_fake, fake);
    (void)snprintf(url, sizeof(url), "zk://127.0.0.1:%d/locks?ttl=15s&%s",
                   fake->port, query);
    return client_open(url);
}

static void add_stat(struct hf__buf *to)
{
    static const char zeros[STAT];

    hf__buf_append(to, zeros, STAT);
}

/* @n names with a number; what has one at its end stands in line. */
static void add_children(struct hf__buf *to, int n, const char *suffix)
{
    hf__zk_wire_put_int(to, n);
    for (int i = 0; i < n; i++) {
        char name[32];

        hf__zk_wire_put_text(
            to, name,
            (size_t)snprintf(name, sizeof(name), "x-lock-%010d%s", i, suffix));
    }
}

/* ---- answers ---------------------------------------------------------------- */

TEST(answer, that_is_cut_is_not_believed)
{
    for (size_t len = 0; len < STAT; len += 17) {
        struct fake *fake = make_fake();
        hf_client *client;
        uint64_t version;

        add_stat(&fake->bodies[HF__ZK_EXISTS]);
        fake->bodies[HF__ZK_EXISTS].len = len;
        client = open_fake(fake, "io_timeout=60s");
        ASSERT_EQ(hf_version_read(client, "jobs", &version, NULL),
                  HF_EUNAVAILABLE);
    }
}

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

TEST(list, asks_no_more_nodes_than_a_bound)
{
    struct fake *fake = make_fake();
    hf_client *client;
    hf_error err;
    int rows = 0;

    add_children(&fake->bodies[HF__ZK_GET_CHILDREN], 3 * HF__ZK_ROWS / 2, "");
    hf__zk_wire_put_text(&fake->bodies[HF__ZK_GET_DATA], "", 0);
    add_stat(&fake->bodies[HF__ZK_GET_DATA]);
    client = open_fake(fake, "io_timeout=60s");
    ASSERT_OK(hf_show(client, "jobs", count_row, &rows, &err), &err);
    ASSERT_EQ(rows, HF__ZK_ROWS);
    ASSERT_EQ(atomic_load(&fake->requests[HF__ZK_GET_DATA]), HF__ZK_ROWS);
}

TEST(list, that_nobody_waits_for_any_more_ends)
{
    _Atomic int *asked;
    struct fake *fake = make_fake();
    hf_client *client;
    uint64_t version;
    hf_error err;
    int rows = 0;
    int before;

    /* So many locks, each with so many children: to ask them all takes minutes. */
    add_children(&fake->bodies[HF__ZK_GET_CHILDREN], 50000, "x");
    add_stat(&fake->bodies[HF__ZK_EXISTS]);
    asked = &fake->requests[HF__ZK_GET_CHILDREN];
    client = open_fake(fake, "io_timeout=1s");
    ASSERT_RC(hf_list(client, NULL, count_row, &rows, &err), HF_EUNAVAILABLE,
              &err);
    before = atomic_load(asked);
    for (int i = 0; i < 10; i++)
        ASSERT_OK(hf_version_read(client, "jobs", &version, &err), &err);
    ASSERT_LE(atomic_load(asked), before + 1);
}

/* ---- in line ----------------------------------------------------------------- */

/* The client's node gets a number. */
static void add_created(struct fake *fake, struct hf__buf *to,
                        struct hf__zk_wire in)
{
    struct hf__zk_wire_text path = hf__zk_wire_text(&in);
    int len = snprintf(fake->own, sizeof(fake->own), "%.*s0000000001",
                       (int)path.len, path.text);

    hf__zk_wire_put_text(to, fake->own, (size_t)len);
    hf__zk_wire_put_long(to, 5); /* when it was made, the token */
    add_stat(to);
    to->len -= 8;
}

/* One is before it. */
static void add_line(const struct fake *fake, struct hf__buf *to)
{
    const char *own = strrchr(fake->own, '/') + 1;

    hf__zk_wire_put_int(to, 2);
    hf__zk_wire_put_text(to, "x-lock-0000000000", 17);
    hf__zk_wire_put_text(to, own, strlen(own));
}

/* The node that is watched has changed. */
static bool say_event(int fd)
{
    static const char path[] = "/locks/jobs/x-lock-0000000000";
    struct hf__buf body = {0};
    bool said;

    hf__zk_wire_put_int(&body, 2);
    hf__zk_wire_put_int(&body, 3);
    hf__zk_wire_put_text(&body, path, strlen(path));
    said = say_answer(fd, HF__ZK_XID_EVENT, HF__ZK_OK, &body);
    hf__buf_release(&body);
    return said;
}

/* The client may read who is in line once: another is before it. */
static bool answer_first_list(struct fake *fake, struct call call,
                              struct hf__zk_wire in)
{
    struct hf__buf body = {0};
    int32_t error = HF__ZK_OK;
    bool said;

    if (call.type == HF__ZK_CREATE) {
        add_created(fake, &body, in);
    } else if (call.type == HF__ZK_EXISTS) {
        add_stat(&body);
    } else if (call.type == HF__ZK_GET_DATA) {
        hf__zk_wire_put_text(&body, "", 0);
        add_stat(&body);
    } else if (call.type == HF__ZK_GET_CHILDREN) {
        if (atomic_fetch_add(&fake->requests[call.type], 1) == 0)
            add_line(fake, &body);
        else
            error = HF__ZK_NO_AUTH;
    }
    said = say_answer(call.fd, call.xid, error, &body);
    hf__buf_release(&body);
    return said && (call.type != HF__ZK_GET_DATA || say_event(call.fd));
}

TEST(line, that_may_not_be_read_any_more_keeps_nobody_waiting)
{
    struct fake *fake = make_fake();
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    fake->answer = answer_first_list;
    client = open_fake(fake, "io_timeout=60s");
    ASSERT_RC(hf_acquire(client, "jobs", WITHIN(60000), &hold, &err), HF_EAUTH,
              &err);
}

/* ---- sessions --------------------------------------------------------------- */

/* Nobody else is in line. */
static void add_own(const struct fake *fake, struct hf__buf *to)
{
    const char *own = strrchr(fake->own, '/') + 1;

    hf__zk_wire_put_int(to, 1);
    hf__zk_wire_put_text(to, own, strlen(own));
}

/* Every node is there: the one before ours has just gone. */
static void add_answer(struct fake *fake, int32_t type, struct hf__zk_wire in,
                       struct hf__buf *to)
{
    if (type == HF__ZK_CREATE) {
        add_created(fake, to, in);
    } else if (type == HF__ZK_EXISTS) {
        add_stat(to);
    } else if (type == HF__ZK_DELETE) {
        struct hf__zk_wire_text path = hf__zk_wire_text(&in);

        (void)snprintf(fake->deleted, sizeof(fake->deleted), "%.*s",
                       (int)path.len, path.text);
    } else if (type == HF__ZK_GET_CHILDREN) {
        bool first = fake->requests[HF__ZK_GET_DATA] == 0;
        const char *own = strrchr(fake->own, '/') + 1;
        const char *old = strrchr(fake->old, '/') + 1;

        hf__zk_wire_put_int(to, first ? 2 : 1);
        if (first)
            hf__zk_wire_put_text(to, old, strlen(old));
        hf__zk_wire_put_text(to, own, strlen(own));
    }
}

/* A create is carried out, and its answer is lost. The next greeting says that
 * the session has expired, and the node is still there. */
static bool answer_after_expiry(struct fake *fake, struct call call,
                                struct hf__zk_wire in)
{
    struct hf__buf body = {0};
    bool said;

    fake->requests[call.type]++;
    add_answer(fake, call.type, in, &body);
    if (fake->greetings == 1 && call.type == HF__ZK_CREATE) {
        (void)snprintf(fake->old, sizeof(fake->old), "%s", fake->own);
        fake->old[strlen(fake->old) - 1] = '0'; /* a smaller number */
        hf__buf_release(&body);
        return false;
    }
    said = say_answer(call.fd, call.xid,
                      call.type == HF__ZK_GET_DATA ? HF__ZK_NO_NODE : HF__ZK_OK,
                      &body);
    hf__buf_release(&body);
    return said;
}

TEST(session, that_expired_leaves_no_node_that_is_ours)
{
    struct fake *fake = make_fake();
    hf_client *client;
    hf_hold *hold;

    fake->answer = answer_after_expiry;
    fake->expired = 2;
    client = open_fake(fake, "io_timeout=60s");
    hold = client_acquire(client, "jobs");
    ASSERT_EQ(fake->greetings, 3);
    ASSERT_EQ(fake->requests[HF__ZK_GET_DATA],
              1); /* it waited for the old one */
    client_release(hold);
    ASSERT_STREQ(fake->deleted, fake->own);
    ASSERT_STRNE(fake->deleted, fake->old);
}

/* ---- a leader that was replaced ---------------------------------------------- */

/* It has made the client's node. Nobody follows it any more, and it does not know
 * it: it answers whatever needs no majority, and is not behind what does. */
static bool answer_alone(struct fake *fake, struct call call,
                         struct hf__zk_wire in)
{
    struct hf__buf body = {0};
    bool said;

    atomic_fetch_add(&fake->requests[call.type], 1);
    if (fake->requests[HF__ZK_DELETE] > 0 && call.type != HF__ZK_PING)
        return true;
    if (call.type == HF__ZK_SYNC)
        hf__zk_wire_put_text(&body, "/locks", 6);
    else if (call.type == HF__ZK_GET_CHILDREN)
        add_own(fake, &body);
    else
        add_answer(fake, call.type, in, &body);
    said = say_answer(call.fd, call.xid, HF__ZK_OK, &body);
    hf__buf_release(&body);
    return said;
}

TEST(renewal, that_no_majority_has_answered_is_none)
{
    struct fake *fake = make_fake();
    hf_client *client;
    hf_hold *hold;

    fake->answer = answer_alone;
    client = open_fake(fake, "io_timeout=3s");
    hold = client_acquire_with(client, "jobs", OPTS(60000, .ttl_ms = 1000));
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

/* ---- versions ---------------------------------------------------------------- */

TEST(doctor, knows_servers_that_lose_data)
{
    static const char *const lose[] = {"",      "odd",   "3.5.10", "3.8.0",
                                       "3.8.6", "3.9.2", "3.9.3"};
    static const char *const keep[] = {"3.9.4",  "3.9.5", "3.9.10",
                                       "3.10.0", "4.0.0", "3.9.99999999999"};

    for (size_t i = 0; i < HF_COUNT_OF(lose); i++)
        ASSERT_TRUE(hf__zk_doctor_members_may_differ(lose[i]));
    for (size_t i = 0; i < HF_COUNT_OF(keep); i++)
        ASSERT_FALSE(hf__zk_doctor_members_may_differ(keep[i]));
}

/* ---- flights ----------------------------------------------------------------- */

/* It answers the first create, when the test says so, and nothing else. */
static bool answer_one_create(struct fake *fake, struct call call,
                              struct hf__zk_wire in)
{
    struct hf__buf body = {0};
    bool said;

    if (atomic_fetch_add(&fake->requests[call.type], 1) > 0 ||
        call.type != HF__ZK_CREATE)
        return true;
    while (sem_wait(&fake->go) != 0)
        continue;
    add_created(fake, &body, in);
    said = say_answer(call.fd, call.xid, HF__ZK_OK, &body);
    hf__buf_release(&body);
    return said;
}

TEST(flight, takes_all_that_was_asked_while_the_last_one_was_under_way)
{
    struct fake *fake = make_fake();
    hf_request *requests[3];
    hf_client *client;

    ASSERT_EQ(sem_init(&fake->go, 0, 0), 0);
    fake->answer = answer_one_create;
    client = open_fake(fake, "io_timeout=5s");
    requests[0] = client_start(client, "a");
    EVENTUALLY(atomic_load(&fake->requests[HF__ZK_CREATE]) == 1);
    requests[1] = client_start(client, "b");
    requests[2] = client_start(client, "c");
    ASSERT_EQ(sem_post(&fake->go), 0);
    EVENTUALLY(atomic_load(&fake->requests[HF__ZK_CREATE]) == 3);
    ASSERT_EQ(atomic_load(&fake->visits), 1); /* it did not begin anew */
    for (int i = 0; i < 3; i++) {
        hf_cancel(requests[i]);
        hf_request_free(requests[i]);
    }
}
