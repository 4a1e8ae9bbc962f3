/* SPDX-License-Identifier: MIT */
/*
 * transfer.c - two transfers lock two accounts in opposite order, and wait for
 * one another for ever. First this is reported, and both give up when their
 * time is over; then deadlock=break ends the wait of the younger one, which
 * begins again.
 *
 * The cure is to take locks in one order everywhere: hf_acquire_many() does.
 */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>

struct transfer {
    hf_client *client;
    const char *from;
    const char *to;
    long wait_ms;
    pthread_barrier_t *both_hold_one;
    int deadlocks; /* that this transfer was told of */
    int done;
};

/* Both accounts are locked here. */
static void move_money(struct transfer *transfer)
{
    printf("moved from %s to %s\n", transfer->from, transfer->to);
    transfer->done = 1;
}

/* 0, or why it could not be done. */
static int try_transfer(struct transfer *transfer, int first_time)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *from;
    hf_hold *to;
    hf_error err;
    int rc;

    rc = hf_acquire(transfer->client, transfer->from, NULL, &from, &err);
    if (rc != 0)
        return rc;
    if (first_time) /* so that they are sure to meet */
        (void)pthread_barrier_wait(transfer->both_hold_one);
    opts.wait_ms = transfer->wait_ms;
    rc = hf_acquire(transfer->client, transfer->to, &opts, &to, &err);
    if (rc == 0) {
        move_money(transfer);
        (void)hf_release(to, NULL);
    } else {
        printf("%s to %s: %s\n", transfer->from, transfer->to, err.text);
    }
    (void)hf_release(from, NULL);
    return rc;
}

static void *run(void *arg)
{
    struct transfer *transfer = arg;
    int rc = try_transfer(transfer, /* first_time= */ 1);

    while (rc == HF_EDEADLK) { /* what we held is free again: once more */
        transfer->deadlocks++;
        rc = try_transfer(transfer, /* first_time= */ 0);
    }
    return NULL;
}

static void on_log(int level, const char *text, void *ctx)
{
    (void)level;
    (void)ctx;
    printf("log: %s\n", text);
}

static hf_client *open_with(const char *deadlock)
{
    hf_config *config = hf_config_new();
    hf_client *client = NULL;
    hf_error err;

    if (!config || hf_config_set(config, "deadlock", deadlock, &err) != 0 ||
        hf_open(NULL, config, &client, &err) != 0)
        fprintf(stderr, "transfer: %s\n", config ? err.text : "no memory");
    hf_config_free(config);
    return client;
}

/* How many of the two transfers were done. */
static int both(const char *deadlock, long wait_ms, int *deadlocks)
{
    hf_client *client = open_with(deadlock);
    pthread_barrier_t barrier;
    struct transfer one = {client, "alice", "bob", wait_ms, &barrier, 0, 0};
    struct transfer two = {client, "bob", "alice", wait_ms, &barrier, 0, 0};
    pthread_t thread;

    if (!client)
        return -1;
    (void)pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, run, &one) != 0)
        return -1;
    (void)run(&two);
    (void)pthread_join(thread, NULL);
    (void)pthread_barrier_destroy(&barrier);
    hf_close(client);
    *deadlocks = one.deadlocks + two.deadlocks;
    return one.done + two.done;
}

int main(void)
{
    int deadlocks;
    int done;

    hf_set_log(on_log, HF_LOG_WARNING, NULL);
    done = both("report", 3000, &deadlocks);
    if (done < 0 || deadlocks != 0)
        return 1;
    done = both("break", HF_FOREVER, &deadlocks);
    return done == 2 && deadlocks > 0 ? 0 : 1;
}
