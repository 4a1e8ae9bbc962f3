/* SPDX-License-Identifier: MIT */
/*
 * config.h - one table of keys for URL, file, environment and code.
 *
 * A hf_config remembers texts by layer (code > URL > environment > file >
 * what the program prefers > default). hf__settings is the checked result that the client and the engines
 * read. Each row of the table in keys.c knows its key, type, range, default
 * and sentence, and the field it fills.
 */
#ifndef HF_CONFIG_H
#define HF_CONFIG_H

#include "base/base.h"

enum hf__config_layer {
    HF__LAYER_PROGRAM, /* hf_config_prefer() */
    HF__LAYER_FILE,
    HF__LAYER_ENVIRONMENT,
    HF__LAYER_URL,
    HF__LAYER_CODE,
    HF__LAYERS
};

/* Who hears the log of a client; log NULL: the process's hook. */
struct hf__log_hook {
    hf_log_cb *log;
    int level;
    void *ctx;
};

enum { HF__RELEASE_CONFIRM, HF__RELEASE_POST };
enum { HF__RENEW_AUTO, HF__RENEW_OFF, HF__RENEW_BEAT };
enum { HF__DRIVE_AUTO, HF__DRIVE_APP };
enum { HF__CONNECT_WAIT, HF__CONNECT_LAZY };
enum { HF__DEADLOCK_REPORT, HF__DEADLOCK_BREAK, HF__DEADLOCK_OFF };
enum { HF__LEASE_TTL, HF__LEASE_PROCESS };
enum {
    HF__RETRY_FOREVER,
    HF__RETRY_NTIMES,
    HF__RETRY_EXPONENTIAL,
    HF__RETRY_ELAPSED
};

/* Checked values; texts are "" where unset. Owned by the client. */
struct hf__settings {
    int64_t ttl_ms;                /* ttl=30s */
    int64_t wait_ms;               /* wait=  HF_FOREVER */
    int64_t max_hold_ms;           /* max_hold=  0: none */
    int64_t connect_timeout_ms;    /* 5s */
    int64_t io_timeout_ms;         /* 5s */
    int64_t session_timeout_ms;    /* 0: ttl */
    int64_t lock_delay_ms;         /* 0 */
    int64_t node_timeout_ms;       /* 50ms */
    int64_t retry_base_ms;         /* 50ms */
    int64_t retry_interval_ms;     /* 100ms */
    int64_t retry_max_interval_ms; /* 2s */
    int64_t retry_max_elapsed_ms;  /* 30s */
    int32_t retry_policy;          /* exponential, without end */
    int32_t retry_max_attempts;    /* 0: no limit */
    double retry_jitter;           /* 0.2 */
    int32_t
        local_handover; /* 16; 0: off; -1 ("auto"): 16 where fenced by range */
    int32_t release;    /* HF__RELEASE_* */
    int32_t renew;      /* HF__RENEW_* */
    int32_t drive;      /* HF__DRIVE_* */
    int32_t connect;    /* HF__CONNECT_* */
    int32_t lease;      /* HF__LEASE_* */
    int32_t deadlock;   /* HF__DEADLOCK_* */
    int32_t sync_replicas;
    int32_t spin;     /* 1 */
    double drift;     /* 0.02: share of a lease that clocks may differ */
    uint64_t require; /* HF_CAP_* that must be there */
    char *prefix;     /* before every name on the engine; "" */
    char *dialect;
    char *mode;
    char *table; /* of another dialect; "": as it is usually called */
    char *key;   /* the column of names in a table of the application's */
    char *owner_column;  /* … and of the holder (dialect=row) */
    char *version_table; /* where hf_version_*() work; "": in our own */
    char *column;        /* … its column */
    char *region;        /* "DEFAULT" */
    char *note;          /* standard note of every hold; "" */
    char *user;
    char *password; /* from password_file or the URL; secret */
    char *acl;
    char *tls_ca;
    char *tls_cert;
    char *tls_key;
    char *tls_key_password; /* from tls.key_password_file; secret */
    int32_t tls_verify;     /* 1 */
    bool tls_asked;         /* one of tls.* was given */
    int32_t pool_max;
    int32_t pool_max_idle;
    int64_t pool_wait_ms;
    int32_t pool_exhausted; /* block|fail|grow */
    int32_t pool_check;     /* 0 */
    char *trust_owner;      /* of a directory, beside us and root; "" */
    char *fault;            /* the fault engine's script; see engines/wrap */
};

/* [lock PATTERN] of a file: what differs for the names that match. */
struct hf__override {
    char *pattern;
    int64_t ttl_ms;      /* 0: not given */
    int64_t wait_ms;     /* INT64_MIN: not given */
    int64_t max_hold_ms; /* 0: not given */
    char *note;          /* NULL: not given */
    struct hf__override *next;
};

struct hf__url;

/* hf_config_set() into a chosen layer. */
int hf__config_set_layer(hf_config *config, enum hf__config_layer layer,
                         const char *key, const char *value, hf_error *err);
/* Read the HOLDFAST_* variables of the environment (secure_getenv). An
 * unknown one that no tool of ours uses is an error with a hint. */
int hf__config_load_environment(hf_config *config, hf_error *err);
/* What is in @text, an INI file called @source in errors. Nothing is changed on
 * failure. @ret_has_secret may be NULL. */
int hf__config_parse(hf_config *config, const char *text, size_t len,
                     const char *source, const char *profile,
                     bool *ret_has_secret, hf_error *err);
/* Is @value one that @key takes? Nothing is changed. */
int hf__config_check(const char *key, const char *value, hf_error *err);
/* Append to the [lock PATTERN] sections; takes @override. */
void hf__config_add_override(hf_config *config, struct hf__override *override);
void hf__override_free(struct hf__override *override);
/* Exchange the contents of two configurations. */
void hf__config_swap(hf_config *a, hf_config *b);
/* NULL, or a copy. */
hf_config *hf__config_copy(const hf_config *config);
struct hf__log_hook hf__config_log(const hf_config *config);
/* The "url" of the file, or NULL. */
const char *hf__config_url(const hf_config *config);
/* By anybody but the program itself, see hf_config_prefer(). */
bool hf__config_is_asked_for(const hf_config *config, const char *key);
/* Check everything and fill @ret_settings; release with _settings_release. */
int hf__config_resolve(const hf_config *config,
                       struct hf__settings *ret_settings, hf_error *err);
void hf__settings_release(struct hf__settings *settings);
/* The sections [lock PATTERN] are the file's: take out of them what environment,
 * URL or code say for all names. Once, when all of those are known. */
void hf__config_yield(hf_config *config);
/* The first [lock PATTERN] that matches @name, or NULL. */
const struct hf__override *hf__config_override(const hf_config *config,
                                               const char *name);

#endif
