/* SPDX-License-Identifier: MIT */
/*
 * holdfast.h - one lock with one meaning, on whichever engine you run.
 *
 *     hf_client *client;
 *     hf_hold *hold;
 *     hf_error err;
 *
 *     if (hf_open("local:", NULL, &client, &err) != 0)
 *         die(err.text);
 *     if (hf_acquire(client, "nightly-report", NULL, &hold, &err) == 0) {
 *         write_report(hf_token(hold));
 *         if (hf_release(hold, &err) != 0)
 *             undo_report(err.text);
 *     }
 *     hf_close(client);
 *
 * WHAT A LOCK MEANS HERE. hf_acquire() returns 0 if and only if the caller
 * holds the lock. A hold is HELD, then perhaps in JEOPARDY (a renewal is
 * overdue), then LOST. LOST is reached, and told, before the engine could
 * grant the lock to anybody else; the claim is counted from before the
 * request was sent, on a clock that does not stop while the machine sleeps.
 * Nothing that was asked for is left behind: not after a timeout, a cancel, a
 * lost answer or a reconnect.
 *
 * WHAT IT DOES NOT MEAN. A thread can be stopped between its last hf_check()
 * and its next write. No lock with a lease can exclude that. The token can:
 * it is larger than that of every earlier grant of the same name. Show it to
 * the resource on first contact and on every write, and let the resource
 * refuse a smaller one. holdfast(7) says what each engine promises.
 *
 * THREADS. Every function may be called from any thread at any time, except
 * where it says otherwise. Callbacks run on a thread of ours or inside
 * hf_dispatch(), never inside another call, and may call anything but
 * hf_close() and hf_shutdown().
 *
 * FORK. In a forked child every call on a client of the parent answers
 * HF_EFORK, and the parent's locks stay the parent's.
 *
 * OWNERSHIP. Strings and structs passed in are borrowed for the call and
 * copied where they are needed longer. Handles passed out are yours until the
 * function that says it consumes them. Functions that return int return 0 or a
 * positive answer on success, and a negative HF_E* code on failure. A trailing
 * hf_error pointer may be NULL and is written only on failure. Output
 * parameters are written only on success.
 *
 * GUEST. The library never prints, exits, aborts, changes the locale or
 * installs a signal handler; signals never end a call.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0
#define HF_VERSION_TEXT "0.1.0"

/** A name has 1 to this many bytes of UTF-8, and no control characters. */
#define HF_NAME_MAX 255
/** An owner has 1 to this many bytes of UTF-8, and no control characters. */
#define HF_OWNER_MAX 127
/** A note has at most this many bytes of UTF-8, and no control characters. */
#define HF_NOTE_MAX 255
/** The name of a condition has 1 to this many bytes, otherwise as names. */
#define HF_COND_MAX 63
/** The largest number of slots that a semaphore may have. */
#define HF_SLOTS_MAX 65535
/** The longest wait, lease or cap: a hundred years, in milliseconds. */
#define HF_DURATION_MAX INT64_C(3155760000000)
/** A wait without end. */
#define HF_FOREVER (-1)
/** hf_opts.wait_ms: as the configuration says for this name. */
#define HF_CONFIGURED (-2)

/*
 * Errors
 * ------
 */

/**
 * All errors: name, value, text.
 *
 * The values never change; new ones are added at the end.
 */
#define HF_ERROR_MAP(X)                                                        \
    X(EBUSY, -1, "another owner holds the lock")                               \
    X(ETIMEOUT, -2, "another owner kept the lock until the wait ran out")      \
    X(ECANCELED, -3, "the request was cancelled")                              \
    X(ELOST, -4, "the lock was lost before it was released")                   \
    X(EUNKNOWN, -5, "the outcome is unknown; an acquire is withdrawn")         \
    X(EUNAVAILABLE, -6, "the engine does not answer")                          \
    X(EAUTH, -7, "the engine refused the credentials")                         \
    X(ECONFIG, -8, "the configuration is wrong")                               \
    X(EINVAL, -9, "an argument is wrong")                                      \
    X(EUNSUPPORTED, -10, "this engine cannot do that")                         \
    X(EDEADLK, -11, "this owner would wait for itself")                        \
    X(EFORK, -12, "the client belongs to the parent process")                  \
    X(ENOMEM, -13, "out of memory")                                            \
    X(EINTERNAL, -14, "a bug in holdfast")                                     \
    X(ECLOSED, -15, "the client is closed")                                    \
    X(ECONFLICT, -16, "the version or token differs")                          \
    X(ENOTFOUND, -17, "there is nothing of that name")                         \
    X(ENOSPACE, -18, "the engine's store is full")

#define HF_X(name, value, text) , HF_##name = (value)
enum hf_errcode { HF_OK = 0 HF_ERROR_MAP(HF_X) };
#undef HF_X

/**
 * What went wrong: a code for programs, a sentence for people.
 *
 * The layout is frozen: 256 bytes. @text is always terminated, cut at a UTF-8
 * boundary, holds no secret, and ends with what to do next where we know it.
 */
typedef struct hf_error {
    int code;        /* HF_E* */
    int engine_code; /* the engine's own: an errno, a server's number, or 0 */
    char text[248];
} hf_error;

/** The fixed sentence for @code. Never NULL. */
HF_API const char *hf_strerror(int code);
/** The constant's name, "HF_EBUSY". Never NULL. */
HF_API const char *hf_errname(int code);
/** 1 if the same call may succeed later without a change by the caller. */
HF_API int hf_is_retriable(int code);
/** 1 if no call on this client can succeed any more. */
HF_API int hf_is_fatal(int code);
/** "0.1.0". */
HF_API const char *hf_library_version(void);

/*
 * Handles
 * -------
 */

typedef struct hf_client hf_client;     /* one connection to one engine */
typedef struct hf_config hf_config;     /* text keys and values */
typedef struct hf_hold hf_hold;         /* proof of a granted lock */
typedef struct hf_request hf_request;   /* an asynchronous call */
typedef struct hf_election hf_election; /* a standing candidacy */

/** Modes: one holder; many readers; up to N holders. */
enum { HF_EXCLUSIVE = 0, HF_SHARED = 1, HF_SLOT = 2 };

/** States of a hold, in the only order in which they are reached,
 *  except that HF_HELD may follow HF_JEOPARDY again. HF_WAITING: given up
 *  inside hf_cond_wait(), and not held. */
enum {
    HF_HELD = 0,
    HF_JEOPARDY = 1,
    HF_LOST = 2,
    HF_RELEASED = 3,
    HF_WAITING = 4
};

/** Flags of hf_opts. */
enum {
    /** The same owner asking twice gets HF_EDEADLK instead of a re-entry. */
    HF_NON_REENTRANT = 1,
    /** The lease is not renewed; the lock is lost when it ends. */
    HF_NO_RENEW = 2,
    /** This acquire has an owner of its own: it is no re-entry of any hold. */
    HF_NEW_OWNER = 4
};

/** Capabilities: what the engine behind a client can promise. The bits by
 *  number, for programs that read this header; HF_CAP_* are the bits. */
enum {
    HF_CAP_BIT_FENCED = 0,        /* tokens are honest */
    HF_CAP_BIT_FIFO = 1,          /* first come, first served */
    HF_CAP_BIT_SHARED = 2,        /* HF_SHARED works */
    HF_CAP_BIT_SLOTS = 3,         /* HF_SLOT works */
    HF_CAP_BIT_PUSH = 4,          /* a release wakes the next */
    HF_CAP_BIT_LEASED = 5,        /* a silent holder loses it */
    HF_CAP_BIT_SESSION_BOUND = 6, /* one lease for all locks */
    HF_CAP_BIT_SURVIVES_RESTART = 7,
    HF_CAP_BIT_SURVIVES_FAILOVER = 8,
    HF_CAP_BIT_DISTRIBUTED = 9,  /* between machines */
    HF_CAP_BIT_DOWNGRADE = 10,   /* hf_downgrade() works */
    HF_CAP_BIT_VERSIONS = 11,    /* hf_version_*() work */
    HF_CAP_BIT_LIST = 12,        /* hf_list() sees everybody */
    HF_CAP_BIT_BREAK = 13,       /* hf_break() works */
    HF_CAP_BIT_CHECK_TOKEN = 14, /* hf_check_token() is exact */
    /** A dead holder is noticed at once, not when its lease ends. */
    HF_CAP_BIT_DEATH_NOTICE = 15,
    HF_CAP_BIT_LOCK_DELAY = 16, /* lock_delay= is kept */
    /** A broken connection alone frees nothing: LOST comes before the next grant. */
    HF_CAP_BIT_TOLD_BEFORE_REGRANT = 17,
    HF_CAP_BIT_CONDITIONS = 18 /* hf_cond_*() work */
};
#define HF_CAP_FENCED (UINT64_C(1) << HF_CAP_BIT_FENCED)
#define HF_CAP_FIFO (UINT64_C(1) << HF_CAP_BIT_FIFO)
#define HF_CAP_SHARED (UINT64_C(1) << HF_CAP_BIT_SHARED)
#define HF_CAP_SLOTS (UINT64_C(1) << HF_CAP_BIT_SLOTS)
#define HF_CAP_PUSH (UINT64_C(1) << HF_CAP_BIT_PUSH)
#define HF_CAP_LEASED (UINT64_C(1) << HF_CAP_BIT_LEASED)
#define HF_CAP_SESSION_BOUND (UINT64_C(1) << HF_CAP_BIT_SESSION_BOUND)
#define HF_CAP_SURVIVES_RESTART (UINT64_C(1) << HF_CAP_BIT_SURVIVES_RESTART)
#define HF_CAP_SURVIVES_FAILOVER (UINT64_C(1) << HF_CAP_BIT_SURVIVES_FAILOVER)
#define HF_CAP_DISTRIBUTED (UINT64_C(1) << HF_CAP_BIT_DISTRIBUTED)
#define HF_CAP_DOWNGRADE (UINT64_C(1) << HF_CAP_BIT_DOWNGRADE)
#define HF_CAP_VERSIONS (UINT64_C(1) << HF_CAP_BIT_VERSIONS)
#define HF_CAP_LIST (UINT64_C(1) << HF_CAP_BIT_LIST)
#define HF_CAP_BREAK (UINT64_C(1) << HF_CAP_BIT_BREAK)
#define HF_CAP_CHECK_TOKEN (UINT64_C(1) << HF_CAP_BIT_CHECK_TOKEN)
#define HF_CAP_DEATH_NOTICE (UINT64_C(1) << HF_CAP_BIT_DEATH_NOTICE)
#define HF_CAP_LOCK_DELAY (UINT64_C(1) << HF_CAP_BIT_LOCK_DELAY)
#define HF_CAP_TOLD_BEFORE_REGRANT                                             \
    (UINT64_C(1) << HF_CAP_BIT_TOLD_BEFORE_REGRANT)
#define HF_CAP_CONDITIONS (UINT64_C(1) << HF_CAP_BIT_CONDITIONS)

/** Options of hf_acquire(). */
typedef struct hf_opts {
    uint32_t size;       /* sizeof(hf_opts); lets us append fields */
    uint32_t flags;      /* HF_NON_REENTRANT, HF_NO_RENEW, HF_NEW_OWNER */
    int32_t mode;        /* HF_EXCLUSIVE, HF_SHARED, HF_SLOT */
    int32_t slots;       /* HF_SLOT: how many holders the name admits */
    int64_t wait_ms;     /* 0: try once; HF_FOREVER, HF_CONFIGURED */
    int64_t ttl_ms;      /* 0: the client's, 30 000 unless configured */
    int64_t max_hold_ms; /* 0: the client's; then the keeper stops renewing.
                            HF_FOREVER: no cap, whatever is configured */
    const char *owner;   /* NULL: the calling thread; re-entry is per owner.
                            Beside an id: a label for records alone */
    const char *note;    /* shown beside it in listings; may be NULL */
    void (*on_event)(hf_hold *hold, int state, void *ctx); /* may be NULL */
    void *ctx; /* passed to @on_event */
    /* What follows is 0 for programs built with the first header. */
    uint64_t owner_id; /* of hf_owner_new() or hf_hold_owner(); 0: none */
    int32_t priority;  /* must be 0: no engine has priorities yet */
    uint32_t reserved; /* must be 0 */
} hf_opts;

/** The defaults, the same as NULL for options: exclusive, wait as the
 *  configuration says (for ever, if it says nothing). Valid in C99 and C++98. */
#define HF_OPTS_INIT                                                           \
    {                                                                          \
        (uint32_t)sizeof(hf_opts), 0, 0, 0, HF_CONFIGURED, 0, 0, 0, 0, 0, 0,   \
            0, 0, 0                                                            \
    }

/** The same for bindings; @size is their sizeof(hf_opts). */
HF_API void hf_opts_init(hf_opts *opts, size_t size);

/** The outcome of a request. @hold: of hf_acquire_start(), the callback's to
 *  release; of hf_verify_start(), the hold in question, borrowed; else NULL.
 *  @err is valid during the call, and NULL when @rc is 0. */
typedef void hf_done_cb(int rc, hf_hold *hold, const hf_error *err, void *ctx);
/** A hold changed its state: HF_JEOPARDY, HF_HELD again, HF_LOST (last). Where
 *  it changed twice before this could be called, the newest is told. */
typedef void hf_event_cb(hf_hold *hold, int state, void *ctx);
/** Receives text in pieces. */
typedef void hf_write_cb(const char *text, size_t len, void *ctx);

/*
 * Configuration
 * -------------
 *
 * One table of keys serves hf_config_set(), the query of a URL, the
 * configuration file and the environment (HOLDFAST_RETRY_BASE is
 * retry.base). An explicit hf_config_set() wins over the URL, the URL over the
 * environment, the environment over the file. Durations carry a unit:
 * 250ms, 30s, 5m, 2h, 1d. libholdfast(3) lists the keys.
 */

/** A new, empty configuration, or NULL without memory. */
HF_API hf_config *hf_config_new(void);
/** Frees @config; NULL is ignored. Clients opened with it are not affected. */
HF_API void hf_config_free(hf_config *config);
/**
 * Set one key.
 *
 *   HF_ECONFIG  no such key, or not a value it takes; @err says what it takes
 */
HF_API int hf_config_set(hf_config *config, const char *key, const char *value,
                         hf_error *err);
/** The same for a value that the program prefers to the default: code, URL,
 *  environment and file win over it. */
HF_API int hf_config_prefer(hf_config *config, const char *key,
                            const char *value, hf_error *err);
/**
 * Read an INI file. Keys before the first section and in the section
 * [@profile] apply (@profile may be NULL); the section's key "url" is what
 * hf_open(NULL, config, …) opens. Sections [lock PATTERN] give ttl, wait,
 * max_hold and note for the names that match the shell pattern.
 *
 *   HF_ENOTFOUND  no such file, or no such profile in it
 *   HF_ECONFIG    a line is wrong; @err names the line
 */
HF_API int hf_config_load(hf_config *config, const char *path,
                          const char *profile, hf_error *err);
/** The value in force as text; borrowed until the next change. NULL: no such
 *  key. Secrets are returned as "***". */
HF_API const char *hf_config_get(const hf_config *config, const char *key);

/** One row of the table of keys. */
typedef struct hf_key_info {
    uint32_t size;
    const char *name;     /* "retry.base" */
    const char *type;     /* "duration", "integer", "text", "a|b|c", … */
    const char *standard; /* the default as text; "" if there is none */
    const char *help;     /* one sentence */
} hf_key_info;
typedef int hf_key_cb(const hf_key_info *key, void *ctx); /* non-zero stops */
/** Calls @each for every key there is. */
HF_API int hf_config_keys(hf_key_cb *each, void *ctx);
/** Write @text, a URL or "key=value", to @to with @mask in place of every
 *  secret; without a mask (NULL) secrets are taken out, and a URL names the same
 *  engine. What follows the scheme of a malformed URL is a secret. The text is
 *  cut to @size; returns its whole length, as snprintf(3) does. */
HF_API size_t hf_redact(const char *text, const char *mask, char *to,
                        size_t size);

/*
 * Clients
 * -------
 */

/**
 * Connect to the engine that @url names.
 *
 * @url NULL: the environment's HOLDFAST_URL, else the configuration's url,
 * else "local:". Waits for the connection (connect_timeout); with
 * connect=lazy it does not. @config may be NULL; it is copied.
 *
 *   HF_ECONFIG      the URL, a key or a value is wrong
 *   HF_EUNSUPPORTED the engine is not built or installed, or a capability that
 *                   require= asks for is missing; @err says which
 *   HF_EUNAVAILABLE no answer within connect_timeout
 *   HF_EAUTH        the engine refused the credentials
 */
HF_API int hf_open(const char *url, const hf_config *config,
                   hf_client **ret_client, hf_error *err);
/**
 * The same without waiting: the client is there at once and may be used as with
 * connect=lazy; the request's outcome is that of the first connection, or of
 * connect_timeout. What is wrong with the URL, a key or a library is returned,
 * and then there is no client. After a failed outcome the client still has to
 * be closed; HF_EUNAVAILABLE does not keep it from connecting later.
 *
 * Cancelled, the outcome is HF_ECANCELED, and the client goes on connecting.
 */
HF_API int hf_open_start(const char *url, const hf_config *config,
                         hf_done_cb *done, void *ctx, hf_client **ret_client,
                         hf_request **ret_request, hf_error *err);
/**
 * Refuse new calls (HF_ECLOSED), cancel waiters, release what is held, and
 * wait until the engine has confirmed it all, at most @wait_ms.
 *
 *   HF_ETIMEOUT  something is unconfirmed; it ends with its lease
 */
HF_API int hf_shutdown(hf_client *client, int64_t wait_ms, hf_error *err);
/**
 * hf_shutdown() within io_timeout, then free the client. NULL is ignored.
 * Holds and requests outlive it as empty handles: they still have to be
 * released or freed. Requests end with HF_ECLOSED, but a release as it ended or
 * with HF_EUNKNOWN; their callbacks have run when this returns. (After
 * hf_event_fd() they run in hf_dispatch() alone: call hf_shutdown(), then
 * hf_dispatch(), then this.) Not from a callback.
 */
HF_API void hf_close(hf_client *client);
/** What the engine behind @client promises: HF_CAP_* bits. */
HF_API uint64_t hf_capabilities(const hf_client *client);
/** "fenced" for HF_CAP_FENCED, …; NULL for no single known bit. */
HF_API const char *hf_capability_name(uint64_t capability);
/** The engine's name, "local". */
HF_API const char *hf_engine_name(const hf_client *client);
/** The URL without secrets; of "local:", with the directory. Lives as long as the client. */
HF_API const char *hf_client_url(const hf_client *client);
/** The client's identity as the engine's records show it: 32 hex digits. */
HF_API const char *hf_client_id(const hf_client *client);

/*
 * Locks
 * -----
 */

/**
 * Acquire the lock called @name, waiting at most @opts->wait_ms.
 *
 * Returns 0 if and only if this caller holds the lock, and then sets
 * *ret_hold. Every other value means "you do not hold it":
 *
 *   HF_EBUSY        tried once, and another owner holds it; @err says who
 *   HF_ETIMEOUT     another owner kept it until the wait ran out; @err says who
 *   HF_EUNAVAILABLE the engine never answered
 *   HF_EUNKNOWN     sent, but the answer was lost; it is being taken back
 *   HF_EDEADLK      this owner holds it in a way that it would wait for itself
 *   HF_EUNSUPPORTED the engine has no such mode
 *   HF_ENOSPACE     the engine's store is full
 *   HF_EINVAL       the name or an option is wrong
 *   HF_ECLOSED      the client was shut down, also while waiting
 *
 * The wait counts from entry and covers connecting, the queue inside this
 * process and the engine. A wait in vain ends with the last reason that is
 * known; where the engine has to be asked who holds the lock, it may end up to
 * 200 ms later. A try (0) is one attempt, whose answer is awaited up
 * to io_timeout. An owner that holds @name already gets another hold with the
 * same token at once; the lock is freed by the last release. @opts may be NULL.
 *
 * Any thread. Blocks. Not interrupted by signals; see hf_acquire_start().
 */
HF_API int hf_acquire(hf_client *client, const char *name, const hf_opts *opts,
                      hf_hold **ret_hold, hf_error *err);
/** hf_acquire() that does not wait: wait_ms 0, all else as without options. */
HF_API int hf_try(hf_client *client, const char *name, hf_hold **ret_hold,
                  hf_error *err);
/**
 * Acquire again what was lost: the same name, options and owner, in the mode
 * that it had, waiting at most @wait_ms (as in hf_opts). 0: @hold is HF_HELD
 * again, with a new, larger token. Otherwise it stays HF_LOST, with an error of
 * hf_acquire(), and may be tried again.
 *
 *   HF_EINVAL        it is not lost
 *   HF_EUNSUPPORTED  a multi-lock: release it, and acquire all of it anew
 *
 * Between the loss and this anybody may have had the lock: look at what it
 * protects as after a first acquire. No HF_HELD is told for it. Any thread, also
 * in the hold's own callback; give a bounded @wait_ms there, because an
 * hf_release() of @hold waits for its callback. Blocks.
 */
HF_API int hf_reacquire(hf_hold *hold, int64_t wait_ms, hf_error *err);
/**
 * Acquire several names as one hold: all or nothing, in one order for
 * everybody (so that two multi-locks never deadlock), within one wait.
 *
 * Errors as hf_acquire(); @err names the lock that failed. Duplicate names or
 * @n of 0: HF_EINVAL. The one hold's check is its worst member, its remaining
 * time the shortest; tokens by hf_token_at().
 */
HF_API int hf_acquire_many(hf_client *client, const char *const *names,
                           size_t n, const hf_opts *opts, hf_hold **ret_hold,
                           hf_error *err);
/**
 * Release @hold. Consumes one reference in every case.
 *
 *   0            it was ours until now
 *   HF_ELOST     it was lost before; no other lock was touched
 *   HF_EUNKNOWN  no answer; we go on until the engine has confirmed
 *
 * No on_event of @hold begins or runs any more once this has returned; called
 * in that callback itself, none comes after it.
 *
 * Any thread. Blocks for the engine's answer unless release=post.
 */
HF_API int hf_release(hf_hold *hold, hf_error *err);
/** Turn an exclusive hold into a shared one, without letting go in between. */
HF_API int hf_downgrade(hf_hold *hold, hf_error *err);
/** With renew=beat: "I am alive". Without a beat there is no renewal. No I/O.
 *  HF_ELOST if it is too late. */
HF_API int hf_beat(hf_hold *hold);
/** HF_HELD, HF_JEOPARDY, HF_LOST or HF_RELEASED; HF_EFORK in a forked child.
 *  No I/O, no lock: two loads and the clock. */
HF_API int hf_check(const hf_hold *hold);
/** Ask the engine whether @hold is still ours, and renew it. 0, HF_ELOST,
 *  HF_EUNAVAILABLE or HF_EUNKNOWN. */
HF_API int hf_verify(hf_hold *hold, hf_error *err);
/** The fencing token, 1 … 2^63-1; 0 if this engine has no honest one, and for
 *  a multi-lock. Unchanged after loss. */
HF_API uint64_t hf_token(const hf_hold *hold);
/** The token of member @i of a multi-lock, in the caller's order. */
HF_API uint64_t hf_token_at(const hf_hold *hold, size_t i);
/** Milliseconds for which the lock is surely ours without another renewal: 0
 *  after loss, HF_FOREVER where there is no lease. */
HF_API int64_t hf_remaining_ms(const hf_hold *hold);
/** The lease as it was granted; 0 where there is none, and after the end. Of a
 *  multi-lock the first one's. */
HF_API int64_t hf_ttl_ms(const hf_hold *hold);
/** The cap after which the keeper stops renewing, from the grant on, as options
 *  or configuration gave it; 0 for none, and after the end. */
HF_API int64_t hf_max_hold_ms(const hf_hold *hold);
/** The name; of a multi-lock the first one. Lives as long as the handle. */
HF_API const char *hf_hold_name(const hf_hold *hold);
/** Another reference, for a second thread. Each needs its own
 *  hf_hold_unref(), or hf_release(). */
HF_API hf_hold *hf_hold_ref(hf_hold *hold);
/** Drop a reference without releasing; NULL is ignored. The last one of a
 *  hold that was never released releases it. */
HF_API void hf_hold_unref(hf_hold *hold);
/**
 * An owner that is not a thread, for hf_opts.owner_id: never 0, never given
 * twice in this process.
 *
 * An owner is one task of the program, however many threads run it and however
 * many tasks one thread runs. Who owns what is acquired, in this order:
 * HF_NEW_OWNER, a new owner; owner_id, that one; owner, the one of that text;
 * else the calling thread, or, in hf_acquire_start(), a new owner. Owners mean
 * nothing outside the process, and nothing to another client.
 */
HF_API uint64_t hf_owner_new(void);
/** The owner of @hold, to compare with == or to give to hf_opts.owner_id; 0 for
 *  a textual owner, and once it is released. Of a multi-lock the first one's. */
HF_API uint64_t hf_hold_owner(const hf_hold *hold);
/**
 * Make @owner_id the owner of @hold: it may re-enter, the old one may not. The
 * token does not change, nothing is sent, and listings show the old owner's
 * text until the lock is passed on.
 *
 *   HF_ECONFLICT  the old owner has re-entered: it has another hold on it
 *   HF_ELOST      the lock is lost or released
 *   HF_EINVAL     @owner_id is 0
 */
HF_API int hf_hold_give(hf_hold *hold, uint64_t owner_id, hf_error *err);
/** 0 if @name may name a lock: for bindings with counted strings. */
HF_API int hf_name_check(const char *name, size_t len, hf_error *err);

/*
 * Asynchronous requests
 * ---------------------
 */

/**
 * Begin to acquire and return at once.
 *
 * So do hf_release_start(), hf_verify_start(), hf_open_start() and
 * hf_list_start(); all give the same kind of request.
 *
 * @done, if not NULL, is called exactly once, later, from a thread of ours or
 * from hf_dispatch(); the hold is its to keep. Without @done the outcome
 * belongs to hf_request_wait(). No owner means a new owner. Returns 0 or
 * what is wrong with the arguments; then @done is not called.
 */
HF_API int hf_acquire_start(hf_client *client, const char *name,
                            const hf_opts *opts, hf_done_cb *done, void *ctx,
                            hf_request **ret_request, hf_error *err);
/**
 * hf_release() that does not wait. Consumes one reference in every case, also
 * when it returns an error. The outcome is what hf_release() returns. No
 * on_event of @hold begins once this has returned, and none runs any more when
 * @done is called.
 *
 * A release cannot be cancelled: hf_cancel() makes the outcome HF_EUNKNOWN, and
 * we go on until the engine has confirmed.
 */
HF_API int hf_release_start(hf_hold *hold, hf_done_cb *done, void *ctx,
                            hf_request **ret_request, hf_error *err);
/** hf_verify() that does not wait. The request has its own reference to @hold;
 *  @done gets it borrowed. What is asked about one hold takes effect in the
 *  order of the calls. Cancelled: HF_ECANCELED. */
HF_API int hf_verify_start(hf_hold *hold, hf_done_cb *done, void *ctx,
                           hf_request **ret_request, hf_error *err);
/**
 * Wait for a request without callback. The first call that gets the outcome of
 * an hf_acquire_start() owns the hold; for other requests @ret_hold may be NULL
 * and is not written. The rows of a list come in here, on this thread. HF_ETIMEOUT with hf_request_pending() still 1 means that
 * @wait_ms ran out here and the request goes on.
 */
HF_API int hf_request_wait(hf_request *request, int64_t wait_ms,
                           hf_hold **ret_hold, hf_error *err);
/** 1 while the outcome is open. */
HF_API int hf_request_pending(const hf_request *request);
/** Ask that the request ends: exactly one outcome is delivered, HF_ECANCELED or
 *  what it would have been. Any thread, also from a signal handler. */
HF_API void hf_cancel(hf_request *request);
/** Every request has to be freed. An unfinished one is cancelled, without
 *  callback; a hold that no call took is released. NULL is ignored. */
HF_API void hf_request_free(hf_request *request);

/**
 * A descriptor that is readable when hf_dispatch() has something to do.
 *
 * From the first call on, callbacks run in hf_dispatch() only. With
 * drive=app there is no background thread: the descriptor carries sockets and
 * timers too, and no dispatch means no renewal. Owned by the client.
 */
HF_API int hf_event_fd(hf_client *client);
/** Do what is to be done, without blocking. Returns how many callbacks ran.
 *  What they ask for is sent when they have all returned. */
HF_API int hf_dispatch(hf_client *client);

/*
 * Conditions
 * ----------
 *
 * A condition belongs to a lock: it is known by the lock's name and its own.
 * Who holds the lock and finds that it has to wait for a change gives the lock
 * up and waits, in one step; who makes the change holds the lock and signals.
 *
 *     while (queue_is_empty())
 *         if (hf_cond_wait(hold, "not empty", HF_FOREVER, &err) != 0)
 *             ...
 *
 * Whoever returns from a wait holds the lock again and looks at its predicate
 * again: somebody may have come first, and a return without a signal is
 * allowed. One signal wakes one waiter, the one that has waited longest; without
 * a waiter it is forgotten. A woken one that dies, is cancelled or loses the
 * lock before it has released it, or waited again, passes its wake-up to the next
 * waiter. So no crash loses a wake-up, and an item that kills its consumer also
 * wakes the next one.
 *
 * Exclusive holds alone, taken once: a re-entered, shared or slot hold and a
 * multi-lock are refused (HF_EINVAL). HF_CAP_CONDITIONS says whether the engine
 * has conditions; those without answer HF_EUNSUPPORTED.
 */

/**
 * Give up @hold, wait until @cond is signalled or @wait_ms have passed
 * (HF_FOREVER: without end), and get the lock again. Getting it again is not
 * bounded by @wait_ms; use hf_cond_wait_start() and hf_cancel() for that.
 *
 *   0                woken, or for no reason: HF_HELD, with a larger token
 *   HF_ETIMEOUT      nobody signalled in time: HF_HELD likewise
 *   HF_ECANCELED     HF_RELEASED; so with HF_ECLOSED
 *   HF_ELOST         it was not ours any more: HF_LOST, nothing waits
 *   HF_EUNAVAILABLE  the wait is over and the engine is silent: HF_LOST
 *   HF_EINVAL        @cond is no name, or the hold is of the wrong kind
 *   HF_EUNSUPPORTED  the engine has no conditions
 *
 * After the last two the hold is unchanged, and after any other failure of the
 * engine to begin. While it waits hf_check() answers HF_WAITING, hf_token() the
 * old token; an hf_release() by another thread ends the wait (HF_ECANCELED). No
 * on_event tells that it is HF_HELD again. Any thread. Blocks.
 */
HF_API int hf_cond_wait(hf_hold *hold, const char *cond, int64_t wait_ms,
                        hf_error *err);
/**
 * Wake the one that has waited longest. Returns how many were woken: 0 or 1.
 *
 *   HF_ELOST     @hold was lost: nobody was woken
 *   HF_EUNKNOWN  it was lost while the engine did not answer
 *
 * The woken one gets the lock when it is free, after those who wait for it
 * already. An answer that is lost is asked for again, which may wake one more.
 * Any thread. Blocks.
 */
HF_API int hf_cond_signal(hf_hold *hold, const char *cond, hf_error *err);
/** Wake all that wait now. Returns how many. Otherwise as hf_cond_signal(). */
HF_API int hf_cond_broadcast(hf_hold *hold, const char *cond, hf_error *err);
/** hf_cond_wait() that does not wait. The request has its own reference to
 *  @hold; @done gets it borrowed. Cancelled: HF_ECANCELED, and the hold is
 *  HF_RELEASED, or what the outcome would have been. */
HF_API int hf_cond_wait_start(hf_hold *hold, const char *cond, int64_t wait_ms,
                              hf_done_cb *done, void *ctx,
                              hf_request **ret_request, hf_error *err);
/** hf_cond_signal() that does not wait, or, with @all, hf_cond_broadcast(). The
 *  outcome is how many were woken. Cancelled: HF_ECANCELED, and nobody knows
 *  whether it woke. */
HF_API int hf_cond_signal_start(hf_hold *hold, const char *cond, int all,
                                hf_done_cb *done, void *ctx,
                                hf_request **ret_request, hf_error *err);

/*
 * Elections
 * ---------
 */

/**
 * Stand as a candidate for @name until hf_elect_stop().
 *
 * @on_change is called with HF_HELD when elected (the hold is borrowed; its
 * token is the term), with HF_JEOPARDY and HF_LOST as for any hold; after
 * HF_LOST the candidacy goes on by itself, unless @on_change has acquired the
 * hold again (hf_reacquire()). @opts->wait_ms is ignored.
 */
HF_API int hf_elect_start(hf_client *client, const char *name,
                          const hf_opts *opts, hf_event_cb *on_change,
                          void *ctx, hf_election **ret_election, hf_error *err);
/** HF_HELD or HF_JEOPARDY while leading, HF_RELEASED while a candidate. */
HF_API int hf_elect_check(const hf_election *election);
/** Resign and free. As hf_release() while leading, else 0. NULL: 0. */
HF_API int hf_elect_stop(hf_election *election, hf_error *err);

/*
 * SQL: the lock and the data in one transaction
 * ---------------------------------------------
 */

/**
 * The connection whose open transaction holds the lock (mode=for_update), for
 * the caller's own statements: a MYSQL * of libmariadb, a PGconn * of libpq.
 *
 * What is written through it is committed by hf_release(), together with the
 * lock: 0 means that it is in the database, HF_ELOST that nothing of it is,
 * HF_EUNKNOWN that the connection broke while it was being committed. So a lock
 * that was lost cannot do harm, and no token is needed.
 *
 * From this call until hf_release() the connection is the caller's alone, one
 * thread at a time; the library neither reads nor writes it, does not renew,
 * and hf_check() tells only what the caller's own statements would find out
 * earlier. The lock then lasts as long as the connection. Read every result
 * to its end, and end neither the connection nor the transaction: to undo, roll
 * back, and hf_release() answers HF_ELOST. Do not close the client, nor let
 * max_hold end the hold, while a statement runs. Ask again as often as you
 * like. MariaDB and PostgreSQL have it.
 *
 *   HF_ELOST         the lock is lost or released
 *   HF_EUNSUPPORTED  this lock has no transaction of its own
 *
 * Any thread. Blocks for one trip.
 */
HF_API int hf_sql_connection(hf_hold *hold, void **ret_connection,
                             hf_error *err);

/*
 * Optimistic versions
 * -------------------
 */

/** The version of @name; 0 if it was never committed. */
HF_API int hf_version_read(hf_client *client, const char *name,
                           uint64_t *ret_version, hf_error *err);
/** Replace the version if it still is @expected. HF_ECONFLICT if it is not;
 *  HF_EUNKNOWN if it was sent and the answer was lost: read the version again.
 *  The new one is larger than every earlier one. */
HF_API int hf_version_commit(hf_client *client, const char *name,
                             uint64_t expected, uint64_t *ret_version,
                             hf_error *err);

/*
 * Looking at locks
 * ----------------
 */

/** Roles of hf_lock_info. HF_PARKED waits for a condition, not for the lock. */
enum { HF_HOLDER = 0, HF_WAITER = 1, HF_PARKED = 2 };
/** Does the process that a row names still live? */
enum { HF_ALIVE_NO = 0, HF_ALIVE_YES = 1, HF_ALIVE_UNKNOWN = 2 };

/** One holder of, or one waiter for, one lock. */
typedef struct hf_lock_info {
    uint32_t size; /* set by us */
    int32_t role;  /* HF_HOLDER, HF_WAITER, HF_PARKED */
    int32_t mode;  /* what it holds or waits for */
    int32_t slots; /* HF_SLOT: how many the name admits; else 0 */
    const char *name;
    const char *owner; /* never NULL */
    const char *host;  /* "" where the engine does not know */
    const char *note;  /* "" for none */
    int64_t pid;       /* 0 where the engine does not know */
    uint64_t token;    /* holders, where there is one */
    int64_t since_ms;  /* held or waited for so long; -1: unknown */
    int64_t lease_ms;  /* holders: until the engine would free it; -1: never */
    uint32_t place;    /* waiters, parked: 1 is the next */
    uint32_t alive;    /* HF_ALIVE_* */
    int64_t ttl_ms;    /* what a renewal makes of lease_ms; 0: unknown */
    const char *cond;  /* parked: for which condition; else "" */
} hf_lock_info;
typedef int hf_list_cb(const hf_lock_info *info, void *ctx);

/**
 * Call @each for every holder and waiter of the locks whose names begin with
 * @prefix (NULL: all), on this thread: the rows of one name together, holders
 * first, waiters in order, then those that wait for a condition. A non-zero return stops, and is returned.
 */
HF_API int hf_list(hf_client *client, const char *prefix, hf_list_cb *each,
                   void *ctx, hf_error *err);
/** The same for one name exactly. */
HF_API int hf_show(hf_client *client, const char *name, hf_list_cb *each,
                   void *ctx, hf_error *err);
/** Flags of hf_list_start(). */
enum { HF_EXACT = 1 /* the name is given, not a prefix */ };
/**
 * hf_list() that does not wait, or, with HF_EXACT, hf_show(). @each gets the
 * rows where @done is called, all of them before it; @ctx is for both. Without
 * @done they come in hf_request_wait(). A list that @each stops ends with what
 * it returned. Cancelled: HF_ECANCELED, and no rows.
 */
HF_API int hf_list_start(hf_client *client, const char *prefix, uint32_t flags,
                         hf_list_cb *each, hf_done_cb *done, void *ctx,
                         hf_request **ret_request, hf_error *err);
/**
 * Is @token the current grant of @name? 0 yes.
 *
 *   HF_ECONFLICT     no: it is held under another token, or was
 *   HF_ENOTFOUND     it is not held
 *   HF_EUNSUPPORTED  the engine cannot tell
 */
HF_API int hf_check_token(hf_client *client, const char *name, uint64_t token,
                          hf_error *err);
/**
 * Take @name away from the holder with @token or, where there are no tokens
 * (0), from @owner as hf_list() shows it. Compare and delete in one step.
 *
 *   HF_ECONFLICT  held under another token or owner
 *   HF_ENOTFOUND  it is not held
 *   HF_EINVAL     neither token nor owner given
 *   HF_EUNKNOWN   sent, and the answer was lost: look again
 */
HF_API int hf_break(hf_client *client, const char *name, uint64_t token,
                    const char *owner, hf_error *err);

/** One finding of hf_doctor(). */
enum { HF_FINDING_OK = 0, HF_FINDING_WARN = 1, HF_FINDING_FAIL = 2 };
typedef struct hf_finding {
    uint32_t size;
    int32_t status;     /* HF_FINDING_* */
    const char *check;  /* "directory" */
    const char *detail; /* what was found */
    const char *fix;    /* what to do; "" if nothing */
} hf_finding;
typedef int hf_finding_cb(const hf_finding *finding, void *ctx);
/** Probe the engine's real configuration. A non-zero return of @each stops. */
HF_API int hf_doctor(hf_client *client, hf_finding_cb *each, void *ctx,
                     hf_error *err);

/** One engine that this library knows. Lists are separated by spaces. */
typedef struct hf_engine_info {
    uint32_t size;
    uint32_t available; /* 1 if it can be used here */
    const char *name;
    const char *schemes;
    const char *dialects;
    uint64_t capabilities;
    const char *hint; /* what to install if it is not available */
} hf_engine_info;
typedef int hf_engine_cb(const hf_engine_info *engine, void *ctx);
/** Calls @each for every engine; loads nothing. */
HF_API int hf_engines(hf_engine_cb *each, void *ctx);

/** Metrics of @client as Prometheus text. */
HF_API int hf_metrics_write(hf_client *client, hf_write_cb *write, void *ctx);

/*
 * The process
 * -----------
 */

/** Levels of the log hook. */
enum {
    HF_LOG_ERROR = 0,
    HF_LOG_WARNING = 1,
    HF_LOG_INFO = 2,
    HF_LOG_DEBUG = 3
};
/** One line, no newline, no secret. May be called from any thread, never with
 *  a lock of ours held. */
typedef void hf_log_cb(int level, const char *text, void *ctx);
/** Set the log hook for lines up to @level; NULL for silence (the default).
 *  Before the first hf_open(). */
HF_API void hf_set_log(hf_log_cb *log, int level, void *ctx);
/** The same for the clients that are opened with @config, in place of the
 *  process's hook; NULL: that one. @ctx has to live until they are closed. */
HF_API void hf_config_set_log(hf_config *config, hf_log_cb *log, int level,
                              void *ctx);

typedef struct hf_allocator {
    void *(*allocate)(size_t size, void *ctx);
    void *(*reallocate)(void *memory, size_t size, void *ctx);
    void (*release)(void *memory, void *ctx);
    void *ctx;
} hf_allocator;
/** Replace malloc, realloc and free. Before any other call; the functions must
 *  not call us. NULL restores the standard ones. */
HF_API void hf_set_allocator(const hf_allocator *allocator);

/*
 * For C: the lock around a block
 * ------------------------------
 *
 *     int rc;
 *     HF_WITH_LOCK(client, "name", NULL, &rc) {
 *         ... break, return and goto release it too ...
 *     }
 *     if (rc != 0)    the first failure of acquire or release
 */

typedef struct hf_with {
    hf_hold *hold;
    int *rc;
    int done;
} hf_with;
/** What HF_WITH_LOCK() is made of. */
HF_API hf_with hf_with_enter(hf_client *client, const char *name,
                             const hf_opts *opts, int *rc);
HF_API void hf_with_leave(hf_with *with);
HF_API void hf_autorelease_leave(hf_hold **hold);

#if defined(__GNUC__)
#define HF_WITH_LOCK(client, name, opts, rc_pointer)                           \
    for (hf_with hf_with_scope __attribute__((cleanup(hf_with_leave))) =       \
             hf_with_enter((client), (name), (opts), (rc_pointer));            \
         hf_with_scope.hold && !hf_with_scope.done; hf_with_scope.done = 1)
/** hf_autorelease hf_hold *hold = NULL; releases it on every way out. */
#define hf_autorelease __attribute__((cleanup(hf_autorelease_leave)))
#endif

#ifdef __cplusplus
}
#endif

#endif
