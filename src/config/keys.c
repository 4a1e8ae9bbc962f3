/* SPDX-License-Identifier: MIT */
/*
 * keys.c - the table of all keys.
 *
 * The only list there is: it makes the parser, the ranges, the hints,
 * hf_config_keys() and, through that, the help of the command and the manual
 * page. HF__KEYS in keys.h is its length, or this file does not compile.
 */
#include "config/keys.h"

#include "base/error.h"

/* A file that is read when the key is set; its path is kept nowhere. */
#define SECRET_FILE(key, text)                                                 \
    {                                                                          \
        .name = (key), .kind = HF__VALUE_TEXT, .standard = "", .max = 4095,    \
        .flags = HF__VALUE_NAME, .offset = HF__NOWHERE, .help = (text)         \
    }
#define ROW(key_, kind_, field_, standard_, ...)                               \
    {                                                                          \
        .name = (key_), .kind = HF__VALUE_##kind_, .standard = (standard_),    \
        .offset = offsetof(struct hf__settings, field_), __VA_ARGS__           \
    }

const struct hf__key hf__keys[] = {
    {.name = "url",
     .kind = HF__VALUE_TEXT,
     .flags = HF__VALUE_URL,
     .standard = "",
     .offset = HF__NOWHERE,
     .help = "The engine that hf_open(NULL) opens; in code and files only."},
    ROW("ttl", DURATION, ttl_ms, "30s", .min = 10, .max = 365 * HF_DAYS,
        .help = "How long the engine keeps a lock without a renewal."),
    ROW("wait", DURATION, wait_ms, "forever", .max = HF_DURATION_MAX,
        .flags = HF__VALUE_FOREVER,
        .help = "How long an acquire without options waits; 0 tries once."),
    ROW("max_hold", DURATION, max_hold_ms, "0", .max = HF_DURATION_MAX,
        .help = "Stop renewing a lock held for this long, or end it where "
                "there is no lease; 0 for no limit."),
    ROW("renew", CHOICE, renew, "auto", .choices = "auto|off|beat",
        .help = "Whether the library renews leases: always, never, or as long "
                "as the program calls hf_beat()."),
    ROW("release", CHOICE, release, "confirm", .choices = "confirm|post",
        .help = "Whether a release waits for the engine's answer (confirm)."),
    ROW("lease", CHOICE, lease, "ttl", .choices = "ttl|process",
        .help = "What ends the lock of a stopped holder: its ttl, or only the "
                "end of its process (local engine)."),
    ROW("require", CAPS, require, "",
        .help = "Capabilities without which opening fails, as in fenced,fifo."),
    ROW("note", TEXT, note, "", .max = HF_NOTE_MAX, .flags = HF__VALUE_NAME,
        .help = "Shown beside the lock in listings."),
    ROW("prefix", TEXT, prefix, "", .max = 128, .flags = HF__VALUE_NAME,
        .help = "Put before every name on the engine."),
    ROW("dialect", TEXT, dialect, "", .max = 32, .flags = HF__VALUE_NAME,
        .help = "Layout of the lock on the engine; empty for our own."),
    ROW("mode", TEXT, mode, "", .max = 32, .flags = HF__VALUE_NAME,
        .help = "Which kind of lock an engine uses, where it has several."),
    ROW("table", TEXT, table, "", .max = 128, .flags = HF__VALUE_NAME,
        .help = "Name of the table of another dialect (shedlock, spring, "
                "row), or of the application's (mode=for_update)."),
    ROW("key", TEXT, key, "", .max = 64, .flags = HF__VALUE_NAME,
        .help = "Column that has the names, in a table of the application's "
                "(dialect=row, mode=for_update, version_table)."),
    ROW("owner_column", TEXT, owner_column, "", .max = 64,
        .flags = HF__VALUE_NAME,
        .help = "Column of that table that tells who holds (dialect=row)."),
    ROW("version_table", TEXT, version_table, "", .max = 128,
        .flags = HF__VALUE_NAME,
        .help = "Table of the application's whose versions hf_version_read() "
                "and hf_version_commit() use."),
    ROW("column", TEXT, column, "version", .max = 64, .flags = HF__VALUE_NAME,
        .help = "Column that has the version, in version_table."),
    ROW("region", TEXT, region, "DEFAULT", .max = 100, .flags = HF__VALUE_NAME,
        .help = "Region of the lock repository (spring)."),
    ROW("local_handover", INTEGER, local_handover, "auto", .max = 1000000,
        .flags = HF__VALUE_AUTO,
        .help = "How often in a row a lock may pass between threads of this "
                "process without the engine; auto is 16 where each pass still "
                "gets a larger token, else 0."),
    ROW("deadlock", CHOICE, deadlock, "report", .choices = "report|break|off",
        .help = "What to do when owners wait for one another for ever: log "
                "it, or also end the wait of the youngest with HF_EDEADLK; off "
                "does not look."),
    ROW("drive", CHOICE, drive, "auto", .choices = "auto|app",
        .help = "What runs the engine: threads of the library, or the program "
                "by hf_event_fd() and hf_dispatch()."),
    ROW("spin", BOOLEAN, spin, "on",
        .help = "Whether callers that wait look for their answers for up to "
                "300 us before they sleep, as long as that pays."),
    ROW("connect", CHOICE, connect, "wait", .choices = "wait|lazy",
        .help = "Whether hf_open() waits for the connection."),
    ROW("connect_timeout", DURATION, connect_timeout_ms, "5s", .min = 1,
        .max = HF_HOURS, .help = "How long connecting may take."),
    ROW("io_timeout", DURATION, io_timeout_ms, "5s", .min = 1, .max = HF_HOURS,
        .help = "How long one answer of the engine may take."),
    ROW("session_timeout", DURATION, session_timeout_ms, "0", .max = HF_DAYS,
        .help = "Session lease of engines that have one; 0 for the ttl."),
    ROW("lock_delay", DURATION, lock_delay_ms, "0", .max = HF_HOURS,
        .help =
            "Keep a lock whose holder died or lost it closed for this long."),
    ROW("drift", NUMBER, drift, "0.02", .max = 50,
        .help = "Share of a lease by which two clocks may differ."),
    ROW("retry.policy", CHOICE, retry_policy, "exponential",
        .choices = "forever|ntimes|exponential|elapsed",
        .help = "How to poll while waiting, where the engine does not wake "
                "waiters."),
    ROW("retry.base", DURATION, retry_base_ms, "50ms", .min = 1,
        .max = HF_HOURS, .help = "First pause of retry.policy=exponential."),
    ROW("retry.interval", DURATION, retry_interval_ms, "100ms", .min = 1,
        .max = HF_HOURS, .help = "Pause of the other retry policies."),
    ROW("retry.max_interval", DURATION, retry_max_interval_ms, "2s", .min = 1,
        .max = HF_DAYS, .help = "Longest pause of retry.policy=exponential."),
    ROW("retry.max_elapsed", DURATION, retry_max_elapsed_ms, "30s", .min = 1,
        .max = 365 * HF_DAYS, .help = "When retry.policy=elapsed gives up."),
    ROW("retry.max_attempts", INTEGER, retry_max_attempts, "0", .max = 1000000,
        .help = "When retry.policy=ntimes gives up; 0 for no limit."),
    ROW("retry.jitter", NUMBER, retry_jitter, "0.2", .max = 100,
        .help = "Share of each pause that is random."),
    ROW("node_timeout", DURATION, node_timeout_ms, "50ms", .min = 1,
        .max = HF_MINUTES,
        .help = "How long one of several masters may take (redlock)."),
    ROW("sync_replicas", INTEGER, sync_replicas, "0", .max = 64,
        .help = "Replicas that must confirm a grant, where the engine can "
                "ask them."),
    ROW("user", TEXT, user, "", .max = 255, .flags = HF__VALUE_NAME,
        .help = "User name for the engine."),
    ROW("password", TEXT, password, "", .max = 4096, .flags = HF__VALUE_SECRET,
        .help = "Password for the engine; password_file is safer."),
    SECRET_FILE("password_file",
                "File whose first line is the password; mode 0600."),
    ROW("acl", TEXT, acl, "", .max = 4096, .flags = HF__VALUE_SECRET,
        .help = "Access list of what we create (zookeeper)."),
    ROW("tls.ca", TEXT, tls_ca, "", .max = 4095, .flags = HF__VALUE_NAME,
        .help = "File of certificates to trust; empty for the system's."),
    ROW("tls.cert", TEXT, tls_cert, "", .max = 4095, .flags = HF__VALUE_NAME,
        .help = "File of our certificate; needs tls.key."),
    ROW("tls.key", TEXT, tls_key, "", .max = 4095, .flags = HF__VALUE_NAME,
        .help = "File of our private key; needs tls.cert."),
    SECRET_FILE("tls.key_password_file",
                "File whose first line is the password of tls.key; mode 0600."),
    ROW("tls.verify", BOOLEAN, tls_verify, "on",
        .help = "Check the server's certificate and name."),
    ROW("pool.max", INTEGER, pool_max, "8", .min = 1, .max = 10000,
        .help = "Most connections of engines that need one per lock."),
    ROW("pool.max_idle", INTEGER, pool_max_idle, "8", .max = 10000,
        .help = "Connections kept open for the next lock."),
    ROW("pool.wait", DURATION, pool_wait_ms, "5s", .max = HF_DURATION_MAX,
        .flags = HF__VALUE_FOREVER,
        .help = "How long to wait for a free connection."),
    ROW("pool.exhausted", CHOICE, pool_exhausted, "block",
        .choices = "block|fail|grow",
        .help = "What to do when all connections are in use."),
    ROW("pool.check", BOOLEAN, pool_check, "off",
        .help = "Test an idle connection before it is used."),
    ROW("trust_owner", TEXT, trust_owner, "", .max = 255,
        .flags = HF__VALUE_NAME,
        .help = "User, by name or number, who may own the directory of a "
                "local store beside ourselves and root."),
    ROW("fault", TEXT, fault, "", .max = 4096, .flags = HF__VALUE_NAME,
        .help = "What the wrapper fault+ does wrong, and when."),
};

/* What users of other libraries write, where the spelling does not help. */
static const struct {
    const char *foreign;
    const char *ours;
} foreign_keys[] = {
    {"timeout", "wait"},
    {"expire", "ttl"},
    {"expiration", "ttl"},
    {"leasetime", "ttl"},
    {"lockwatchdogtimeout", "ttl"},
    {"namespace", "prefix"},
    {"maxtotal", "pool.max"},
    {"maxactive", "pool.max"},
    {"maxidle", "pool.max_idle"},
    {"maxwait", "pool.wait"},
    {"maxwaitmillis", "pool.wait"},
    {"blockwhenexhausted", "pool.exhausted"},
    {"testonborrow", "pool.check"},
    {"basesleeptimems", "retry.base"},
    {"maxsleepms", "retry.max_interval"},
    {"maxretries", "retry.max_attempts"},
    {"retryintervalms", "retry.interval"},
    {"retryinterval", "retry.interval"},
    {"username", "user"},
    {"reentrant", "the flag HF_NON_REENTRANT of hf_opts"},
    {"address", "url"},
};

static const char *key_name_at(size_t i)
{
    return hf__keys[i].name;
}

const char *hf__key_similar(const char *name)
{
    char wanted[HF__VALUE_WORD];

    hf__value_squeeze(name, wanted);
    for (size_t i = 0; i < HF_COUNT_OF(foreign_keys); i++) {
        if (strcmp(foreign_keys[i].foreign, wanted) == 0)
            return foreign_keys[i].ours;
    }
    return hf__value_nearest(name, key_name_at, HF__KEYS);
}

int hf__key_unknown(const char *name, hf_error *err)
{
    const char *similar = hf__key_similar(name);
    char shown[HF__VALUE_WORD];

    if (similar)
        return hf__fail(err, HF_ECONFIG,
                        "there is no key '%s'; did you mean %s?",
                        hf__value_quote(name, shown), similar);
    return hf__fail(err, HF_ECONFIG,
                    "there is no key '%s'; libholdfast(3) lists the keys",
                    hf__value_quote(name, shown));
}

const struct hf__key *hf__key_find(const char *name)
{
    for (size_t i = 0; i < HF__KEYS; i++) {
        if (strcmp(hf__keys[i].name, name) == 0)
            return &hf__keys[i];
    }
    return NULL;
}
