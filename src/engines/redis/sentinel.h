/* SPDX-License-Identifier: MIT */
/* sentinel.h - ask the sentinels who the master is, and hear of a new one. */
#ifndef HF_REDIS_SENTINEL_H
#define HF_REDIS_SENTINEL_H

#include "config/url.h"
#include "engines/redis/connection.h"
#include "engines/redis/resp.h"
#include "net/stream.h"

struct hf__redis;
struct hf__sentinels;

/* One of them. The connection stays open after the search, to be told. */
struct hf__sentinel {
    struct hf__sentinels *all;
    struct hf__stream stream;
    struct hf__resp_scan scan;
    bool greeted; /* it has answered HELLO */
    bool auth;    /* it wants the password */
    bool told;    /* in this search: it has answered, or failed */
};

struct hf__sentinels {
    struct hf__redis *redis;
    char service[128];
    bool searching;
    uint32_t n;
    uint32_t told; /* so many have answered or failed … */
    uint32_t knew; /* … and so many of them know the master */
    char host[256];
    int port;
    int64_t epoch;  /* of the configuration with that address */
    int64_t others; /* sentinels that the one with that address knows */
    int64_t quorum;
    hf_error why; /* what the last one that failed said */
    struct hf__sentinel one[HF__URL_HOSTS];
};

/* The sentinels of the URL's hosts; nothing is sent. */
int hf__sentinels_new(struct hf__redis *redis, struct hf__sentinels **ret_all,
                      hf_error *err);
void hf__sentinels_free(struct hf__sentinels *all, bool forked);
/* Ends in hf__redis_connection_found() or hf__redis_connection_fail(), unless non-zero is returned. */
int hf__sentinels_search(struct hf__sentinels *all, hf_error *err);
/* No more time: take what is known. */
void hf__sentinels_decide(struct hf__sentinels *all);
void hf__sentinels_flush(struct hf__sentinels *all);

#endif
