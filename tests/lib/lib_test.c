/* SPDX-License-Identifier: MIT */
/* lib_test.c - the fixtures do what they say. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event.h"
#include "proc.h"
#include "proxy.h"
#include "server.h"
#include "sockets.h"
#include "tempdir.h"
#include "test.h"

/* The path of this program: it is its own echo server. */
static const char *self_path;

/* ---- harness, directories, processes ------------------------------------ */

TEST(lib, texts_and_numbers_compare)
{
    ASSERT_EQ(2 + 2, 4);
    ASSERT_LT(-1, 1);
    ASSERT_STREQ("a", "a");
    ASSERT_STRNE("a", "b");
    ASSERT_HAS("haystack", "st");
    ASSERT_MEM_EQ("abc", "abd", 2);
    ASSERT_OK(0, NULL);
    ASSERT_RC(HF_EBUSY, HF_EBUSY, NULL);
    ASSERT_HAS(test_name(), "lib.texts");
}

static int undone;

static void undo(void *arg)
{
    undone = undone * 10 + *(int *)arg;
}

TEST(lib, deferred_calls_are_made_last_first_a)
{
    static int one = 1;
    static int two = 2;

    test_defer(undo, &one);
    test_defer(undo, &two);
    ASSERT_EQ(undone, 0);
}

TEST(lib, deferred_calls_are_made_last_first_b)
{
    ASSERT_EQ(undone, 21);
}

TEST(lib, a_directory_is_new_and_private)
{
    const char *path = tempdir_new();
    struct stat info;

    ASSERT_EQ(stat(path, &info), 0);
    ASSERT_EQ(info.st_mode & 07777, 0700);
    tempdir_remove(path);
    ASSERT_EQ(stat(path, &info), -1);
}

static void talk(struct proc *self, void *arg)
{
    const char *line;

    proc_tell(self, "hello %s", (const char *)arg);
    while ((line = proc_hear(self)) != NULL && strcmp(line, "end") != 0)
        proc_tell(self, "heard %s", line);
}

TEST(lib, a_process_talks_stops_and_ends)
{
    char name[] = "you";
    struct proc *proc = proc_start(talk, name);

    (void)proc_expect(proc, "hello you");
    proc_say(proc, "one");
    proc_say(proc, "two");
    (void)proc_expect(proc, "heard one");
    (void)proc_expect(proc, "heard two");
    proc_stop(proc);
    proc_say(proc, "three");
    ASSERT_TRUE(proc_is_silent(proc, 20));
    proc_continue(proc);
    (void)proc_expect(proc, "heard three");
    proc_say(proc, "end");
    ASSERT_NULL(proc_next(proc, 5000));
    proc_join(proc);
}

TEST(lib, a_killed_process_is_gone)
{
    char name[] = "you";
    struct proc *proc = proc_start(talk, name);
    pid_t pid = proc_pid(proc);

    (void)proc_expect(proc, "hello");
    proc_kill(proc);
    ASSERT_EQ(kill(pid, 0), -1);
    ASSERT_EQ(errno, ESRCH);
    ASSERT_NULL(proc_next(proc, 5000));
}

/* ---- a server of our own: it echoes ------------------------------------- */

static int echo_main(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(port)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 8) != 0)
        return 1;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        char bytes[4096];
        ssize_t n;

        while ((n = read(fd, bytes, sizeof(bytes))) > 0)
            if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                break;
        (void)close(fd);
    }
}

static struct server *start_echo(void)
{
    static const char *argv[4];

    argv[0] = self_path;
    argv[1] = "--echo";
    argv[2] = "{port}";
    argv[3] = NULL;
    return server_start(argv);
}

static void close_fd(void *arg)
{
    (void)close((int)(intptr_t)arg);
}

static int connect_to(int port)
{
    int fd = socket_dial_now(port);

    test_defer(close_fd, (void *)(intptr_t)fd);
    return fd;
}

static void say(int fd, const char *text)
{
    ASSERT_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes back within @wait_ms: the length, 0 at the end, -1 for nothing,
 * -2 for a reset. */
static int hear(int fd, char *text, size_t size, int wait_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    ssize_t n;

    if (poll(&poller, 1, wait_ms) == 0)
        return -1;
    n = read(fd, text, size - 1);
    if (n < 0)
        return -2;
    text[n] = '\0';
    return (int)n;
}

TEST(lib, a_server_starts_ends_and_starts_again)
{
    struct server *server = start_echo();
    int port = server_port(server);
    pid_t pid = server_pid(server);
    char text[64];
    int fd = connect_to(port);

    say(fd, "ping");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 4);
    server_pause(server);
    say(fd, "ping");
    ASSERT_EQ(hear(fd, text, sizeof(text), 20), -1);
    server_resume(server);
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 4);
    server_kill(server);
    ASSERT_LE(hear(fd, text, sizeof(text), 5000), 0);
    server_restart(server);
    ASSERT_EQ(server_port(server), port);
    ASSERT_NE(server_pid(server), pid);
    say(connect_to(port), "ping");
    server_stop(server);
    ASSERT_EQ(server_pid(server), 0);
    ASSERT_TRUE(server_is_installed("sh"));
    ASSERT_FALSE(server_is_installed("no-such-program"));
}

TEST(lib, a_proxy_passes_holds_and_delays)
{
    struct proxy *proxy = proxy_start(server_port(start_echo()));
    int fd = connect_to(proxy_port(proxy));
    int64_t before;
    char text[64];

    say(fd, "one");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 3);
    ASSERT_STREQ(text, "one");
    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    say(fd, "two");
    ASSERT_EQ(hear(fd, text, sizeof(text), 50), -1);
    EVENTUALLY(proxy_bytes(proxy, PROXY_TO_SERVER) == 6);
    proxy_pass(proxy);
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 3);
    proxy_delay(proxy, 50);
    before = clock_ms();
    say(fd, "three");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 5);
    ASSERT_GE(clock_ms() - before, 99);
}

TEST(lib, a_proxy_holds_one_connection_at_a_word)
{
    struct proxy *proxy = proxy_start(server_port(start_echo()));
    int fd = connect_to(proxy_port(proxy));
    char text[64];

    proxy_hold_at(proxy, PROXY_TO_SERVER, "halt");
    say(fd, "one");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 3);
    ASSERT_FALSE(proxy_holds(proxy));
    say(fd, "halt!");
    EVENTUALLY(proxy_holds(proxy));
    ASSERT_EQ(proxy_bytes(proxy, PROXY_TO_SERVER), 3);
    proxy_pass(proxy);
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 5);
}

TEST(lib, a_proxy_slices_and_corrupts)
{
    struct proxy *proxy = proxy_start(server_port(start_echo()));
    int fd = connect_to(proxy_port(proxy));
    char text[64];
    int len = 0;

    proxy_slice(proxy, 1);
    say(fd, "sliced");
    while (len < 6) {
        int n = hear(fd, text + len, sizeof(text) - (size_t)len, 5000);

        ASSERT_GT(n, 0);
        len += n;
    }
    ASSERT_STREQ(text, "sliced");
    proxy_pass(proxy);
    proxy_corrupt(proxy, 1);
    say(fd, "a");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 1);
    ASSERT_STREQ(text, "a"); /* there and back: changed twice */
    ASSERT_EQ(proxy_bytes(proxy, PROXY_TO_CLIENT), 7);
}

TEST(lib, a_proxy_refuses_what_one_process_makes)
{
    struct server *server = start_echo();
    struct proxy *proxy = proxy_start(server_port(server));
    int fd = connect_to(proxy_port(proxy));
    char text[64];

    proxy_refuse_process(proxy, server_pid(server));
    say(fd, "one");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 3);
    proxy_refuse_process(proxy, getpid());
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), -2);
    ASSERT_EQ(hear(connect_to(proxy_port(proxy)), text, sizeof(text), 5000),
              -2);
    proxy_pass(proxy);
    fd = connect_to(proxy_port(proxy));
    say(fd, "two");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 3);
}

TEST(lib, a_proxy_resets_refuses_and_cuts)
{
    struct proxy *proxy = proxy_start(server_port(start_echo()));
    int fd = connect_to(proxy_port(proxy));
    char text[64];

    say(fd, "one");
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), 3);
    ASSERT_EQ(proxy_connections(proxy), 1);
    proxy_reset(proxy);
    ASSERT_EQ(hear(fd, text, sizeof(text), 5000), -2);
    ASSERT_EQ(proxy_connections(proxy), 0);
    proxy_refuse(proxy, true);
    fd = connect_to(proxy_port(proxy));
    ASSERT_LE(hear(fd, text, sizeof(text), 5000), 0);
    proxy_pass(proxy);
    fd = connect_to(proxy_port(proxy));
    proxy_cut_after(proxy, PROXY_TO_SERVER, 2);
    say(fd, "four");
    ASSERT_LE(hear(fd, text, sizeof(text), 5000), 2);
    EVENTUALLY(proxy_connections(proxy) == 0);
}

/* ---- events ------------------------------------------------------------- */

TEST(lib, an_event_is_counted_and_awaited)
{
    struct event event = EVENT_INIT;

    ASSERT_TRUE(event_is_silent(&event, 1, 5));
    event_tell(&event, 7);
    event_await(&event, 1, 1000);
    ASSERT_EQ(event_count(&event), 1);
    ASSERT_EQ(event.values[0], 7);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--echo") == 0)
        return echo_main(argv[2]);
    self_path = realpath("/proc/self/exe", NULL);
    return test_main(argc, argv);
}
