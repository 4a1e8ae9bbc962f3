/* SPDX-License-Identifier: MIT */
/*
 * keeper.c - how holdfast release talks to the process that keeps a lock.
 *
 * A keeper listens on a socket in the abstract name space: there is no file to
 * leave behind, and its name is a random key instead of a process number that
 * another process could get. A question is one packet, "check" or "release";
 * the answer is one packet, "exit-code text".
 *
 * The names of such sockets are no secret. So each side asks the kernel for the
 * user of the other one, and talks to its own user alone.
 *
 * Failure: a socket that nobody listens to, or another user, means that the
 * keeper is gone, and with it the lock.
 */
#include "keeper.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli.h"
#include "secret.h"

enum { PACKET_MAX = 1024 };
enum { CHECK_S = 5, RELEASE_S = 60, QUESTION_S = 1 };

static const char *const words[] =
    {[KEEPER_CHECK] = "check", [KEEPER_RELEASE] = "release"};

static socklen_t address_of(const char *key, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};

    /* The first byte stays 0: this is what makes it abstract. */
    int len = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                       "holdfast-keeper-%s", key);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
}

static bool is_of_this_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           peer.uid == geteuid();
}

static void limit(int fd, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

/* ---- who asks ------------------------------------------------------------ */

enum { GONE = -1, SILENT = -2 };

/* The answer's exit code, GONE or SILENT. */
static int exchange(int fd, enum keeper_request request, char *text,
                    size_t size)
{
    char packet[PACKET_MAX + 1];
    const char *word = words[request];
    int code;
    int at = 0;

    if (send(fd, word, strlen(word), MSG_NOSIGNAL) < 0)
        return GONE;
    ssize_t len = recv(fd, packet, PACKET_MAX, 0);
    if (len <= 0)
        return len < 0 && errno == EAGAIN ? SILENT : GONE;
    packet[len] = '\0';
    if (sscanf(packet, "%3d %n", &code, &at) != 1 || at == 0)
        return GONE;
    if (text)
        snprintf(text, size, "%s", packet + at);
    return code;
}

int keeper_ask(const char *key, enum keeper_request request, char *text,
               size_t size)
{
    struct sockaddr_un address;
    socklen_t len = address_of(key, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int code = GONE;

    if (fd < 0)
        return CLI_INTERNAL;
    limit(fd, request == KEEPER_CHECK ? CHECK_S : RELEASE_S);
    if (connect(fd, (struct sockaddr *)&address, len) != 0)
        code = errno == EAGAIN ? SILENT : GONE;
    else if (is_of_this_user(fd))
        code = exchange(fd, request, text, size);
    close(fd);
    if (code >= 0)
        return code;
    if (text)
        snprintf(text, size, "its keeper %s",
                 code == GONE ? "is gone" : "does not answer");
    return code == GONE ? CLI_LOST : CLI_UNAVAILABLE;
}

/* ---- who answers --------------------------------------------------------- */

int keeper_listen(char key[SECRET_KEY + 1])
{
    struct sockaddr_un address;
    int fd;

    if (secret_key(key) != 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    socklen_t len = address_of(key, &address);
    if (bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 16) == 0)
        return fd;
    close(fd);
    return -1;
}

int keeper_question(int socket, int *ret_fd)
{
    char packet[16];
    int fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return -1;
    limit(fd, QUESTION_S);
    if (is_of_this_user(fd)) {
        ssize_t len = recv(fd, packet, sizeof(packet), 0);

        for (int i = KEEPER_CHECK; i <= KEEPER_RELEASE; i++)
            if (len == (ssize_t)strlen(words[i]) &&
                memcmp(packet, words[i], (size_t)len) == 0) {
                *ret_fd = fd;
                return i;
            }
    }
    close(fd);
    return -1;
}

void keeper_answer(int fd, int code, const char *text)
{
    char packet[PACKET_MAX];
    int len = snprintf(packet, sizeof(packet), "%d %s", code, text);

    if (len >= (int)sizeof(packet))
        len = (int)sizeof(packet) - 1;
    (void)send(fd, packet, (size_t)len, MSG_NOSIGNAL); /* who asked has left */
    close(fd);
}
