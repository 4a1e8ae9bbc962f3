/* SPDX-License-Identifier: MIT */
/*
 * metrics_test.c - what Prometheus is told, in each of the three ways.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

/* A holder and a waiter of @name. */
static struct command *hold_with_waiter(const char *name,
                                        struct command **ret_waiter)
{
    struct command *hold = COMMAND("hold", name);

    command_expect(hold, "held");
    *ret_waiter = COMMAND("hold", name);
    for (;;) {
        struct command *ls = FINISH(0, "ls", "--json");

        if (strstr(command_out(ls), "\"waiters\":1"))
            return hold;
    }
}

static void assert_scrape(const char *text)
{
    ASSERT_HAS(text, "\nholdfast_up 1\n");
    ASSERT_HAS(text, "\nholdfast_locks 1\n");
    ASSERT_HAS(text, "# TYPE holdfast_lock_holders gauge\n"
                     "holdfast_lock_holders{name=\"a\\\"b\"} 1\n");
    ASSERT_HAS(text, "\nholdfast_lock_waiters{name=\"a\\\"b\"} 1\n");
    ASSERT_HAS(text, "\nholdfast_lock_held_seconds{name=\"a\\\"b\"} ");
    ASSERT_HAS(text, "\nholdfast_lock_oldest_wait_seconds{name=\"a\\\"b\"} ");
    ASSERT_HAS(text, "\nholdfast_lock_lease_seconds{name=\"a\\\"b\"} ");
}

TEST(metrics, tell_holders_waiters_and_leases)
{
    struct command *waiter;
    struct command *hold = hold_with_waiter("a\"b", &waiter);
    struct command *metrics = FINISH(0, "metrics");

    assert_scrape(command_out(metrics));
    metrics = FINISH(0, "metrics", "other");
    ASSERT_HAS(command_out(metrics), "\nholdfast_locks 0\n");
    FINISH(0, "metrics", "--textfile", command_path("holdfast.prom"));
    assert_scrape(file_text(command_path("holdfast.prom")));
    FINISH(64, "metrics", "--textfile", "/no/such/file");
    command_close_input(hold);
    command_close_input(waiter);
    ASSERT_EQ(command_wait(hold), 0);
    ASSERT_EQ(command_wait(waiter), 0);
}

/* A connection that has sent @request. */
static int begin(long port, const char *request)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ASSERT_EQ(write(fd, request, strlen(request)), (long)strlen(request));
    return fd;
}

/* Everything that the server says; ends the connection. */
static char *read_all(int fd)
{
    char *text = calloc(1, 65536);
    size_t used = 0;
    ssize_t n;

    while ((n = read(fd, text + used, 65535 - used)) > 0)
        used += (size_t)n;
    close(fd);
    return text;
}

static char *ask(long port, const char *request)
{
    return read_all(begin(port, request));
}

static struct command *start_server(long *ret_port)
{
    struct command *server = COMMAND("metrics", "--listen", "127.0.0.1:0");

    command_expect_err(server, "listening on 127.0.0.1:");
    command_expect_err(server, "\n");
    *ret_port = strtol(strrchr(command_err(server), ':') + 1, NULL, 10);
    return server;
}

TEST(metrics, are_served_by_http)
{
    struct command *waiter;
    struct command *hold = hold_with_waiter("a\"b", &waiter);
    long port;
    struct command *server = start_server(&port);
    char *text = ask(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");

    ASSERT_HAS(text, "HTTP/1.1 200 OK\r\n");
    assert_scrape(text);
    free(text);
    text = ask(port, "POST /metrics HTTP/1.1\r\n\r\n");
    ASSERT_HAS(text, "HTTP/1.1 404 ");
    free(text);
    free(ask(port, "garbage")); /* two seconds, and the next is served */
    text = ask(port, "GET /metrics HTTP/1.0\r\n\r\n");
    assert_scrape(text);
    free(text);
    command_signal(server, SIGTERM);
    ASSERT_EQ(command_wait(server), 0);
    FINISH(64, "metrics", "--listen", "localhost");
    command_close_input(hold);
    command_close_input(waiter);
    ASSERT_EQ(command_wait(hold), 0);
    ASSERT_EQ(command_wait(waiter), 0);
}

/* Clock ticks of processor time that @pid has used. */
static long processor_time(pid_t pid)
{
    char path[64];
    unsigned long user = 0;
    unsigned long kernel = 0;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    ASSERT_EQ(sscanf(strrchr(file_text(path), ')'),
                     ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                     &user, &kernel),
              2);
    return (long)(user + kernel);
}

TEST(metrics, server_without_descriptors_pauses_and_goes_on)
{
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = 1024};
    const struct rlimit enough = {.rlim_cur = 1024, .rlim_max = 1024};
    long port;
    struct command *server = start_server(&port);
    long before;
    char *text;
    int fd;

    ASSERT_EQ(prlimit(command_pid(server), RLIMIT_NOFILE, &none, NULL), 0);
    before = processor_time(command_pid(server));
    fd = begin(port, "GET /metrics HTTP/1.1\r\n\r\n");
    command_read(server, 1000);
    ASSERT_LT(processor_time(command_pid(server)) - before, 20);
    ASSERT_EQ(prlimit(command_pid(server), RLIMIT_NOFILE, &enough, NULL), 0);
    text = read_all(fd);
    ASSERT_HAS(text, "HTTP/1.1 200 OK\r\n");
    free(text);
    command_signal(server, SIGTERM);
    ASSERT_EQ(command_wait(server), 0);
}

TEST(metrics, of_one_process_go_to_its_file)
{
    static const char *const acquired = "holdfast_acquires_total{";
    char path[512];

    snprintf(path, sizeof(path), "%s", command_path("run.prom"));
    FINISH(0, "run", "x", "--metrics-textfile", path, "--", "true");
    ASSERT_HAS(file_text(path), acquired);
    FINISH(0, "elect", "x", "--metrics-textfile", path, "--", "grep", "-q",
           acquired, path);

    struct command *hold = COMMAND("hold", "x", "--metrics-textfile", path);
    command_expect(hold, "held");
    command_close_input(hold);
    ASSERT_EQ(command_wait(hold), 0);
    ASSERT_HAS(file_text(path), acquired);
    /* The lock matters more. */
    FINISH(3, "run", "x", "--metrics-textfile", "/no/such", "--", "sh", "-c",
           "exit 3");
}
