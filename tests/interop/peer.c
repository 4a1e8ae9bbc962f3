/* SPDX-License-Identifier: MIT */
/* peer.c - a client of others, in a process of its own, that does as told. */
#include "interop/peer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

static void run(struct proc *self, void *arg)
{
    proc_become(self, arg);
}

struct proc *peer_start(const char *const *argv)
{
    struct proc *peer = proc_start(run, (void *)(uintptr_t)argv);

    (void)proc_expect(peer, "ready");
    return peer;
}

struct proc *peer_start_java(const char *variable, const char *option,
                             const char *const *arguments)
{
    const char *dir = getenv(variable);
    const char *argv[16] = {"java", "-Xmx256m", "-XX:TieredStopAtLevel=1",
                            "-XX:+UseSerialGC"};
    size_t n = 4;

    if (!dir)
        FAIL("%s is not set", variable);
    if (option)
        argv[n++] = option;
    argv[n++] = "-cp";
    argv[n++] = test_text("%s:%s/dependency/*", dir, dir);
    argv[n++] = "Peer";
    for (; *arguments; arguments++) {
        ASSERT_LT(n, HF_COUNT_OF(argv) - 1);
        argv[n++] = *arguments;
    }
    return peer_start(argv);
}

HF_PRINTF(2, 0)
static void tell(struct proc *peer, const char *format, va_list args)
{
    char line[512];

    (void)vsnprintf(line, sizeof(line), format, args);
    proc_say(peer, line);
}

void peer_tell(struct proc *peer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tell(peer, format, args);
    va_end(args);
}

const char *peer_ask(struct proc *peer, const char *answer, const char *format,
                     ...)
{
    va_list args;

    va_start(args, format);
    tell(peer, format, args);
    va_end(args);
    return proc_expect(peer, answer);
}

static hf_request *start(hf_client *client, const char *name, int mode,
                         int slots, const char *owner)
{
    return client_start_with(
        client, name,
        OPTS(HF_CONFIGURED, .mode = mode, .slots = slots, .owner = owner));
}

hf_request *peer_await(hf_client *client, const char *name, int mode, int slots)
{
    return start(client, name, mode, slots, "in line");
}

hf_hold *peer_awaited(hf_request *request, int64_t within_ms)
{
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_request_wait(request, within_ms, &hold, &err), &err);
    hf_request_free(request);
    return hold;
}

bool peer_is_waiting(hf_request *request)
{
    hf_hold *hold;

    return hf_request_wait(request, 0, &hold, NULL) == HF_ETIMEOUT;
}

hf_hold *peer_take(hf_client *client, const char *name, int mode, int slots)
{
    return peer_awaited(start(client, name, mode, slots, "holding"), 10000);
}

int peer_try(hf_client *client, const char *name, int mode, int slots)
{
    return client_try_with(
        client, name, OPTS(0, .mode = mode, .slots = slots, .owner = "trying"),
        NULL);
}
