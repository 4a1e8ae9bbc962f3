/* SPDX-License-Identifier: MIT */
/*
 * queue.c - who stands where in line, and who is in whose way.
 *
 * ZooKeeper numbers the children of a node in the order in which they were
 * made. The number is ten digits at the end of the name; before it stands a
 * marker that says what the child wants:
 *
 *   exclusive   lock-  __WRIT__  __lock__  latch-  write-  x-
 *   shared      __READ__  __rlock__  read-
 *   slot        __SLOT__  lease-  semaphore-
 *
 * We write one of them (the dialect) and understand all, so that a child of
 * whatever library is never overlooked.
 *
 * The number is signed and wraps: after 2147483647 comes -2147483648. Contenders
 * of one moment are never two thousand million apart, so of two numbers the one
 * behind is the one whose distance, modulo 2^32, is positive.
 */
#include "engines/zookeeper/queue.h"

#include <stdlib.h>

#include "base/world.h"

static const struct {
    const char *marker;
    uint8_t kind;
} markers[] = {
    {"__READ__", HF__ZK_READ}, {"__rlock__", HF__ZK_READ},
    {"read-", HF__ZK_READ},    {"__SLOT__", HF__ZK_SLOT},
    {"lease-", HF__ZK_SLOT},   {"semaphore-", HF__ZK_SLOT},
};

static bool ends_in(const char *text, size_t len, const char *end)
{
    size_t end_len = strlen(end);

    return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

static bool all_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

bool hf__zk_queue_read_contender(struct hf__zk_contender *contender,
                                 struct hf__zk_wire_text name)
{
    size_t head = name.len - 10;
    int64_t sequence = 0;

    if (name.len <= 10 || !all_digits(name.text + head, 10))
        return false;
    for (size_t i = head; i < name.len; i++)
        sequence = sequence * 10 + (name.text[i] - '0');
    /* "lock--2147483648": the second dash is the sign. */
    if (name.text[head - 1] == '-' && head > 1 &&
        (name.text[head - 2] == '-' || name.text[head - 2] == '_')) {
        sequence = -sequence;
        head--;
    }
    if (sequence > INT32_MAX || sequence < INT32_MIN)
        return false;
    contender->name = name;
    contender->sequence = (int32_t)sequence;
    contender->kind = HF__ZK_LOCK;
    for (size_t i = 0; i < HF_COUNT_OF(markers); i++) {
        if (ends_in(name.text, head, markers[i].marker))
            contender->kind = markers[i].kind;
    }
    return true;
}

/* A writer that became a reader has its number twice for a moment, or for good:
 * the reader comes first, so that it does not wait for itself. */
static int compare(const void *a, const void *b)
{
    const struct hf__zk_contender *x = a;
    const struct hf__zk_contender *y = b;
    int32_t apart = (int32_t)((uint32_t)x->sequence - (uint32_t)y->sequence);

    if (apart != 0)
        return apart < 0 ? -1 : 1;
    return (int)y->kind - (int)x->kind;
}

int hf__zk_queue_read(struct hf__zk_queue *line, struct hf__zk_wire *in)
{
    uint32_t count = hf__zk_wire_count(in, /* least= */ 4);

    line->n = 0;
    line->all = NULL;
    if (count > 0)
        line->all = hf__malloc(count * sizeof(*line->all));
    if (count > 0 && !line->all)
        return HF_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct hf__zk_wire_text name = hf__zk_wire_text(in);

        if (!in->bad && hf__zk_queue_read_contender(&line->all[line->n], name))
            line->n++;
    }
    if (in->bad) {
        hf__zk_queue_release(line);
        return HF_EINTERNAL;
    }
    if (line->n > 1)
        qsort(line->all, line->n, sizeof(*line->all), compare);
    return 0;
}

void hf__zk_queue_release(struct hf__zk_queue *line)
{
    hf__free(line->all);
    line->all = NULL;
    line->n = 0;
}

uint32_t hf__zk_queue_find(const struct hf__zk_queue *line, const char *prefix,
                           size_t len)
{
    uint32_t i = 0;

    while (i < line->n && (line->all[i].name.len < len ||
                           memcmp(line->all[i].name.text, prefix, len) != 0))
        i++;
    return i;
}

/* The nearest one before @place whose kind is in @kinds; line->n: none. */
static uint32_t nearest(const struct hf__zk_queue *line, uint32_t place,
                        unsigned kinds)
{
    while (place-- > 0) {
        if (kinds & 1u << line->all[place].kind)
            return place;
    }
    return line->n;
}

uint32_t hf__zk_queue_blocker(const struct hf__zk_queue *line, uint32_t place,
                              int32_t slots, bool *ret_first)
{
    unsigned all = 1u << HF__ZK_LOCK | 1u << HF__ZK_READ | 1u << HF__ZK_SLOT;
    unsigned own = 1u << line->all[place].kind;
    int64_t before = 0;
    uint32_t found;

    *ret_first = false;
    if (line->all[place].kind == HF__ZK_LOCK)
        return nearest(line, place, all);
    found = nearest(line, place, all & ~own);
    if (found != line->n || line->all[place].kind == HF__ZK_READ)
        return found;
    for (uint32_t i = 0; i < place; i++)
        before += line->all[i].kind == HF__ZK_SLOT;
    if (before < slots)
        return line->n;
    *ret_first = before == slots;
    return nearest(line, place, own);
}
