/* SPDX-License-Identifier: MIT */
/* ours.h - our side of a lock that others use too. */
#ifndef HF_INTEROP_ETCD_OURS_H
#define HF_INTEROP_ETCD_OURS_H

#include "event.h"
#include "live/etcd/etcd.h"
#include "proc.h"

/* Start the program @argv, which ends with NULL. Start processes before any
 * client is opened. */
struct proc *ours_peer(const char *const *argv);
/* A process of ours that says "holds" when it has "jobs", and keeps it. It
 * begins when it is told something. */
struct proc *ours_holder(struct etcd *etcd);

#endif
