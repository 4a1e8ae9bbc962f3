/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - look a host name up on a thread that nobody waits for.
 *
 * The question is shared by the asker and the thread and freed by the last of
 * the two, so either may go first: a client that is closed while a name server
 * is silent does not wait for it. The answer is announced by an eventfd, which
 * the asker's loop watches.
 *
 * The thread is detached, has all signals blocked and touches nothing but the
 * question.
 */
#include "net/resolve.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hf__resolve {
    _Atomic int refs;
    _Atomic bool done; /* after rc and list */
    int fd;
    int rc;
    struct addrinfo *list;
    char port[8];
    char host[];
};

static int look_up(const char *host, const char *port, int flags,
                   struct addrinfo **ret_list)
{
    struct addrinfo hints = {
        .ai_flags = flags | AI_NUMERICSERV,
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
    };

    return getaddrinfo(host, port, &hints, ret_list);
}

struct addrinfo *hf__resolve_numeric(const char *host, int port)
{
    struct addrinfo *list = NULL;
    char text[8];

    (void)snprintf(text, sizeof(text), "%d", port);
    return look_up(host, text, AI_NUMERICHOST, &list) == 0 ? list : NULL;
}

static void unref(struct hf__resolve *resolve)
{
    if (atomic_fetch_sub(&resolve->refs, 1) != 1)
        return;
    if (resolve->list)
        freeaddrinfo(resolve->list);
    (void)syscall(SYS_close, resolve->fd);
    hf__free(resolve);
}

static void *resolve_main(void *arg)
{
    static const uint64_t one = 1;
    struct hf__resolve *resolve = arg;

    resolve->rc =
        look_up(resolve->host, resolve->port, AI_ADDRCONFIG, &resolve->list);
    atomic_store_explicit(&resolve->done, true, memory_order_release);
    /* An eventfd at zero has room. */
    (void)!write(resolve->fd, &one, sizeof(one));
    unref(resolve);
    return NULL;
}

static int start_thread(struct hf__resolve *resolve)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int rc;

    if (pthread_attr_init(&attributes) != 0)
        return HF_ENOMEM;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attributes, resolve_main, resolve);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return rc == 0 ? 0 : HF_ENOMEM;
}

int hf__resolve_start(const char *host, int port,
                      struct hf__resolve **ret_resolve)
{
    size_t len = strlen(host) + 1;
    struct hf__resolve *resolve = hf__calloc(1, sizeof(*resolve) + len);

    if (!resolve)
        return HF_ENOMEM;
    memcpy(resolve->host, host, len);
    (void)snprintf(resolve->port, sizeof(resolve->port), "%d", port);
    resolve->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_init(&resolve->refs, 2);
    if (resolve->fd < 0 || start_thread(resolve) != 0) {
        if (resolve->fd >= 0)
            (void)syscall(SYS_close, resolve->fd);
        hf__free(resolve);
        return HF_ENOMEM;
    }
    *ret_resolve = resolve;
    return 0;
}

int hf__resolve_fd(const struct hf__resolve *resolve)
{
    return resolve->fd;
}

int hf__resolve_take(struct hf__resolve *resolve, struct addrinfo **ret_list)
{
    if (!atomic_load_explicit(&resolve->done, memory_order_acquire))
        return EAI_AGAIN;
    if (resolve->rc != 0)
        return resolve->rc;
    *ret_list = HF_STEAL(resolve->list);
    return 0;
}

void hf__resolve_free(struct hf__resolve *resolve)
{
    if (resolve)
        unref(resolve);
}

void hf__resolve_abandon(struct hf__resolve *resolve)
{
    if (resolve)
        (void)syscall(SYS_close, resolve->fd);
}
