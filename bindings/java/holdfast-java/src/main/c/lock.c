/* SPDX-License-Identifier: MIT */
/*
 * lock.c - native methods of locks, elections and versions.
 */
#include "bridge.h"

#include <stdlib.h>

static hf_hold *hold_of(jlong handle)
{
    return (hf_hold *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

static hf_request *request_of(jlong handle)
{
    return (hf_request *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

static hf_election *election_of(jlong handle)
{
    return (hf_election *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

/* ---- locks ------------------------------------------------------------------ */

/* The numbers of an acquire, in the order of Native.Options. */
enum { FLAGS, MODE, SLOTS, WAIT, TTL, MAX_HOLD, OWNER, EVENT, NUMBERS };

/* What an acquire is given: options, and the text that they point to. */
struct ask {
    hf_opts opts;
    char *name, *owner, *note;
};

static bool take_numbers(JNIEnv *env, jclass native, jlongArray numbers,
                         hf_opts *opts)
{
    jlong n[NUMBERS];

    if ((*env)->GetArrayLength(env, numbers) != NUMBERS) {
        bridge_throw_code(env, native, HF_EINTERNAL, "wrong number of options");
        return false;
    }
    (*env)->GetLongArrayRegion(env, numbers, 0, NUMBERS, n);
    hf_opts_init(opts, sizeof *opts);
    opts->flags = (uint32_t)n[FLAGS];
    opts->mode = (int32_t)n[MODE];
    opts->slots = (int32_t)n[SLOTS];
    opts->wait_ms = n[WAIT];
    opts->ttl_ms = n[TTL];
    opts->max_hold_ms = n[MAX_HOLD];
    opts->owner_id = (uint64_t)n[OWNER];
    opts->on_event = n[EVENT] ? bridge_on_event : NULL;
    opts->ctx = (void *)(intptr_t)n[EVENT]; // NOLINT(performance-no-int-to-ptr)
    return true;
}

static void drop_ask(struct ask *ask)
{
    free(ask->name);
    free(ask->owner);
    free(ask->note);
}

static bool take_ask(JNIEnv *env, jclass native, jbyteArray name,
                     jlongArray numbers, jbyteArray owner, jbyteArray note,
                     struct ask *ask)
{
    *ask = (struct ask){0};
    if (take_numbers(env, native, numbers, &ask->opts) &&
        bridge_take_text(env, native, name, &ask->name) &&
        bridge_take_text(env, native, owner, &ask->owner) &&
        bridge_take_text(env, native, note, &ask->note)) {
        ask->opts.owner = ask->owner;
        ask->opts.note = ask->note;
        return true;
    }
    drop_ask(ask);
    return false;
}

/* A refusal is an answer where the caller says so: no exception is made. */
static jlong outcome(JNIEnv *env, jclass native, int rc, const hf_hold *hold,
                     const hf_error *err, jboolean quiet)
{
    if (rc == 0)
        return (jlong)(intptr_t)hold;
    if (quiet && (rc == HF_EBUSY || rc == HF_ETIMEOUT || rc == HF_ECANCELED))
        return rc;
    bridge_throw(env, native, err);
    return rc;
}

static jlong JNICALL acquire(JNIEnv *env, jclass native, jlong handle,
                             jbyteArray name, jlongArray numbers,
                             jbyteArray owner, jbyteArray note, jboolean quiet)
{
    hf_hold *hold = NULL;
    struct ask ask;
    hf_error err;
    int rc;

    if (!take_ask(env, native, name, numbers, owner, note, &ask))
        return 0;
    rc = hf_acquire(bridge_client(handle), ask.name, &ask.opts, &hold, &err);
    drop_ask(&ask);
    return outcome(env, native, rc, hold, &err, quiet);
}

static void drop_names(char **names, jsize n)
{
    jsize i;

    for (i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}

/* The texts of @array, for drop_names(). NULL: thrown. */
static char **take_names(JNIEnv *env, jclass native, jobjectArray array,
                         jsize n)
{
    char **names = calloc((size_t)n + 1, sizeof *names);
    jsize i;

    if (!names) {
        bridge_throw_code(env, native, HF_ENOMEM, NULL);
        return NULL;
    }
    for (i = 0; i < n; i++) {
        jbyteArray name = (*env)->GetObjectArrayElement(env, array, i);

        if (!bridge_take_text(env, native, name, &names[i])) {
            drop_names(names, n);
            return NULL;
        }
        (*env)->DeleteLocalRef(env, name);
    }
    return names;
}

static jlong JNICALL acquire_many(JNIEnv *env, jclass native, jlong handle,
                                  jobjectArray array, jlongArray numbers,
                                  jbyteArray owner, jbyteArray note,
                                  jboolean quiet)
{
    jsize n = (*env)->GetArrayLength(env, array);
    hf_hold *hold = NULL;
    char **names;
    struct ask ask;
    hf_error err;
    int rc;

    if (!take_ask(env, native, NULL, numbers, owner, note, &ask))
        return 0;
    names = take_names(env, native, array, n);
    if (!names) {
        drop_ask(&ask);
        return 0;
    }
    rc = hf_acquire_many(bridge_client(handle), (const char *const *)names,
                         (size_t)n, &ask.opts, &hold, &err);
    drop_names(names, n);
    drop_ask(&ask);
    return outcome(env, native, rc, hold, &err, quiet);
}

static jlong JNICALL acquire_start(JNIEnv *env, jclass native, jlong handle,
                                   jbyteArray name, jlongArray numbers,
                                   jbyteArray owner, jbyteArray note,
                                   jlong number)
{
    hf_request *request = NULL;
    struct ask ask;
    hf_error err;

    if (!take_ask(env, native, name, numbers, owner, note, &ask))
        return 0;
    if (hf_acquire_start(
            bridge_client(handle), ask.name, &ask.opts,
            number ? bridge_on_done : NULL,
            (void *)(intptr_t)number, // NOLINT(performance-no-int-to-ptr)
            &request, &err) != 0)
        bridge_throw(env, native, &err);
    drop_ask(&ask);
    return (jlong)(intptr_t)request;
}

static jlong JNICALL request_wait(JNIEnv *env, jclass native, jlong handle,
                                  jboolean quiet)
{
    hf_hold *hold = NULL;
    hf_error err;
    int rc = hf_request_wait(request_of(handle), HF_FOREVER, &hold, &err);

    return outcome(env, native, rc, hold, &err, quiet);
}

static void JNICALL request_cancel(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    hf_cancel(request_of(handle));
}

static void JNICALL request_free(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    hf_request_free(request_of(handle));
}

static jlong JNICALL owner_new(JNIEnv *env, jclass native)
{
    (void)env, (void)native;
    return (jlong)hf_owner_new();
}

static jlong JNICALL hold_ref(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return (jlong)(intptr_t)hf_hold_ref(hold_of(handle));
}

static void JNICALL hold_unref(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    hf_hold_unref(hold_of(handle));
}

/* @call on the hold; its failure becomes an exception. */
static void call_hold(JNIEnv *env, jclass native, jlong handle,
                      int (*call)(hf_hold *, hf_error *))
{
    hf_error err;

    if (call(hold_of(handle), &err) != 0)
        bridge_throw(env, native, &err);
}

static void JNICALL hold_release(JNIEnv *env, jclass native, jlong handle)
{
    call_hold(env, native, handle, hf_release);
}

static jlong JNICALL cond_wait_start(JNIEnv *env, jclass native, jlong handle,
                                     jbyteArray condition, jlong wait_ms,
                                     jlong number)
{
    hf_request *request = NULL;
    hf_error err;
    char *text;

    if (!bridge_take_text(env, native, condition, &text))
        return 0;
    if (hf_cond_wait_start(
            hold_of(handle), text, wait_ms, number ? bridge_on_done : NULL,
            (void *)(intptr_t)number, // NOLINT(performance-no-int-to-ptr)
            &request, &err) != 0)
        bridge_throw(env, native, &err);
    free(text);
    return (jlong)(intptr_t)request;
}

static jint JNICALL cond_signal(JNIEnv *env, jclass native, jlong handle,
                                jbyteArray condition, jboolean all)
{
    hf_error err;
    char *text;
    int woken;

    if (!bridge_take_text(env, native, condition, &text))
        return 0;
    woken = all ? hf_cond_broadcast(hold_of(handle), text, &err)
                : hf_cond_signal(hold_of(handle), text, &err);
    if (woken < 0)
        bridge_throw(env, native, &err);
    free(text);
    return woken;
}

static void JNICALL hold_downgrade(JNIEnv *env, jclass native, jlong handle)
{
    call_hold(env, native, handle, hf_downgrade);
}

static void JNICALL hold_verify(JNIEnv *env, jclass native, jlong handle)
{
    call_hold(env, native, handle, hf_verify);
}

static jint JNICALL hold_beat(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return hf_beat(hold_of(handle));
}

static jint JNICALL hold_check(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return hf_check(hold_of(handle));
}

static jlong JNICALL hold_token(JNIEnv *env, jclass native, jlong handle,
                                jint i)
{
    (void)env, (void)native;
    return (jlong)(i < 0 ? hf_token(hold_of(handle))
                         : hf_token_at(hold_of(handle), (size_t)i));
}

static jlong JNICALL hold_remaining(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return hf_remaining_ms(hold_of(handle));
}

/* ---- elections and versions ------------------------------------------------- */

static jlong JNICALL elect_start(JNIEnv *env, jclass native, jlong handle,
                                 jbyteArray name, jlongArray numbers,
                                 jbyteArray owner, jbyteArray note)
{
    hf_election *election = NULL;
    struct ask ask;
    hf_error err;

    if (!take_ask(env, native, name, numbers, owner, note, &ask))
        return 0;
    if (hf_elect_start(bridge_client(handle), ask.name, &ask.opts,
                       bridge_on_event, ask.opts.ctx, &election, &err) != 0)
        bridge_throw(env, native, &err);
    drop_ask(&ask);
    return (jlong)(intptr_t)election;
}

static jint JNICALL elect_check(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return hf_elect_check(election_of(handle));
}

static void JNICALL elect_stop(JNIEnv *env, jclass native, jlong handle)
{
    hf_error err;

    if (hf_elect_stop(election_of(handle), &err) != 0)
        bridge_throw(env, native, &err);
}

static jlong JNICALL version_read(JNIEnv *env, jclass native, jlong handle,
                                  jbyteArray name)
{
    uint64_t version = 0;
    hf_error err;
    char *text;

    if (!bridge_take_text(env, native, name, &text))
        return 0;
    if (hf_version_read(bridge_client(handle), text, &version, &err) != 0)
        bridge_throw(env, native, &err);
    free(text);
    return (jlong)version;
}

static jlong JNICALL version_commit(JNIEnv *env, jclass native, jlong handle,
                                    jbyteArray name, jlong expected)
{
    uint64_t version = 0;
    hf_error err;
    char *text;

    if (!bridge_take_text(env, native, name, &text))
        return 0;
    if (hf_version_commit(bridge_client(handle), text, (uint64_t)expected,
                          &version, &err) != 0)
        bridge_throw(env, native, &err);
    free(text);
    return (jlong)version;
}

#define ASK "[B[J[B[B" /* name, numbers, owner, note */
static const JNINativeMethod methods[] = {
    METHOD("acquire", "(J" ASK "Z)J", acquire),
    METHOD("acquireMany", "(J[[B[J[B[BZ)J", acquire_many),
    METHOD("acquireStart", "(J" ASK "J)J", acquire_start),
    METHOD("requestWait", "(JZ)J", request_wait),
    METHOD("requestCancel", "(J)V", request_cancel),
    METHOD("requestFree", "(J)V", request_free),
    METHOD("ownerNew", "()J", owner_new),
    METHOD("holdRef", "(J)J", hold_ref),
    METHOD("holdUnref", "(J)V", hold_unref),
    METHOD("holdRelease", "(J)V", hold_release),
    METHOD("condWaitStart", "(J[BJJ)J", cond_wait_start),
    METHOD("condSignal", "(J[BZ)I", cond_signal),
    METHOD("holdDowngrade", "(J)V", hold_downgrade),
    METHOD("holdVerify", "(J)V", hold_verify),
    METHOD("holdBeat", "(J)I", hold_beat),
    METHOD("holdCheck", "(J)I", hold_check),
    METHOD("holdToken", "(JI)J", hold_token),
    METHOD("holdRemaining", "(J)J", hold_remaining),
    METHOD("electStart", "(J" ASK ")J", elect_start),
    METHOD("electCheck", "(J)I", elect_check),
    METHOD("electStop", "(J)V", elect_stop),
    METHOD("versionRead", "(J[B)J", version_read),
    METHOD("versionCommit", "(J[BJ)J", version_commit),
};
METHODS(lock_methods);
