/* SPDX-License-Identifier: MIT */
/*
 * fake.c - a server that speaks the protocol, and lies.
 *
 * One thread accepts, and one serves each connection until its client goes.
 */
#include "fake.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "sockets.h"
#include "test.h"

enum { DONE = 2, MORE = 8, QUERY = 3, PREPARE = 22, EXECUTE = 23 };

static enum fake_lie lie;
/* One server; a test may start several. */
struct fake {
    pthread_t thread;
    int listener;
};
static atomic_int logins;
static atomic_int waits;
static atomic_uint refuses; /* the second login, with this error */
static int connections[64]; /* open ones; 0: none */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_wait; /* what this connection prepared last */

struct packets {
    uint8_t bytes[4096];
    size_t len;
    uint8_t turn;
};

static void begin(struct packets *to)
{
    to->len += 4; /* put_length() */
}

static void put(struct packets *to, const void *bytes, size_t len)
{
    ASSERT_LT(to->len + len, sizeof(to->bytes));
    memcpy(to->bytes + to->len, bytes, len);
    to->len += len;
}

static void put_number(struct packets *to, uint64_t number, size_t len)
{
    for (size_t i = 0; i < len; i++, number >>= 8) {
        uint8_t byte = (uint8_t)number;

        put(to, &byte, 1);
    }
}

static void put_text(struct packets *to, const char *text)
{
    put_number(to, strlen(text), 1);
    put(to, text, strlen(text));
}

/* The packet that begins at @at is whole. */
static void end(struct packets *to, size_t at)
{
    size_t len = to->len - at - 4;

    to->bytes[at] = (uint8_t)len;
    to->bytes[at + 1] = (uint8_t)(len >> 8);
    to->bytes[at + 2] = 0;
    to->bytes[at + 3] = to->turn++;
}

static void put_done(struct packets *to, unsigned status)
{
    size_t at = to->len;

    begin(to);
    put_number(to, 0, 1);
    put_number(to, 2, 1); /* rows, and the number of the insert */
    put_number(to, 9, 1);
    put_number(to, status, 2);
    put_number(to, 0, 2);
    end(to, at);
}

static void put_error(struct packets *to, unsigned code, const char *text)
{
    size_t at = to->len;

    begin(to);
    put_number(to, 255, 1);
    put_number(to, code, 2);
    put(to, "#HY000", 6);
    put(to, text, strlen(text));
    end(to, at);
}

static void put_end(struct packets *to, unsigned status)
{
    size_t at = to->len;

    begin(to);
    put_number(to, 254, 1);
    put_number(to, 0, 2);
    put_number(to, status, 2);
    end(to, at);
}

static void put_column(struct packets *to)
{
    size_t at = to->len;

    begin(to);
    put_text(to, "def");
    for (int i = 0; i < 5; i++)
        put_text(to, "");
    put_number(to, 12, 1);
    put_number(to, 33, 2);
    put_number(to, 255, 4);
    put_number(to, 253, 1);
    put_number(to, 0, 5);
    end(to, at);
}

static void put_columns(struct packets *to, unsigned n)
{
    size_t at = to->len;

    begin(to);
    put_number(to, n, 1);
    end(to, at);
    for (unsigned i = 0; i < n; i++)
        put_column(to);
    put_end(to, DONE);
}

static void put_row(struct packets *to, const char *const *fields, unsigned n)
{
    size_t at = to->len;

    begin(to);
    for (unsigned i = 0; i < n; i++) {
        if (fields[i])
            put_text(to, fields[i]);
        else
            put_number(to, 251, 1);
    }
    end(to, at);
}

static bool send_all(int fd, struct packets *from)
{
    size_t at = 0;

    while (at < from->len) {
        ssize_t n = send(fd, from->bytes + at, from->len - at, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    from->len = 0;
    return true;
}

static void greet(struct packets *to)
{
    const char *version = lie == FAKE_NO_VARIABLE ? "8.0.11-TiDB-v7.5.0"
                                                  : "5.5.5-10.11.9-MariaDB";
    unsigned can = 0xf7feU & ~0x800U; /* no TLS */

    if (lie == FAKE_PROGRESS) {
        put_error(to, 0xffff, "");
        return;
    }
    begin(to);
    put_number(to, 10, 1);
    put(to, version, strlen(version) + 1);
    put_number(to, 77, 4);
    put(to, "abcdefgh", 9);
    put_number(to, can, 2);
    put_number(to, 45, 1);
    put_number(to, DONE, 2);
    put_number(to, 0x000f, 2);
    put_number(to, 21, 1);
    put_number(to, 0, 8);
    put_number(to, 0, 2);
    put(to, "ijklmnopqrst", 13);
    put(to, "mysql_native_password", 22);
    end(to, 0);
}

static bool is(const char *text, const char *words)
{
    return strncmp(text, words, strlen(words)) == 0;
}

static unsigned count(const char *text, char what)
{
    unsigned n = 0;

    for (; *text != '\0'; text++)
        n += *text == what;
    return n;
}

/* As many columns as the answer should have. */
static unsigned columns_of(const char *text)
{
    const char *last = strrchr(text, ';');

    last = last ? last + 1 : text;
    return strstr(last, "VERSION()")   ? 13
           : strstr(last, "UNION ALL") ? 9
           : strstr(last, "@hf_place") ? 4
                                       : 2;
}

static bool lie_about_rows(int fd, struct packets *to, const char *text)
{
    static const char *const one[] = {"AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDDEEEE"};
    static const char *const nulls[16] = {NULL};
    unsigned n = lie == FAKE_ONE_COLUMN ? 1 : columns_of(text);

    put_columns(to, n);
    do {
        put_row(to, lie == FAKE_ONE_COLUMN ? one : nulls, n);
    } while (lie == FAKE_ENDLESS_ROWS && send_all(fd, to));
    put_end(to, DONE);
    return send_all(fd, to);
}

static bool answer_query(int fd, struct packets *to, const char *text)
{
    static const char *const session[] = {"1", "locks", "a fake"};

    if (is(text, "SET time_zone") && lie == FAKE_NO_VARIABLE) {
        put_error(to, 1193, "Unknown system variable 'it'");
    } else if (is(text, "SET time_zone")) {
        put_done(to, DONE | MORE);
        put_columns(to, 3);
        put_row(to, session, 3);
        put_end(to, DONE);
    } else if (lie == FAKE_RENEWS_NOTHING && is(text, "DO 1")) {
        put_error(to, 1317, "Query execution was interrupted");
    } else if (lie == FAKE_WAITS && strstr(text, "KILL CONNECTION")) {
        put_error(to, 1094, "Unknown thread id");
    } else if (lie == FAKE_RENEWS_NOTHING || lie == FAKE_PREPARES_NO_WAIT ||
               lie == FAKE_WAITS || is(text, "ROLLBACK")) {
        put_done(to, DONE);
    } else if (lie == FAKE_ENDLESS_RESULTS) {
        do {
            put_done(to, DONE | MORE);
        } while (send_all(fd, to));
    } else {
        return lie_about_rows(fd, to, text);
    }
    return send_all(fd, to);
}

static bool answer_prepare(int fd, struct packets *to, const char *text)
{
    unsigned n = lie == FAKE_MANY_PARAMETERS ? 5000 : count(text, '?');
    size_t at = to->len;

    is_wait = strstr(text, ",3600)") != NULL;
    if (is_wait && lie == FAKE_PREPARES_NO_WAIT) {
        atomic_fetch_add(&waits, 1);
        put_error(to, 1461, "Can't create more prepared statements");
        return send_all(fd, to);
    }
    begin(to);
    put_number(to, 0, 1);
    put_number(to, 1, 4);
    put_number(to, 0, 2);
    put_number(to, n, 2);
    put_number(to, 0, 3);
    end(to, at);
    for (unsigned i = 0; i < n; i++) {
        put_column(to);
        if (!send_all(fd, to))
            return false;
    }
    if (n > 0)
        put_end(to, DONE);
    return send_all(fd, to);
}

static bool answer(int fd, uint8_t turn, const char *packet)
{
    struct packets to = {.turn = (uint8_t)(turn + 1)};

    switch (packet[0]) {
    case QUERY:
        return answer_query(fd, &to, packet + 1);
    case PREPARE:
        return answer_prepare(fd, &to, packet + 1);
    case EXECUTE:
        atomic_fetch_add(&waits, is_wait ? 1 : 0);
        if (is_wait && lie == FAKE_WAITS)
            return true;
        if (lie == FAKE_RENEWS_NOTHING)
            put_done(&to, DONE);
        else
            put_error(&to, 1690, "BIGINT UNSIGNED value is out of range");
        return send_all(fd, &to);
    default:
        return false;
    }
}

/* One packet; its turn, or -1. */
static int hear(int fd, char *packet, size_t size)
{
    uint8_t head[4];
    size_t len;

    if (recv(fd, head, 4, MSG_WAITALL) != 4)
        return -1;
    len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    if (len >= size || recv(fd, packet, len, MSG_WAITALL) != (ssize_t)len)
        return -1;
    packet[len] = '\0';
    return head[3];
}

/* Put @to in the place of @from; 0 is no connection. */
static void replace_connection(int from, int to)
{
    (void)pthread_mutex_lock(&guard);
    for (size_t i = 0; i < HF_COUNT_OF(connections); i++) {
        if (connections[i] == from) {
            connections[i] = to;
            break;
        }
    }
    (void)pthread_mutex_unlock(&guard);
}

void fake_break(unsigned code)
{
    atomic_store(&refuses, code);
    atomic_store(&logins, 0);
    (void)pthread_mutex_lock(&guard);
    for (size_t i = 0; i < HF_COUNT_OF(connections); i++) {
        if (connections[i] != 0)
            (void)shutdown(connections[i], SHUT_RDWR);
    }
    (void)pthread_mutex_unlock(&guard);
}

static void *serve(void *arg)
{
    static const size_t size = 1 << 17;
    char *packet = malloc(size);
    struct packets to = {.turn = 0};
    int fd = (int)(intptr_t)arg;
    int turn;

    replace_connection(0, fd);
    greet(&to);
    if (packet && send_all(fd, &to) && (turn = hear(fd, packet, size)) >= 0) {
        to.turn = (uint8_t)(turn + 1);
        if (atomic_fetch_add(&logins, 1) == 1 && atomic_load(&refuses) != 0)
            put_error(&to, atomic_load(&refuses), "no");
        else
            put_done(&to, DONE);
        while (send_all(fd, &to) && (turn = hear(fd, packet, size)) >= 0 &&
               answer(fd, (uint8_t)turn, packet))
            continue;
    }
    free(packet);
    replace_connection(fd, 0);
    (void)close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    const struct fake *fake = arg;
    int fd;

    while ((fd = accept(fake->listener, NULL, NULL)) >= 0) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            (void)pthread_detach(thread);
    }
    return NULL;
}

static void stop(void *arg)
{
    struct fake *fake = arg;

    socket_unlisten(fake->listener, fake->thread);
    free(fake);
}

int fake_start(enum fake_lie which)
{
    struct fake *fake = malloc(sizeof(*fake));
    int port;

    lie = which;
    atomic_store(&logins, 0);
    atomic_store(&waits, 0);
    atomic_store(&refuses, 0);
    ASSERT_NOT_NULL(fake);
    fake->listener = socket_listen(&port);
    ASSERT_EQ(pthread_create(&fake->thread, NULL, accept_all, fake), 0);
    test_defer(stop, fake);
    return port;
}

int fake_logins(void)
{
    return atomic_load(&logins);
}

int fake_waits(void)
{
    return atomic_load(&waits);
}
