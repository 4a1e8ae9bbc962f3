/* SPDX-License-Identifier: MIT */
/*
 * notify_test.c - what a service manager hears of hold and elect, and the units
 * of examples/systemd.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

static void close_manager(void *arg)
{
    close(*(int *)arg);
}

/* Listen as systemd does; the watchdog waits 200 ms. */
static int manager(void)
{
    static int fd;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify",
             command_dir());
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_TRUE(fd >= 0);
    ASSERT_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    test_defer(close_manager, &fd);
    command_variable("NOTIFY_SOCKET", address.sun_path);
    command_variable("WATCHDOG_USEC", "200000");
    return fd;
}

/* Read until @text comes; fails if @never comes before. */
static void expect(int fd, const char *text, const char *never)
{
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        char message[1024] = "";

        if (poll(&polled, 1, COMMAND_PATIENCE_MS) != 1)
            FAIL("no %s came", text);
        ASSERT_TRUE(recv(fd, message, sizeof(message) - 1, 0) >= 0);
        if (strstr(message, text))
            return;
        if (strstr(message, never))
            FAIL("%s came before %s", never, text);
    }
}

TEST(notify, hold_is_ready_when_it_holds_and_keeps_the_watchdog_quiet)
{
    struct command *other = COMMAND("hold", "x");
    struct command *hold;
    int fd;

    command_expect(other, "held");
    fd = manager();
    hold = COMMAND("hold", "x", "--until-signal");
    command_close_input(hold);
    expect(fd, "STATUS=waiting for \"x\"", "READY=1");
    command_close_input(other);
    expect(fd, "READY=1\nSTATUS=holding \"x\"", "STOPPING=1");
    expect(fd, "WATCHDOG=1", "STOPPING=1");
    expect(fd, "WATCHDOG=1", "STOPPING=1");
    command_signal(hold, SIGTERM);
    expect(fd, "STOPPING=1", "READY=1");
    ASSERT_EQ(command_wait(hold), 0);
}

TEST(notify, elect_is_ready_when_it_leads)
{
    int fd = manager();
    struct command *elect = COMMAND("elect", "x", "--", "sleep", "100");

    expect(fd, "STATUS=campaigning for \"x\"", "READY=1");
    expect(fd, "READY=1\nSTATUS=holding \"x\"", "STOPPING=1");
    expect(fd, "WATCHDOG=1", "STOPPING=1");
    command_signal(elect, SIGTERM);
    expect(fd, "STOPPING=1", "READY=1");
    ASSERT_EQ(command_wait(elect), 128 + SIGTERM);
}

/* The ExecStart= of a unit, with our command and our programs. */
static struct command *start_unit(const char *unit)
{
    static const char start[] = "\nExecStart=/usr/bin/holdfast ";
    static const char programs[] = "/usr/local/bin/";
    char path[512];
    char line[2048];

    snprintf(path, sizeof(path), HOLDFAST_SOURCE "/examples/systemd/%s", unit);
    const char *at = strstr(file_text(path), start);
    ASSERT_NOT_NULL(at);
    at += sizeof(start) - 1;
    snprintf(line, sizeof(line), "exec %s %.*s", HOLDFAST_COMMAND,
             (int)strcspn(at, "\n"), at);
    char *program = strstr(line, programs);
    if (program) {
        char name[128];

        snprintf(name, sizeof(name), "%s", program + sizeof(programs) - 1);
        snprintf(program, sizeof(line) - (size_t)(program - line), "%s",
                 command_path(name));
        file_write(command_path(name), "#!/bin/sh\necho ran\n");
        ASSERT_EQ(chmod(command_path(name), 0700), 0);
    }
    return PROGRAM("/bin/sh", "-c", line);
}

TEST(notify, units_of_the_examples_run)
{
    int fd = manager();
    struct command *unit = start_unit("nightly.service");

    ASSERT_EQ(command_wait(unit), 0);
    ASSERT_STREQ(command_out(unit), "ran\n");
    unit = start_unit("leader.service");
    ASSERT_EQ(command_wait(unit), 0);
    ASSERT_STREQ(command_out(unit), "ran\n");
    expect(fd, "READY=1", "nothing");
    unit = start_unit("lock.service");
    expect(fd, "READY=1", "nothing");
    command_signal(unit, SIGTERM);
    ASSERT_EQ(command_wait(unit), 0);
}
