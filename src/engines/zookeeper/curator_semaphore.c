/* SPDX-License-Identifier: MIT */
/*
 * curator_semaphore.c - the two lines of Curator's InterProcessSemaphoreV2.
 *
 * NAME/locks is a mutex. Only the first in its line may make a node in
 * NAME/leases; it has its slot when there are no more nodes than slots, and
 * then leaves the mutex to the next one. So at most one waits among the leases,
 * and it is the last of them.
 *
 * To acquire.c this is one line after the other: a ticket stands in the first with
 * a node like that of a lock, and, when nothing is in its way, begins anew in
 * the second. Its node in the first is remembered until it is deleted.
 */
#include <stdio.h>

#include "engines/zookeeper/zookeeper.h"

void hf__zk_curator_semaphore_line(struct hf__zk_ticket *mine,
                                   enum hf__zk_line_of line)
{
    bool entering = line == HF__ZK_LINE_MUTEX;
    const char *dir = entering ? "/locks" : "/leases";
    const char *marker = entering ? "lock-" : "lease-";
    size_t id_len = mine->id_len - mine->dir_len;
    char id[64]; /* with the slash before it */
    int n;

    memcpy(id, mine->path + mine->dir_len, id_len);
    n = snprintf(mine->path + mine->name_len, mine->path_size - mine->name_len,
                 "%s%.*s%s", dir, (int)id_len, id, marker);
    mine->dir_len = mine->name_len + (uint32_t)strlen(dir);
    mine->id_len = mine->dir_len + (uint32_t)id_len;
    mine->base_len = mine->name_len + (uint32_t)n;
    hf__zk_nodes_lose(mine, HF__ZK_NODE_NONE);
    mine->czxid = 0;
    mine->line = (uint8_t)line;
}

int hf__zk_curator_semaphore_enter(struct hf__zk_ticket *mine)
{
    mine->mutex = hf__strndup(mine->path, mine->path_len);
    if (!mine->mutex)
        return HF_ENOMEM;
    hf__zk_curator_semaphore_line(mine, HF__ZK_LINE_LEASES);
    return 0;
}

void hf__zk_curator_semaphore_passed(struct hf__zk_ticket *mine)
{
    hf__free(mine->mutex);
    mine->mutex = NULL;
}
