/* SPDX-License-Identifier: MIT */
/*
 * raw_hiredis.c - how most C programs talk to Redis: a thread has a connection
 * of hiredis to itself, and waits. For ./dev bench redis.
 *
 *     raw_hiredis blocking SECONDS PORT [N]
 *
 * N threads (8) do pairs of SET NX PX and an EVALSHA that compares and deletes.
 */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

#include "raw.h"

enum { MOST = 1000 };

static int port;
static double seconds;
static char digest[41];
static _Atomic size_t total;

static redisContext *dial(void)
{
    redisContext *redis = redisConnect("127.0.0.1", port);

    if (!redis || redis->err != 0)
        die("redisConnect");
    return redis;
}

static void load(void)
{
    redisContext *redis = dial();
    redisReply *reply =
        redisCommand(redis, "SCRIPT LOAD %s",
                     "if redis.call('GET',KEYS[1])==ARGV[1] then "
                     "return redis.call('DEL',KEYS[1]) end return 0");

    if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != 40)
        die("SCRIPT LOAD");
    memcpy(digest, reply->str, 40);
    freeReplyObject(reply);
    redisFree(redis);
}

static void expect(redisReply *reply, int type)
{
    if (!reply || reply->type != type)
        die("redisCommand");
    freeReplyObject(reply);
}

static void *one_thread(void *arg)
{
    redisContext *redis = dial();
    uint64_t until_ns = end_of(seconds);
    size_t n = 0;
    char key[16];
    char value[64];

    snprintf(key, sizeof(key), "raw:%05d", (int)(intptr_t)arg);
    snprintf(value, sizeof(value), "%040d", (int)(intptr_t)arg);
    for (; now_ns() < until_ns; n++) {
        expect(redisCommand(redis, "SET %s %s NX PX 30000", key, value),
               REDIS_REPLY_STATUS);
        expect(redisCommand(redis, "EVALSHA %s 1 %s %s", digest, key, value),
               REDIS_REPLY_INTEGER);
    }
    redisFree(redis);
    atomic_fetch_add(&total, n);
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 4 ? atoi(argv[4]) : 8;
    struct samples *samples = samples_new();

    if (argc < 4 || strcmp(argv[1], "blocking") != 0 || n < 1 || n > MOST) {
        fprintf(stderr, "usage: raw_hiredis blocking SECONDS PORT [N]\n");
        return 64;
    }
    seconds = atof(argv[2]);
    port = atoi(argv[3]);
    load();
    run_threads(n, one_thread);
    print_blocking(samples, n, total, seconds);
    return 0;
}
