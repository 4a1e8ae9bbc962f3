/* SPDX-License-Identifier: MIT */
/*
 * curator_semaphore.h - the two lines of Curator's InterProcessSemaphoreV2.
 */
#ifndef HF_ZOOKEEPER_CURATOR_SEMAPHORE_H
#define HF_ZOOKEEPER_CURATOR_SEMAPHORE_H

#include "engines/zookeeper/calls.h"
#include "engines/zookeeper/tickets.h"

/* The node that @mine stands with from now on is in the line for the mutex, or
 * for a slot. */
void hf__zk_curator_semaphore_line(struct hf__zk_ticket *mine,
                                   enum hf__zk_line_of line);
/* First in the first line: into the second. 0, or HF_ENOMEM. */
int hf__zk_curator_semaphore_enter(struct hf__zk_ticket *mine);
/* Nothing of it is in the first line any more. */
void hf__zk_curator_semaphore_passed(struct hf__zk_ticket *mine);

#endif
