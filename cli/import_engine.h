/* SPDX-License-Identifier: MIT */
/* import_engine.h - what foreign settings say about one engine. */
#ifndef CLI_IMPORT_ENGINE_H
#define CLI_IMPORT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

enum { IMPORT_REDIS, IMPORT_ZOOKEEPER, IMPORT_FAMILIES };
enum { IMPORT_NODES = 2048, IMPORT_TEXT = 256, IMPORT_KEYS = 32 };

/* A key of ours, with the value that a setting gave it. */
struct import_key {
    const char *name;
    char value[IMPORT_TEXT];
};

struct import_engine {
    char host[IMPORT_TEXT];
    char port[8];
    char nodes[IMPORT_NODES]; /* "host:port,host:port" */
    char database[8];
    char master[IMPORT_TEXT]; /* of sentinels */
    char path[IMPORT_TEXT];
    char user[IMPORT_TEXT];
    char password[IMPORT_TEXT];
    bool tls;
    bool is_cluster;
    bool is_redisson;
    struct import_key keys[IMPORT_KEYS];
    size_t n_keys;
};

/* "redis", "zookeeper". */
const char *import_name(int family);
/* @key, normalised, without the prefix of this family; NULL: it has none. */
const char *import_tail(int family, const char *key);
/* Does the family have a place for it? */
bool import_knows(int family, const char *tail);
void import_take(struct import_engine *engine, int family, const char *tail,
                 const char *value);
/* Do we know where it is? */
bool import_is_known(const struct import_engine *engine);
/* Write it to stdout, as keys of ours. */
void import_write(const struct import_engine *engine, int family);
/* Overwrite what is secret. */
void import_forget(struct import_engine *engine);

#endif
