/* SPDX-License-Identifier: MIT */
/*
 * raw_zookeeper.c - what ZooKeeper's own client library can do at most, for
 * ./dev bench zk.
 *
 *     raw_zookeeper SCENARIO SECONDS PORT
 *
 *   pair      create an ephemeral sequential node, delete it; one process
 *   handover  two processes stand in line by such nodes: watch the one before,
 *             list the children again when it has gone; from delete to having
 *             it
 *
 * libzookeeper_st, its asynchronous calls, and a
 * poll between them.
 */
#include <poll.h>
#include <sys/wait.h>
#include <zookeeper/zookeeper.h>

#include "raw.h"

static zhandle_t *zh;
static int answered; /* the call under way */
static int fired;    /* the watch */
static int result;
static char created[256];
static char before[256]; /* whom we wait for; "": nobody */
static double seconds;
static struct samples *samples;

static struct shared {
    _Atomic uint64_t released_ns;
    _Atomic uint64_t grants;
} * shared;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "raw_zookeeper: %s: %s\n", what, zerror(result));
    exit(1);
}

static void turn(void)
{
    struct timeval tv;
    struct pollfd fd = {.fd = -1};
    int interest = 0;
    int events = 0;

    result = zookeeper_interest(zh, &fd.fd, &interest, &tv);
    if (fd.fd < 0)
        return;
    fd.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                        (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    poll(&fd, 1, (int)(tv.tv_sec * 1000 + tv.tv_usec / 1000));
    if (fd.revents & (POLLIN | POLLHUP | POLLERR))
        events |= ZOOKEEPER_READ;
    if (fd.revents & POLLOUT)
        events |= ZOOKEEPER_WRITE;
    zookeeper_process(zh, events);
}

static void await(const int *flag)
{
    while (!*flag)
        turn();
}

static void on_session(zhandle_t *handle, int type, int state, const char *path,
                       void *ctx)
{
    (void)handle, (void)type, (void)state, (void)path, (void)ctx;
}

static void on_gone(zhandle_t *handle, int type, int state, const char *path,
                    void *ctx)
{
    (void)handle, (void)state, (void)path, (void)ctx;
    if (type != ZOO_SESSION_EVENT)
        fired = 1;
}

static void on_create(int rc, const char *path, const void *data)
{
    (void)data;
    result = rc;
    if (rc == ZOK)
        snprintf(created, sizeof(created), "%s", path);
    answered = 1;
}

static void on_void(int rc, const void *data)
{
    (void)data;
    result = rc;
    answered = 1;
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    (void)stat, (void)data;
    result = rc;
    answered = 1;
}

/* The nearest child before ours into @before. */
static void on_children(int rc, const struct String_vector *children,
                        const void *data)
{
    const char *own = strrchr(created, '/') + 1;

    (void)data;
    result = rc;
    before[0] = '\0';
    for (int32_t i = 0; rc == ZOK && i < children->count; i++) {
        if (strcmp(children->data[i], own) < 0 &&
            (!before[0] || strcmp(children->data[i], before) > 0))
            snprintf(before, sizeof(before), "%s", children->data[i]);
    }
    answered = 1;
}

static void call(int rc, const char *what)
{
    if (rc != ZOK)
        fail(what);
    await(&answered);
    answered = 0;
}

static void create_node(const char *path, int flags)
{
    call(zoo_acreate(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, flags, on_create,
                     NULL),
         "create");
    if (result != ZOK && result != ZNODEEXISTS)
        fail("create");
}

static void delete_node(void)
{
    call(zoo_adelete(zh, created, -1, on_void, NULL), "delete");
    if (result != ZOK)
        fail("delete");
}

static void dial(int port)
{
    char host[32];

    snprintf(host, sizeof(host), "127.0.0.1:%d", port);
    zoo_set_debug_level(0);
    zh = zookeeper_init(host, on_session, 10000, NULL, NULL, 0);
    if (!zh)
        fail("init");
    while (zoo_state(zh) != ZOO_CONNECTED_STATE)
        turn();
    create_node("/raw", ZOO_PERSISTENT);
}

static void pair(int port)
{
    uint64_t end;

    dial(port);
    end = end_of(seconds);
    while (now_ns() < end) {
        uint64_t before_ns = now_ns();

        create_node("/raw/lock-", ZOO_EPHEMERAL | ZOO_SEQUENCE);
        delete_node();
        sample(samples, now_ns() - before_ns);
    }
    print("pair", (double)samples->n / seconds, samples);
}

static void stand_in_line(void)
{
    char path[300];

    create_node("/raw/lock-", ZOO_EPHEMERAL | ZOO_SEQUENCE);
    for (;;) {
        call(zoo_aget_children(zh, "/raw", 0, on_children, NULL), "children");
        if (!before[0])
            return;
        snprintf(path, sizeof(path), "/raw/%s", before);
        fired = 0;
        call(zoo_awexists(zh, path, on_gone, NULL, on_stat, NULL), "exists");
        if (result == ZOK)
            await(&fired);
    }
}

static void pass_on(int port, uint64_t end)
{
    dial(port);
    while (now_ns() < end) {
        uint64_t released;

        stand_in_line();
        released = shared->released_ns;
        if (released != 0)
            sample(samples, now_ns() - released);
        shared->grants++;
        shared->released_ns = now_ns();
        delete_node();
    }
    zookeeper_close(zh);
}

static void handover(int port)
{
    uint64_t end = end_of(seconds);
    pid_t child;

    shared = shared_page(sizeof(*shared));
    child = fork();
    pass_on(port, end);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    print("handover", (double)shared->grants / seconds, samples);
}

int main(int argc, char **argv)
{
    int port;

    if (argc != 4) {
        fprintf(stderr, "usage: raw_zookeeper pair|handover SECONDS PORT\n");
        return 64;
    }
    port = atoi(argv[3]);
    seconds = atof(argv[2]);
    samples = samples_new();
    if (strcmp(argv[1], "pair") == 0)
        pair(port);
    else
        handover(port);
    return 0;
}
