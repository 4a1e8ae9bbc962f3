/* SPDX-License-Identifier: MIT */
/*
 * proxy.c - a TCP proxy that does what networks do.
 *
 * One thread polls all sockets. What was read waits in a queue with the time
 * at which it may go on. Orders are given under the mutex, and end the poll
 * through a pipe.
 */
#include "proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event.h"
#include "sockets.h"
#include "test.h"

enum { LINKS_MAX = 64, PIECE = 16384, QUEUE_MAX = 256 * 1024 };

struct piece {
    struct piece *next;
    int64_t due_ms;
    size_t len;
    size_t sent;
    char bytes[];
};

/* One direction of a connection. */
struct half {
    struct piece *first;
    struct piece **last;
    size_t queued;
    bool held;
    bool ended; /* the sender has closed its end */
    bool shut;  /* and the receiver was told */
};

struct link {
    int fds[2];            /* the client's and the server's socket; -1: free */
    struct half halves[2]; /* by direction */
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t mutex;
    int listener;
    int port;
    int server_port;
    int orders[2]; /* the pipe */
    bool ending;
    bool reset;
    bool refuse;
    pid_t refused; /* process; 0: none */
    bool sift;     /* reset what it has made */
    bool held[2];
    bool lose_ends;
    const char *hold_at[2];
    int64_t delay_ms;
    size_t slice;
    unsigned corrupt;
    int64_t cut_after[2]; /* -1: never */
    uint64_t bytes[2];
    unsigned chance;
    struct link links[LINKS_MAX];
};

/* ---- links -------------------------------------------------------------- */

static void half_init(struct half *half)
{
    memset(half, 0, sizeof(*half));
    half->last = &half->first;
}

static void half_release(struct half *half)
{
    while (half->first) {
        struct piece *next = half->first->next;

        free(half->first);
        half->first = next;
    }
    half_init(half);
}

static void link_close(struct link *link, bool reset)
{
    struct linger linger = {1, 0};

    for (int i = 0; i < 2; i++) {
        if (link->fds[i] < 0)
            continue;
        if (reset)
            (void)setsockopt(link->fds[i], SOL_SOCKET, SO_LINGER, &linger,
                             sizeof(linger));
        (void)close(link->fds[i]);
        link->fds[i] = -1;
        half_release(&link->halves[i]);
    }
}

static void tune(int fd)
{
    int one = 1;

    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Was the connection whose other end is @fd made by the refused process? */
static bool is_refused(const struct proxy *proxy, int fd)
{
    struct sockaddr_in peer = {0};
    socklen_t len = sizeof(peer);

    return proxy->refused != 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
           process_has_socket(proxy->refused, ntohs(peer.sin_port),
                              proxy->port);
}

static void accept_link(struct proxy *proxy)
{
    int fd = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    struct link refused = {.fds = {fd, -1}};

    bool refuse;

    if (fd < 0)
        return;
    refuse = proxy->refuse || is_refused(proxy, fd);
    for (int i = 0; i < LINKS_MAX && !refuse; i++) {
        struct link *link = &proxy->links[i];

        if (link->fds[0] >= 0)
            continue;
        link->fds[1] = socket_dial(proxy->server_port);
        if (link->fds[1] < 0)
            break;
        link->fds[0] = fd;
        half_init(&link->halves[0]);
        half_init(&link->halves[1]);
        tune(link->fds[0]);
        tune(link->fds[1]);
        return;
    }
    half_init(&refused.halves[0]);
    half_init(&refused.halves[1]);
    link_close(&refused, /* reset= */ true);
}

/* ---- bytes -------------------------------------------------------------- */

static void damage(struct proxy *proxy, struct piece *piece)
{
    for (size_t i = 0; i < piece->len && proxy->corrupt > 0; i++) {
        proxy->chance = proxy->chance * 1103515245u + 12345u;
        if ((proxy->chance >> 16) % proxy->corrupt == 0)
            piece->bytes[i] ^= 0x10;
    }
}

static void take_in(struct proxy *proxy, struct link *link, int direction)
{
    struct half *half = &link->halves[direction];
    size_t most =
        proxy->slice > 0 && proxy->slice < PIECE ? proxy->slice : PIECE;
    struct piece *piece = malloc(sizeof(*piece) + most);
    ssize_t n = piece ? read(link->fds[direction], piece->bytes, most) : -1;

    if (n <= 0) {
        free(piece);
        half->ended |= n == 0 || (errno != EAGAIN && errno != EINTR);
        return;
    }
    piece->next = NULL;
    piece->len = (size_t)n;
    piece->sent = 0;
    piece->due_ms = clock_ms() + proxy->delay_ms;
    damage(proxy, piece);
    *half->last = piece;
    half->last = &piece->next;
    half->queued += (size_t)n;
    if (proxy->hold_at[direction] &&
        memmem(piece->bytes, piece->len, proxy->hold_at[direction],
               strlen(proxy->hold_at[direction]))) {
        proxy->hold_at[direction] = NULL;
        half->held = true;
    }
}

/* How much of @len may pass before a cut. */
static size_t before_cut(const struct proxy *proxy, int direction, size_t len)
{
    int64_t left = proxy->cut_after[direction];

    return left < 0 || (size_t)left > len ? len : (size_t)left;
}

/* False: the connection has to be cut here. */
static bool pass_on(struct proxy *proxy, struct link *link, int direction)
{
    struct half *half = &link->halves[direction];

    while (half->first && half->first->due_ms <= clock_ms()) {
        struct piece *piece = half->first;
        size_t len = before_cut(proxy, direction, piece->len - piece->sent);
        ssize_t n = 0;

        if (len > 0)
            n = send(link->fds[!direction], piece->bytes + piece->sent, len,
                     MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN;
        proxy->bytes[direction] += (uint64_t)n;
        piece->sent += (size_t)n;
        half->queued -= (size_t)n;
        if (proxy->cut_after[direction] >= 0) {
            proxy->cut_after[direction] -= n;
            if (proxy->cut_after[direction] == 0) {
                proxy->cut_after[direction] = -1;
                return false;
            }
        }
        if (piece->sent < piece->len)
            return true;
        half->first = piece->next;
        if (!half->first)
            half->last = &half->first;
        free(piece);
    }
    return true;
}

static void serve_link(struct proxy *proxy, struct link *link)
{
    for (int direction = 0; direction < 2; direction++) {
        struct half *half = &link->halves[direction];

        if (link->fds[0] < 0 || proxy->held[direction])
            continue;
        if (!half->ended && half->queued < QUEUE_MAX)
            take_in(proxy, link, direction);
        if (half->held)
            continue;
        if (!pass_on(proxy, link, direction)) {
            link_close(link, /* reset= */ true);
        } else if (half->ended && !half->first && !half->shut &&
                   (direction == PROXY_TO_CLIENT || !proxy->lose_ends)) {
            (void)shutdown(link->fds[!direction], SHUT_WR);
            half->shut = true;
        }
    }
    if (link->fds[0] >= 0 && link->halves[0].shut && link->halves[1].shut)
        link_close(link, /* reset= */ false);
}

/* ---- the thread --------------------------------------------------------- */

static int add_pollers(struct proxy *proxy, struct pollfd *pollers,
                       bool *ret_waiting)
{
    int n = 0;

    pollers[n++] = (struct pollfd){proxy->orders[0], POLLIN, 0};
    pollers[n++] = (struct pollfd){proxy->listener, POLLIN, 0};
    *ret_waiting = false;
    for (int i = 0; i < LINKS_MAX; i++) {
        struct link *link = &proxy->links[i];

        for (int d = 0; d < 2 && link->fds[0] >= 0; d++) {
            if (proxy->held[d])
                continue;
            *ret_waiting |=
                !link->halves[d].held && link->halves[d].first != NULL;
            if (!link->halves[d].ended && link->halves[d].queued < QUEUE_MAX)
                pollers[n++] = (struct pollfd){link->fds[d], POLLIN, 0};
        }
    }
    return n;
}

static void obey(struct proxy *proxy)
{
    char bytes[64];

    while (read(proxy->orders[0], bytes, sizeof(bytes)) > 0)
        ;
    for (int i = 0; i < LINKS_MAX && (proxy->reset || proxy->sift); i++) {
        struct link *link = &proxy->links[i];

        if (link->fds[0] >= 0 &&
            (proxy->reset || is_refused(proxy, link->fds[0])))
            link_close(link, /* reset= */ true);
    }
    proxy->reset = false;
    proxy->sift = false;
}

static void *proxy_main(void *arg)
{
    struct proxy *proxy = arg;

    (void)pthread_mutex_lock(&proxy->mutex);
    while (!proxy->ending) {
        struct pollfd pollers[2 + 2 * LINKS_MAX];
        bool waiting;
        int n = add_pollers(proxy, pollers, &waiting);

        (void)pthread_mutex_unlock(&proxy->mutex);
        (void)poll(pollers, (nfds_t)n, waiting ? 1 : -1);
        (void)pthread_mutex_lock(&proxy->mutex);
        obey(proxy);
        if (pollers[1].revents)
            accept_link(proxy);
        for (int i = 0; i < LINKS_MAX; i++)
            if (proxy->links[i].fds[0] >= 0)
                serve_link(proxy, &proxy->links[i]);
    }
    (void)pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

static void order(struct proxy *proxy)
{
    (void)!write(proxy->orders[1], "", 1); /* full: it will look anyway */
    (void)pthread_mutex_unlock(&proxy->mutex);
}

static void end_proxy(void *arg)
{
    struct proxy *proxy = arg;

    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->ending = true;
    order(proxy);
    (void)pthread_join(proxy->thread, NULL);
    for (int i = 0; i < LINKS_MAX; i++)
        link_close(&proxy->links[i], /* reset= */ true);
    (void)close(proxy->listener);
    (void)close(proxy->orders[0]);
    (void)close(proxy->orders[1]);
    free(proxy);
}

struct proxy *proxy_start(int server_port)
{
    struct proxy *proxy = calloc(1, sizeof(*proxy));

    if (!proxy || pipe2(proxy->orders, O_CLOEXEC | O_NONBLOCK) != 0)
        FAIL("no pipe: %s", strerror(errno));
    (void)pthread_mutex_init(&proxy->mutex, NULL);
    proxy->listener = socket_listen(&proxy->port);
    (void)fcntl(proxy->listener, F_SETFL, O_NONBLOCK);
    proxy->server_port = server_port;
    proxy->cut_after[0] = -1;
    proxy->cut_after[1] = -1;
    for (int i = 0; i < LINKS_MAX; i++)
        proxy->links[i].fds[0] = proxy->links[i].fds[1] = -1;
    if (pthread_create(&proxy->thread, NULL, proxy_main, proxy) != 0)
        FAIL("no thread");
    test_defer(end_proxy, proxy);
    return proxy;
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

/* ---- orders ------------------------------------------------------------- */

void proxy_pass(struct proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->refuse = false;
    proxy->refused = 0;
    proxy->lose_ends = false;
    for (int d = 0; d < 2; d++) {
        proxy->held[d] = false;
        proxy->hold_at[d] = NULL;
        for (int i = 0; i < LINKS_MAX; i++)
            proxy->links[i].halves[d].held = false;
    }
    proxy->delay_ms = 0;
    proxy->slice = 0;
    proxy->corrupt = 0;
    proxy->cut_after[0] = -1;
    proxy->cut_after[1] = -1;
    order(proxy);
}

void proxy_delay(struct proxy *proxy, int64_t ms)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->delay_ms = ms;
    order(proxy);
}

void proxy_hold(struct proxy *proxy, enum proxy_direction direction, bool on)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->held[direction] = on;
    order(proxy);
}

void proxy_hold_at(struct proxy *proxy, enum proxy_direction direction,
                   const char *text)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->hold_at[direction] = text;
    for (int i = 0; i < LINKS_MAX && !text; i++)
        proxy->links[i].halves[direction].held = false;
    order(proxy);
}

void proxy_lose_ends(struct proxy *proxy, bool on)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->lose_ends = on;
    order(proxy);
}

int proxy_holds(struct proxy *proxy)
{
    int holds = 0;

    (void)pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < LINKS_MAX; i++)
        holds +=
            proxy->links[i].halves[0].held + proxy->links[i].halves[1].held;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return holds;
}

bool proxy_keeps(struct proxy *proxy, enum proxy_direction direction,
                 const char *text)
{
    bool keeps = false;

    (void)pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < LINKS_MAX; i++) {
        const struct half *half = &proxy->links[i].halves[direction];

        for (const struct piece *piece = half->first; half->held && piece;
             piece = piece->next)
            keeps |= memmem(piece->bytes, piece->len, text, strlen(text)) != 0;
    }
    (void)pthread_mutex_unlock(&proxy->mutex);
    return keeps;
}

/* One field is set, by the thread of the test. */
#define ORDER(proxy, field, value)                                             \
    do {                                                                       \
        (void)pthread_mutex_lock(&(proxy)->mutex);                             \
        (proxy)->field = (value);                                              \
        order(proxy);                                                          \
    } while (0)

void proxy_reset(struct proxy *proxy)
{
    ORDER(proxy, reset, true);
}

void proxy_refuse(struct proxy *proxy, bool on)
{
    ORDER(proxy, refuse, on);
}

void proxy_refuse_process(struct proxy *proxy, pid_t pid)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->refused = pid;
    proxy->sift = true;
    order(proxy);
}

void proxy_slice(struct proxy *proxy, size_t bytes)
{
    ORDER(proxy, slice, bytes);
}

void proxy_corrupt(struct proxy *proxy, unsigned n)
{
    ORDER(proxy, corrupt, n);
}

void proxy_cut_after(struct proxy *proxy, enum proxy_direction direction,
                     size_t bytes)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->cut_after[direction] = (int64_t)bytes;
    order(proxy);
}

int proxy_connections(struct proxy *proxy)
{
    int count = 0;

    (void)pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < LINKS_MAX; i++)
        count += proxy->links[i].fds[0] >= 0;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return count;
}

uint64_t proxy_bytes(struct proxy *proxy, enum proxy_direction direction)
{
    uint64_t bytes;

    (void)pthread_mutex_lock(&proxy->mutex);
    bytes = proxy->bytes[direction];
    (void)pthread_mutex_unlock(&proxy->mutex);
    return bytes;
}
