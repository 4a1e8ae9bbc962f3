/* SPDX-License-Identifier: MIT */
/*
 * memcached_hostile_test.c - a server that answers rightly, but for one command.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "event.h"
#include "memcached.h"
#include "proc.h"
#include "sockets.h"

enum { ENDLESS = -1 };

/* What is wrong with the server. */
struct plan {
    int fd; /* listens */
    const char *command;
    const char *another; /* that is answered like it; NULL: none */
    const char *before;  /* said before the answer to it */
    const char *instead; /* of the answer; NULL: the right one */
    int times;           /* that @before is said, or ENDLESS */
};

struct item {
    char value[2048];
    size_t len;
    unsigned cas;
};

static void say(int fd, const char *bytes, size_t len)
{
    (void)send(fd, bytes, len, MSG_NOSIGNAL); /* or the client is gone */
}

/* Say @before; false once the client has closed. */
static bool begin(int fd, const struct plan *plan)
{
    for (int i = 0; plan->times == ENDLESS || i < plan->times; i++)
        if (send(fd, plan->before, strlen(plan->before), MSG_NOSIGNAL) < 0)
            return false;
    return true;
}

static void show(int fd, const struct item *item)
{
    char line[64];

    if (item->len == 0) {
        say(fd, "EN\r\n", 4);
        return;
    }
    say(fd, line,
        (size_t)snprintf(line, sizeof(line), "VA %zu c%u\r\n", item->len,
                         item->cas));
    say(fd, item->value, item->len);
    say(fd, "\r\n", 2);
}

/* False once the client has closed. */
static bool store(FILE *in, const char *line, struct item *item)
{
    char end[2];

    ASSERT_EQ(sscanf(line, "%*s %*s %*s %*s %zu", &item->len), 1);
    ASSERT_LE(item->len, sizeof(item->value));
    item->cas++;
    return fread(item->value, 1, item->len, in) == item->len &&
           fread(end, 1, 2, in) == 2;
}

static void answer(int fd, const char *line, struct item *item)
{
    if (strncmp(line, "version", 7) == 0)
        say(fd, "VERSION 1.6.18\r\n", 16);
    else if (strncmp(line, "stats", 5) == 0)
        say(fd, "END\r\n", 5);
    else if (strncmp(line, "mg", 2) == 0)
        show(fd, item);
    else if (strncmp(line, "md", 2) == 0) {
        item->len = 0;
        say(fd, "HD\r\n", 4);
    } else {
        say(fd, "STORED\r\n", 8);
    }
}

static bool begins(const char *line, const char *command)
{
    return strncmp(line, command, strlen(command)) == 0;
}

static void serve(struct proc *self, const struct plan *plan, int fd)
{
    FILE *in = fdopen(fd, "r");
    struct item item = {.cas = 1};
    char line[512];

    ASSERT_NOT_NULL(in);
    while (fgets(line, sizeof(line), in)) {
        bool wrong = begins(line, plan->command) ||
                     (plan->another && begins(line, plan->another));

        if ((begins(line, "add") || begins(line, "cas")) &&
            !store(in, line, &item))
            break;
        proc_tell(self, "%.3s", line);
        if (wrong && !begin(fd, plan))
            break;
        if (wrong && plan->instead)
            say(fd, plan->instead, strlen(plan->instead));
        else
            answer(fd, line, &item);
    }
    proc_tell(self, "dropped");
    (void)fclose(in);
}

static void be_hostile(struct proc *self, void *arg)
{
    const struct plan *plan = arg;

    for (;;) {
        int fd = accept(plan->fd, NULL, NULL);

        if (fd >= 0) /* else the client has gone already */
            serve(self, plan, fd);
    }
}

static struct proc *start(struct plan *plan, int *port)
{
    plan->fd = socket_listen(port);
    return proc_start(be_hostile, plan);
}

/* The next line of the server that is @text. */
static void wait_for(struct proc *server, const char *text)
{
    const char *line;

    do {
        line = proc_next(server, PROC_PATIENCE_MS);
        ASSERT_NOT_NULL(line);
    } while (strcmp(line, text) != 0);
}

/* Has the server said @text, or does it soon? */
static bool has_said(struct proc *server, const char *text)
{
    const char *line;

    do
        line = proc_next(server, 10);
    while (line && strcmp(line, text) != 0);
    return line != NULL;
}

/* Every command, answered by a line of another command. */
static const struct plan shapes[] = {
    {.command = "add", .before = "STAT a b\r\n", .times = 1},
    {.command = "mg", .before = "STAT a b\r\n", .times = 1},
    {.command = "md", .before = "STAT a b\r\n", .times = 3},
    {.command = "add", .instead = "VA 1 c1\r\nx\r\n"},
    {.command = "add", .instead = "VERSION 1.6.18\r\n"},
    {.command = "add", .instead = "EN\r\n"},
    {.command = "mg", .instead = "HD\r\n"},
    {.command = "mg", .instead = "STORED\r\n"},
    {.command = "mg", .instead = "END\r\n"},
    {.command = "md", .instead = "VA 1 c1\r\nx\r\n"},
    {.command = "md", .instead = "END\r\n"},
};

TEST(hostile, server_whose_answer_has_another_shape_is_left)
{
    for (size_t i = 0; i < HF_COUNT_OF(shapes); i++) {
        struct plan plan = shapes[i];
        struct proc *server;
        hf_client *client;
        hf_hold *hold;
        int port;

        server = start(&plan, &port);
        client = memcached_open(port, "retry.base=1ms&ttl=1s&io_timeout=300ms");
        do { /* on a busy machine one may end before it asks */
            if (hf_acquire(client, "jobs", WITHIN(50), &hold, NULL) == 0)
                (void)hf_release(hold, NULL); /* what it says depends on when */
        } while (!has_said(server, "dropped"));
        proc_kill(server);
        (void)close(plan.fd);
    }
}

static int ignore(const hf_finding *finding, void *ctx)
{
    (void)finding;
    (void)ctx;
    return 0;
}

TEST(hostile, server_whose_answer_has_no_end_is_left)
{
    struct plan plan = {
        .command = "stats\r", .before = "STAT uptime 1\r\n", .times = ENDLESS};
    int port;
    struct proc *server = start(&plan, &port);
    hf_client *client = memcached_open(port, "ttl=1s&io_timeout=1h");

    ASSERT_LT(hf_doctor(client, ignore, NULL, NULL), 0);
    wait_for(server, "dropped");
}

/* It has our value and a number for it, but says that nothing was stored. */
TEST(hostile, server_that_never_stores_is_not_asked_for_ever)
{
    struct plan plan = {
        .command = "add", .another = "cas", .instead = "NOT_STORED\r\n"};
    int port;
    struct proc *server = start(&plan, &port);
    hf_client *client =
        memcached_open(port, "ttl=1h&io_timeout=300ms&retry.base=1ms");
    hf_request *request = client_start(client, "jobs");

    wait_for(server, "add");
    wait_for(server, "cas");
    wait_for(server, "add"); /* begins again, when the core says so */
    hf_request_free(request);
}
