/* SPDX-License-Identifier: MIT */
/*
 * bounded_queue.c - a queue of at most four things between two processes.
 *
 * The queue is a file. Its lock has two conditions: the producer waits until the
 * queue is "not full", the consumer until it is "not empty". Whoever changes the
 * queue signals the other. A process that is woken and dies passes its wake-up
 * on, so neither side can wait for ever because of the other's crash.
 */
#include <fcntl.h>
#include <holdfast.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4, THINGS = 20 };

struct queue {
    int n;
    int things[ROOM];
};

static const char path[] = "queue";

static struct queue queue_read(void)
{
    struct queue queue = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        if (read(fd, &queue, sizeof(queue)) != (ssize_t)sizeof(queue))
            queue.n = 0;
        close(fd);
    }
    return queue;
}

static int queue_write(const struct queue *queue)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int rc =
        fd >= 0 && write(fd, queue, sizeof(*queue)) == (ssize_t)sizeof(*queue)
            ? 0
            : -1;

    if (fd >= 0)
        close(fd);
    return rc;
}

/* With the lock: wait on @cond until @ready. */
static int await(hf_hold *hold, const char *cond,
                 int (*ready)(const struct queue *), struct queue *queue,
                 hf_error *err)
{
    int rc = 0;

    /* Somebody may have been quicker: look again after every wait. */
    for (*queue = queue_read(); rc == 0 && !ready(queue); *queue = queue_read())
        rc = hf_cond_wait(hold, cond, HF_FOREVER, err);
    return rc;
}

static int not_full(const struct queue *queue)
{
    return queue->n < ROOM;
}

static int not_empty(const struct queue *queue)
{
    return queue->n > 0;
}

static int put(hf_hold *hold, int thing, hf_error *err)
{
    struct queue queue;
    int rc = await(hold, "not full", not_full, &queue, err);

    if (rc != 0)
        return rc;
    queue.things[queue.n++] = thing;
    if (queue_write(&queue) != 0)
        return HF_EINTERNAL;
    return hf_cond_signal(hold, "not empty", err);
}

static int take(hf_hold *hold, int *ret_thing, hf_error *err)
{
    struct queue queue;
    int rc = await(hold, "not empty", not_empty, &queue, err);

    if (rc != 0)
        return rc;
    *ret_thing = queue.things[0];
    queue.n--;
    for (int i = 0; i < queue.n; i++)
        queue.things[i] = queue.things[i + 1];
    if (queue_write(&queue) != 0)
        return HF_EINTERNAL;
    return hf_cond_signal(hold, "not full", err);
}

static int run(int producing)
{
    hf_client *client;
    hf_error err = {.text = "cannot write the queue"};
    int rc = hf_open(NULL, NULL, &client, &err);

    if (rc != 0) {
        fprintf(stderr, "bounded_queue: %s\n", err.text);
        return 1;
    }
    for (int i = 0; i < THINGS && rc >= 0; i++) {
        hf_hold *hold;
        int thing = i;

        rc = hf_acquire(client, "queue", NULL, &hold, &err);
        if (rc != 0)
            break;
        rc = producing ? put(hold, i, &err) : take(hold, &thing, &err);
        if (hf_release(hold, rc < 0 ? NULL : &err) != 0 && rc >= 0)
            rc = HF_ELOST;
        if (rc >= 0 && thing != i)
            rc = HF_EINTERNAL; /* not in order */
    }
    if (rc < 0)
        fprintf(stderr, "bounded_queue: %s\n", err.text);
    hf_close(client);
    return rc < 0;
}

int main(void)
{
    int status = 1;
    pid_t consumer = fork(); /* before any client is opened */

    if (consumer < 0)
        return 1;
    if (consumer == 0)
        return run(/* producing= */ 0);
    if (run(/* producing= */ 1) != 0)
        return 1;
    if (waitpid(consumer, &status, 0) < 0 || status != 0)
        return 1;
    printf("%d things went through a queue of %d\n", THINGS, ROOM);
    return 0;
}
