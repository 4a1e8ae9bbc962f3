/* SPDX-License-Identifier: MIT */
/*
 * registry.c - the engines there are, by URL scheme.
 *
 * An engine is one folder and one line here; nothing else knows its name. The
 * registry answers what an engine can promise without loading anything.
 * Wrappers stand before a scheme with a plus: trace+local:.
 */
#include "engines/engine.h"

#include <stdio.h>

#include "base/buf.h"

#define HINT(package) "apt install " package ", and build holdfast again"

static const struct hf__engine_ops *const engines[] = {
    &hf__engine_local,
#ifdef HF_ENGINE_REDIS
    &hf__engine_redis,
    &hf__engine_redis_cluster,
#endif
#ifdef HF_ENGINE_REDLOCK
    &hf__engine_redlock,
#endif
#ifdef HF_ENGINE_ZOOKEEPER
    &hf__engine_zookeeper,
#endif
#ifdef HF_ENGINE_ETCD
    &hf__engine_etcd,
#endif
#ifdef HF_ENGINE_MYSQL
    &hf__engine_mysql,
#endif
#ifdef HF_ENGINE_POSTGRES
    &hf__engine_postgres,
#endif
#ifdef HF_ENGINE_MEMCACHED
    &hf__engine_memcached,
#endif
    NULL,
};

/* What could be here, and the package it needs to be built. */
static const struct absent {
    const char *name;
    const char *schemes;
    const char *hint;
} absentees[] = {
#ifndef HF_ENGINE_REDIS
    {"redis", "redis rediss redis+unix redis-sentinel rediss-sentinel",
     HINT("libssl-dev")},
    {"redis-cluster", "redis-cluster rediss-cluster", HINT("libssl-dev")},
#endif
#ifndef HF_ENGINE_REDLOCK
    {"redlock", "redlock redlocks", HINT("libssl-dev")},
#endif
#ifndef HF_ENGINE_ZOOKEEPER
    {"zookeeper", "zk zks", HINT("libssl-dev")},
#endif
#ifndef HF_ENGINE_ETCD
    {"etcd", "etcd etcds", HINT("libnghttp2-dev")},
#endif
#ifndef HF_ENGINE_MYSQL
    {"mysql", "mysql mariadb", HINT("libmariadb-dev")},
#endif
#ifndef HF_ENGINE_POSTGRES
    {"postgres", "postgresql postgres", HINT("libpq-dev")},
#endif
#ifndef HF_ENGINE_MEMCACHED
    {"memcached", "memcached memcacheds", HINT("libssl-dev")},
#endif
    {NULL, "", HINT("")}, /* the end, also where all are there */
};

static const struct hf__engine_ops *const wrappers[] = {
    &hf__engine_trace,
    &hf__engine_fault,
    NULL,
};

static const struct hf__engine_ops *registered;

void hf__engine_register(const struct hf__engine_ops *ops)
{
    registered = ops;
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    while (*words) {
        size_t n = strcspn(words, " ");

        if (n == len && memcmp(words, word, n) == 0)
            return true;
        words += n + strspn(words + n, " ");
    }
    return false;
}

static const struct hf__engine_ops *find(
    const struct hf__engine_ops *const *table, const char *word)
{
    if (registered && has_word(registered->schemes, word))
        return registered;
    for (; *table; table++) {
        if (has_word((*table)->schemes, word))
            return *table;
    }
    return NULL;
}

bool hf__engine_takes(const char *scheme, const char *key)
{
    const struct hf__engine_ops *ops = find(engines, scheme);

    return ops && ops->takes && ops->takes(key);
}

static void unknown(hf_error *err, const char *what, const char *word,
                    const struct hf__engine_ops *const *table)
{
    struct hf__buf known = {0};

    for (; *table; table++) {
        hf__buf_add(&known, " ");
        hf__buf_add(&known, (*table)->schemes);
    }
    (void)hf__fail(err, HF_EUNSUPPORTED,
                   "no %s '%s' in this build; there is:%s", what, word,
                   hf__buf_text(&known));
    hf__buf_release(&known);
}

int hf__engine_find(const char *scheme, const struct hf__engine_ops **ret_ops,
                    hf_error *err)
{
    const struct hf__engine_ops *ops = find(engines, scheme);

    for (const struct absent *absent = absentees; !ops && absent->name;
         absent++) {
        if (has_word(absent->schemes, scheme))
            return hf__fail(err, HF_EUNSUPPORTED,
                            "the engine '%s' is not in this build: %s",
                            absent->name, absent->hint);
    }
    if (!ops) {
        unknown(err, "engine for", scheme, engines);
        return HF_EUNSUPPORTED;
    }
    *ret_ops = ops;
    return 0;
}

static int find_wrapper(const char *word, const struct hf__engine_ops **ret_ops,
                        hf_error *err)
{
    const struct hf__engine_ops *ops = find(wrappers, word);

    if (!ops) {
        unknown(err, "wrapper", word, wrappers);
        return HF_EUNSUPPORTED;
    }
    *ret_ops = ops;
    return 0;
}

static int tell_absent(const struct absent *absent, hf_engine_cb *each,
                       void *ctx)
{
    hf_engine_info info = {
        .size = (uint32_t)sizeof(info),
        .name = absent->name,
        .schemes = absent->schemes,
        .dialects = "",
        .hint = absent->hint,
    };

    return each(&info, ctx);
}

static int tell(const struct hf__engine_ops *ops, hf_engine_cb *each, void *ctx)
{
    hf_engine_info info = {
        .size = (uint32_t)sizeof(info),
        .available = 1,
        .name = ops->name,
        .schemes = ops->schemes,
        .dialects = ops->dialects ? ops->dialects : "",
        .capabilities = ops->caps,
        .hint = "",
    };

    return each(&info, ctx);
}

int hf_engines(hf_engine_cb *each, void *ctx)
{
    int rc = 0;

    if (!each)
        return HF_EINVAL;
    for (size_t i = 0; engines[i] && rc == 0; i++)
        rc = tell(engines[i], each, ctx);
    for (size_t i = 0; absentees[i].name && rc == 0; i++)
        rc = tell_absent(&absentees[i], each, ctx);
    return rc;
}

static int find_for(const struct hf__url *url, size_t i,
                    const struct hf__engine_ops **ret_ops, hf_error *err)
{
    if (i < url->n_wrappers)
        return find_wrapper(url->wrappers[i], ret_ops, err);
    return hf__engine_find(url->scheme, ret_ops, err);
}

/* The engines of @host->url, outermost first; nothing is opened. */
static int make_chain(const struct hf__engine_host *host, size_t *ticket_size,
                      struct hf__engine **ret_engine, hf_error *err)
{
    for (size_t i = 0; i <= host->url->n_wrappers; i++) {
        const struct hf__engine_ops *ops = NULL;
        int rc = find_for(host->url, i, &ops, err);

        if (rc != 0)
            return rc;
        *ret_engine = hf__calloc(1, ops->size);
        if (!*ret_engine)
            return hf__fail(err, HF_ENOMEM, "out of memory");
        (*ret_engine)->ops = ops;
        (*ret_engine)->host = host;
        (*ret_engine)->caps = ops->caps;
        (*ret_engine)->ticket_offset = *ticket_size;
        *ticket_size += (ops->ticket_size + 15) / 16 * 16;
        ret_engine = &(*ret_engine)->inner;
    }
    return 0;
}

static void free_chain(struct hf__engine *engine)
{
    while (engine) {
        struct hf__engine *inner = engine->inner;

        hf__free(engine);
        engine = inner;
    }
}

/* A wrapper opens and closes what it wraps: see engines/wrap. */
int hf__engine_new(const struct hf__engine_host *host,
                   const struct hf__engine_up *up, void *up_owner,
                   size_t *ticket_size, struct hf__engine **ret_engine,
                   hf_error *err)
{
    struct hf__engine *engine = NULL;
    int rc;

    rc = make_chain(host, ticket_size, &engine, err);
    if (rc != 0) {
        free_chain(engine);
        return rc;
    }
    engine->up = up;
    engine->up_owner = up_owner;
    rc = engine->ops->open(engine, err);
    if (rc != 0) {
        hf__engine_free(engine, /* forked= */ false);
        return rc;
    }
    *ret_engine = engine;
    return 0;
}

void hf__engine_free(struct hf__engine *engine, bool forked)
{
    if (!engine)
        return;
    engine->ops->close(engine, forked);
    free_chain(engine);
}
