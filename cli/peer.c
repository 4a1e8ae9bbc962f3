/* SPDX-License-Identifier: MIT */
/*
 * peer.c - a client of our HTTP server, which may be slow or hostile.
 *
 * The caller gives one deadline for all of a request, and one for all of a
 * response: a client that moves a byte now and then gets no more time than one
 * that stands still. Signals arrive inside of the waits.
 */
#include "peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lock.h"
#include "signals.h"

bool peer_must_end(void)
{
    /* A descriptor that is ready keeps a wait from letting signals in. */
    (void)signals_wait(/* fd= */ -1, /* timeout_ms= */ 0);
    return signals_first() != 0;
}

bool peer_read(int fd, char *text, size_t size, int64_t until)
{
    size_t used = 0;

    text[0] = '\0';
    while (!strstr(text, "\r\n\r\n") && used < size - 1) {
        int64_t left = until - lock_now_ms();

        if (left <= 0 || peer_must_end())
            return false;
        if (!signals_wait(fd, left))
            continue;

        ssize_t n = recv(fd, text + used, size - 1 - used, MSG_DONTWAIT);
        if (n <= 0)
            return false;
        used += (size_t)n;
        text[used] = '\0';
    }
    return true;
}

bool peer_send(int fd, const char *text, size_t len, int64_t until)
{
    while (len > 0) {
        int64_t left = until - lock_now_ms();

        if (left <= 0 || peer_must_end())
            return false;
        if (!signals_wait_room(fd, left))
            continue;

        ssize_t n = send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}
