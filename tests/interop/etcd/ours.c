/* SPDX-License-Identifier: MIT */
/* ours.c - our side of a lock that others use too. */
#include "ours.h"

static void become(struct proc *self, void *arg)
{
    proc_become(self, arg);
}

struct proc *ours_peer(const char *const *argv)
{
    return proc_start(become, (void *)(uintptr_t)argv);
}

static void hold(struct proc *self, void *arg)
{
    hf_client *client;

    (void)proc_hear(self);
    client = etcd_open(arg, "ttl=2s");
    (void)client_acquire(client, "jobs");
    proc_tell(self, "holds");
    (void)proc_hear(self);
}

struct proc *ours_holder(struct etcd *etcd)
{
    return proc_start(hold, etcd);
}
