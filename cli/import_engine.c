/* SPDX-License-Identifier: MIT */
/*
 * import_engine.c - what foreign settings say about one engine.
 *
 * A table for each family says what a setting means: a part of the URL, or one
 * of our keys with a unit. A number without a unit is milliseconds in Spring,
 * Redisson, JedisPool and Curator alike. The library checks what comes out; what
 * it refuses becomes a comment that says why.
 */
#include "import_engine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "secret.h"
#include "text.h"

enum kind {
    HOST,
    PORT,
    DATABASE,
    USER,
    PASSWORD,
    ADDRESS,  /* a URL, or host:port */
    NODE,     /* one of several addresses, or a list with commas */
    CLUSTER,  /* the same, of a cluster */
    MASTER,   /* the name of a master that sentinels know */
    TLS,      /* true or false */
    PATH,     /* where the locks are */
    DURATION, /* our key, in milliseconds without a unit */
    NUMBER,   /* our key, as it is */
    ON_OFF,   /* our key, for true and false */
    EXHAUSTED,
    POLICY, /* of retries */
    NOTHING /* known to have no meaning */
};

struct meaning {
    const char *tail;
    enum kind kind;
    const char *key;
};

static const struct meaning redis_meanings[] = {
    {"host", HOST, NULL},
    {"hostname", HOST, NULL},
    {"port", PORT, NULL},
    {"database", DATABASE, NULL},
    {"username", USER, NULL},
    {"password", PASSWORD, NULL},
    {"url", ADDRESS, NULL},
    {"address", ADDRESS, NULL},
    {"masteraddress", ADDRESS, NULL},
    {"ssl", TLS, NULL},
    {"ssl.enabled", TLS, NULL},
    {"timeout", DURATION, "io_timeout"},
    {"connecttimeout", DURATION, "connect_timeout"},
    {"sentinel.master", MASTER, NULL},
    {"sentinel.nodes", NODE, NULL},
    {"sentinel.nodes[]", NODE, NULL},
    {"cluster.nodes", CLUSTER, NULL},
    {"cluster.nodes[]", CLUSTER, NULL},
    {"mastername", MASTER, NULL},
    {"sentineladdresses[]", NODE, NULL},
    {"nodeaddresses[]", CLUSTER, NULL},
    {"lockwatchdogtimeout", DURATION, "ttl"},
    {"maxtotal", NUMBER, "pool.max"},
    {"maxactive", NUMBER, "pool.max"},
    {"maxidle", NUMBER, "pool.max_idle"},
    {"maxwait", DURATION, "pool.wait"},
    {"maxwaitmillis", DURATION, "pool.wait"},
    {"blockwhenexhausted", EXHAUSTED, "pool.exhausted"},
    {"testonborrow", ON_OFF, "pool.check"},
    {NULL, NOTHING, NULL},
};

static const struct meaning zookeeper_meanings[] = {
    {"address", NODE, NULL},
    {"connectstring", NODE, NULL},
    {"servers", NODE, NULL},
    {"hosts", NODE, NULL},
    {"namespace", PATH, NULL},
    {"connectiontimeout", DURATION, "connect_timeout"},
    {"connectiontimeoutms", DURATION, "connect_timeout"},
    {"sessiontimeout", DURATION, "session_timeout"},
    {"sessiontimeoutms", DURATION, "session_timeout"},
    {"retrypolicy", POLICY, "retry.policy"},
    {"basesleeptimems", DURATION, "retry.base"},
    {"maxsleepms", DURATION, "retry.max_interval"},
    {"maxretries", NUMBER, "retry.max_attempts"},
    {"n", NUMBER, "retry.max_attempts"},
    {"retryintervalms", DURATION, "retry.interval"},
    {"sleepmsbetweenretries", DURATION, "retry.interval"},
    {"sleepmsbetweenretry", DURATION, "retry.interval"},
    {"maxelapsedtimems", DURATION, "retry.max_elapsed"},
    {NULL, NOTHING, NULL},
};

static const struct {
    const char *name;
    const struct meaning *meanings;
    const char *prefixes[12];
    const char *inner[8]; /* behind a prefix, and without meaning */
} families[] = {
    [IMPORT_REDIS] = {"redis",
                      redis_meanings,
                      {"spring.data.redis.", "spring.redis.", "redis.",
                       "jedis.", "redisson.", "singleserverconfig.",
                       "masterslaveserversconfig.", "sentinelserversconfig.",
                       "clusterserversconfig.", "lockwatchdogtimeout"},
                      {"jedis.", "lettuce.", "pool.", "singleserverconfig.",
                       "masterslaveserversconfig.", "sentinelserversconfig.",
                       "clusterserversconfig."}},
    [IMPORT_ZOOKEEPER] = {"zookeeper",
                          zookeeper_meanings,
                          {"zklock.", "curator.", "spring.cloud.zookeeper.",
                           "zookeeper.", "zk."},
                          {"curator.", "retryforever.", "retryntimes.",
                           "exponentialbackoffretry.", "retryuntilelapsed.",
                           "retry."}},
};

const char *import_name(int family)
{
    return families[family].name;
}

static const char *skip(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

const char *import_tail(int family, const char *key)
{
    const char *tail = NULL;

    for (size_t i = 0; families[family].prefixes[i] && !tail; i++)
        tail = skip(key, families[family].prefixes[i]);
    if (tail && *tail == '\0')
        return key; /* the whole key is the setting */
    for (size_t i = 0; tail && families[family].inner[i]; i++) {
        const char *deeper = skip(tail, families[family].inner[i]);

        tail = deeper ? deeper : tail;
    }
    return tail;
}

static const struct meaning *find(int family, const char *tail)
{
    const struct meaning *meaning = families[family].meanings;

    while (meaning->tail && strcmp(meaning->tail, tail) != 0)
        meaning++;
    return meaning->tail ? meaning : NULL;
}

bool import_knows(int family, const char *tail)
{
    return find(family, tail) != NULL;
}

/* ---- taking --------------------------------------------------------------- */

static void set_key(struct import_engine *engine, const char *name,
                    const char *value)
{
    struct import_key *key = &engine->keys[engine->n_keys];

    if (engine->n_keys == IMPORT_KEYS)
        return;
    key->name = name;
    snprintf(key->value, sizeof(key->value), "%s", value);
    engine->n_keys++;
}

/* "3000", "3s" and "PT3S" of Java as a duration of ours. */
static void set_duration(struct import_engine *engine, const char *name,
                         const char *value)
{
    char text[64];
    size_t digits;

    if (strncmp(value, "PT", 2) == 0)
        value += 2;
    if (*value == '-') { /* JedisPool's "for ever" */
        set_key(engine, name, "forever");
        return;
    }
    digits = strspn(value, "0123456789");
    snprintf(text, sizeof(text), "%s%s", value,
             digits > 0 && value[digits] == '\0' ? "ms" : "");
    for (char *at = text; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    set_key(engine, name, text);
}

static bool is_true(const char *value)
{
    return strcasecmp(value, "true") == 0 || strcasecmp(value, "on") == 0 ||
           strcasecmp(value, "yes") == 0;
}

/* Curator's classes, and how people spell them. */
static void set_policy(struct import_engine *engine, const char *value)
{
    static const char *const policies[][2] = {{"forever", "forever"},
                                              {"ntimes", "ntimes"},
                                              {"onetime", "ntimes"},
                                              {"exponential", "exponential"},
                                              {"elapsed", "elapsed"}};
    char text[IMPORT_TEXT];
    size_t used = 0;

    for (; *value && used < sizeof(text) - 1; value++)
        if (*value != '-' && *value != '_')
            text[used++] = (char)tolower((unsigned char)*value);
    text[used] = '\0';
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
        if (strstr(text, policies[i][0])) {
            set_key(engine, "retry.policy", policies[i][1]);
            if (i == 2)
                set_key(engine, "retry.max_attempts", "1");
            return;
        }
    printf("# a retry policy that is not known here\n");
}

static void copy(char *to, size_t size, const char *from, size_t len)
{
    snprintf(to, size, "%.*s", (int)len, from);
}

/* "redis://user:password@host:port/db": the scheme, the user and what is behind
 * the host are taken out; the rest is @ret_len bytes. */
static const char *take_apart(struct import_engine *engine, const char *text,
                              size_t *ret_len)
{
    const char *scheme = strstr(text, "://");
    const char *at;

    if (scheme) {
        engine->tls |=
            strncmp(text, "rediss", 6) == 0 || strncmp(text, "valkeys", 7) == 0;
        text = scheme + 3;
    }
    at = strrchr(text, '@');
    if (at) {
        size_t user = strcspn(text, ":@");

        copy(engine->user, sizeof(engine->user), text, user);
        if (text + user < at)
            copy(engine->password, sizeof(engine->password), text + user + 1,
                 (size_t)(at - text) - user - 1);
        text = at + 1;
    }
    *ret_len = strcspn(text, "/?#");
    if (text[*ret_len] == '/' && text[*ret_len + 1] && !scheme)
        snprintf(engine->path, sizeof(engine->path), "%s", text + *ret_len);
    else if (text[*ret_len] == '/' && text[*ret_len + 1])
        snprintf(engine->database, sizeof(engine->database), "%s",
                 text + *ret_len + 1);
    return text;
}

static void add_nodes(struct import_engine *engine, const char *value)
{
    size_t used = strlen(engine->nodes);

    while (*value) {
        size_t len = strcspn(value, ",; \t");
        char one[IMPORT_TEXT];
        size_t host;

        copy(one, sizeof(one), value, len);
        const char *text = take_apart(engine, one, &host);
        if (host > 0 && used + host + 2 < sizeof(engine->nodes))
            used += (size_t)snprintf(engine->nodes + used,
                                     sizeof(engine->nodes) - used, "%s%.*s",
                                     used ? "," : "", (int)host, text);
        value += len + strspn(value + len, ",; \t");
    }
}

/* What is a text of the URL, as it is. */
static void set_text(struct import_engine *engine, enum kind kind,
                     const char *value)
{
    const struct {
        char *text;
        size_t size;
    } texts[] = {
        [HOST] = {engine->host, sizeof(engine->host)},
        [PORT] = {engine->port, sizeof(engine->port)},
        [DATABASE] = {engine->database, sizeof(engine->database)},
        [USER] = {engine->user, sizeof(engine->user)},
        [PASSWORD] = {engine->password, sizeof(engine->password)},
        [MASTER] = {engine->master, sizeof(engine->master)},
    };

    snprintf(texts[kind].text, texts[kind].size, "%s", value);
}

static void set_path(struct import_engine *engine, const char *value)
{
    snprintf(engine->path, sizeof(engine->path), "%s%s",
             value[0] == '/' ? "" : "/", value);
}

void import_take(struct import_engine *engine, int family, const char *tail,
                 const char *value)
{
    const struct meaning *meaning = find(family, tail);

    switch (meaning->kind) {
    case HOST:
    case PORT:
    case DATABASE:
    case USER:
    case PASSWORD:
    case MASTER:
        set_text(engine, meaning->kind, value);
        break;
    case CLUSTER:
        engine->is_cluster = true;
        add_nodes(engine, value);
        break;
    case ADDRESS:
    case NODE:
        add_nodes(engine, value);
        break;
    case TLS:
        engine->tls |= is_true(value);
        break;
    case PATH:
        set_path(engine, value);
        break;
    case DURATION:
        set_duration(engine, meaning->key, value);
        break;
    case NUMBER:
        set_key(engine, meaning->key, value);
        break;
    case ON_OFF:
        set_key(engine, meaning->key, is_true(value) ? "on" : "off");
        break;
    case EXHAUSTED:
        set_key(engine, meaning->key, is_true(value) ? "block" : "fail");
        break;
    case POLICY:
        set_policy(engine, value);
        break;
    case NOTHING:
        break;
    }
    /* These names are Redisson's alone. */
    engine->is_redisson |= strstr(tail, "addresses[]") != NULL ||
                           strcmp(tail, "lockwatchdogtimeout") == 0 ||
                           strcmp(tail, "address") == 0 ||
                           strcmp(tail, "masteraddress") == 0;
}

bool import_is_known(const struct import_engine *engine)
{
    return engine->host[0] || engine->nodes[0] || engine->n_keys > 0;
}

/* ---- writing -------------------------------------------------------------- */

/* Write a line if the library takes the value, else a comment. */
static void write_key(const char *name, const char *value, bool is_secret)
{
    hf_config *scratch = hf_config_new();
    hf_error err = {0};
    size_t len = strlen(value);
    bool quoted = len > 0 && (strchr(" \t\"", value[0]) ||
                              strchr(" \t\"", value[len - 1]));

    if (strpbrk(value, "\r\n"))
        printf("# %s: a value with a line break\n", name);
    else if (scratch && hf_config_set(scratch, name, value, &err) == 0)
        printf("%s = %s%s%s\n", name, quoted ? "\"" : "", value,
               quoted ? "\"" : "");
    else
        printf("# %s: %s\n", name,
               is_secret ? "a value that cannot be taken"
                         : text_safe(err.text));
    hf_config_free(scratch);
}

static const char *scheme_of(const struct import_engine *engine, int family)
{
    if (family == IMPORT_ZOOKEEPER)
        return engine->tls ? "zks" : "zk";
    if (engine->master[0])
        return engine->tls ? "rediss-sentinel" : "redis-sentinel";
    if (engine->is_cluster)
        return engine->tls ? "rediss-cluster" : "redis-cluster";
    return engine->tls ? "rediss" : "redis";
}

static void write_url(const struct import_engine *engine, int family)
{
    char url[IMPORT_NODES + 1024];
    char node[IMPORT_TEXT + 16];
    bool has_database = engine->database[0] && !engine->is_cluster &&
                        strcmp(engine->database, "0") != 0;

    snprintf(node, sizeof(node), "%s%s%s",
             engine->host[0] ? engine->host : "localhost",
             engine->port[0] ? ":" : "", engine->port);
    snprintf(url, sizeof(url), "%s://%s%s%s%s%s%s", scheme_of(engine, family),
             engine->nodes[0] ? engine->nodes : node,
             engine->master[0] ? "/" : "", engine->master,
             has_database ? "/" : "", has_database ? engine->database : "",
             family == IMPORT_ZOOKEEPER ? engine->path : "");
    write_key("url", url, /* is_secret= */ false);
}

static void write_advice(const struct import_engine *engine, int family)
{
    if (family == IMPORT_ZOOKEEPER && !engine->path[0])
        printf("# The path of the locks is in the code: for \"/locks/jobs\" "
               "end the url with /locks\n"
               "# and use the name jobs; for \"/jobs\" end it with //.\n");
    if (family == IMPORT_REDIS && engine->is_redisson)
        printf("# The locks are Redisson's:\n");
    else if (family == IMPORT_REDIS)
        printf("# To share locks with SET NX PX of Jedis or Lettuce: dialect = "
               "plain; with Redisson: dialect = redisson\n");
}

void import_write(const struct import_engine *engine, int family)
{
    write_url(engine, family);
    write_advice(engine, family);
    if (family == IMPORT_REDIS && engine->is_redisson)
        write_key("dialect", "redisson", /* is_secret= */ false);
    if (engine->user[0])
        write_key("user", engine->user, /* is_secret= */ false);
    if (engine->password[0]) {
        printf("# WARNING: a secret. Put it in a file of mode 0600 and name "
               "that: password_file\n");
        write_key("password", engine->password, /* is_secret= */ true);
    }
    for (size_t i = 0; i < engine->n_keys; i++)
        write_key(engine->keys[i].name, engine->keys[i].value,
                  /* is_secret= */ false);
}

void import_forget(struct import_engine *engine)
{
    explicit_bzero(engine, sizeof(*engine));
}
