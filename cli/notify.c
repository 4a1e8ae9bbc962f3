/* SPDX-License-Identifier: MIT */
/*
 * notify.c - what systemd is told of hold and elect.
 *
 * The protocol of sd_notify(3) is a datagram of NAME=VALUE lines to the socket
 * that NOTIFY_SOCKET names: a path, or with '@' a name without a file. READY=1
 * says that the lock is held, STATUS is what systemctl shows, STOPPING=1 comes
 * before the release. Where WATCHDOG_USEC asks for it, WATCHDOG=1 comes twice
 * in that time, from the loop that watches the lock.
 *
 * Failure: a manager that does not listen changes nothing.
 */
#include "notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lock.h"
#include "options.h"
#include "text.h"

void notify_say(const char *format, ...)
{
    const char *path = secure_getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char text[512];
    size_t len = path ? strlen(path) : 0;
    va_list args;

    if (len < 2 || len >= sizeof(address.sun_path) ||
        (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);

    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void notify_ready(const char *name)
{
    static bool ready;

    notify_say("%sSTATUS=holding \"%s\"", ready ? "" : "READY=1\n",
               text_safe(name));
    ready = true;
}

/* Twice in the time that the manager waits; 0: nobody watches. */
static int64_t interval_ms(void)
{
    const char *usec = secure_getenv("WATCHDOG_USEC");
    const char *pid = secure_getenv("WATCHDOG_PID");
    uint64_t number;

    if (!usec || !options_number(usec, INT64_MAX, &number))
        return 0;
    if (pid && strtol(pid, NULL, 10) != (long)getpid())
        return 0;
    return number / 2000 > 0 ? (int64_t)(number / 2000) : 1;
}

int64_t notify_alive(void)
{
    static int64_t interval = -1;
    static int64_t due;
    int64_t now = lock_now_ms();

    if (interval < 0)
        interval = interval_ms();
    if (interval == 0)
        return -1;
    if (now >= due) {
        notify_say("WATCHDOG=1");
        due = now + interval;
    }
    return due - now;
}
