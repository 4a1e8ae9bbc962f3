/* SPDX-License-Identifier: MIT */
/*
 * holdfast_jni.c - the public C calls, as static methods of dev.holdfast.Native.
 *
 * Nothing of the lock is decided here. Handles are longs, text is UTF-8 in
 * byte arrays, a failure becomes a HoldfastException made by Native.failure().
 *
 * Callbacks of the library arrive on its own threads. They are attached to the
 * JVM as daemons when they first come, and detached when they end. A callback
 * carries a number, under which Java keeps what it is about; so nothing here
 * keeps a Java object alive, and the class may be unloaded (its reference is
 * weak).
 */
#include <holdfast.h>

#include <jni.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct {
    JavaVM *vm;
    jweak native; /* the class Native */
    jmethodID failure, event, done, log, row;
    pthread_key_t attached;
} java;

/*
 * Text
 * ----
 */

/* A NUL inside would end the text early and name another lock. */
enum { TEXT_MAX = 65536 };

static jthrowable failure(JNIEnv *env, jclass native, const hf_error *err);

static void throw_error(JNIEnv *env, jclass native, const hf_error *err)
{
    jthrowable thrown = failure(env, native, err);

    if (thrown)
        (*env)->Throw(env, thrown);
}

static void throw_code(JNIEnv *env, jclass native, int code, const char *text)
{
    hf_error err = {.code = code};

    strncpy(err.text, text ? text : hf_strerror(code), sizeof err.text - 1);
    throw_error(env, native, &err);
}

/* The bytes as a C string for free(); NULL for null. False: thrown. */
static bool take_text(JNIEnv *env, jclass native, jbyteArray bytes, char **text)
{
    jsize size;

    *text = NULL;
    if (!bytes)
        return true;
    size = (*env)->GetArrayLength(env, bytes);
    if (size > TEXT_MAX) {
        throw_code(env, native, HF_EINVAL, "the text is too long");
        return false;
    }
    *text = malloc((size_t)size + 1);
    if (!*text) {
        throw_code(env, native, HF_ENOMEM, NULL);
        return false;
    }
    (*env)->GetByteArrayRegion(env, bytes, 0, size, (jbyte *)*text);
    (*text)[size] = 0;
    if (strlen(*text) == (size_t)size)
        return true;
    free(*text);
    *text = NULL;
    throw_code(env, native, HF_EINVAL, "the text has a NUL in it");
    return false;
}

static jbyteArray bytes_of(JNIEnv *env, const char *text, size_t size)
{
    jbyteArray bytes = (*env)->NewByteArray(env, (jsize)size);

    if (bytes)
        (*env)->SetByteArrayRegion(env, bytes, 0, (jsize)size,
                                   (const jbyte *)text);
    return bytes;
}

static jbyteArray text_of(JNIEnv *env, const char *text)
{
    return text ? bytes_of(env, text, strlen(text)) : NULL;
}

static jthrowable failure(JNIEnv *env, jclass native, const hf_error *err)
{
    jbyteArray text = text_of(env, err->text);
    jthrowable thrown;

    if (!text)
        return NULL;
    thrown = (*env)->CallStaticObjectMethod(env, native, java.failure,
                                            err->code, err->engine_code, text);
    (*env)->DeleteLocalRef(env, text); /* our threads never return to Java */
    return thrown;
}

/*
 * Callbacks
 * ---------
 */

static void detach(void *env)
{
    (void)env;
    (*java.vm)->DetachCurrentThread(java.vm);
}

/* The environment of this thread, which becomes a daemon of the JVM. */
static JNIEnv *environment(void)
{
    static char name[] = "holdfast";
    JavaVMAttachArgs args = {JNI_VERSION_1_8, name, NULL};
    JNIEnv *env = NULL;

    if ((*java.vm)->GetEnv(java.vm, (void **)&env, JNI_VERSION_1_8) == JNI_OK)
        return env;
    if ((*java.vm)->AttachCurrentThreadAsDaemon(java.vm, (void **)&env,
                                                &args) != JNI_OK)
        return NULL;
    pthread_setspecific(java.attached, env);
    return env;
}

/* A local reference to the class, or NULL when it is gone. */
static jclass native_class(JNIEnv *env)
{
    return env ? (*env)->NewLocalRef(env, java.native) : NULL;
}

/* A method of ours catches everything; what still comes is out of memory. */
static void end_callback(JNIEnv *env, jclass native)
{
    if ((*env)->ExceptionCheck(env))
        (*env)->ExceptionClear(env);
    (*env)->DeleteLocalRef(env, native);
}

static void on_event(hf_hold *hold, int state, void *ctx)
{
    JNIEnv *env = environment();
    jclass native = native_class(env);

    if (!native)
        return;
    (*env)->CallStaticVoidMethod(env, native, java.event, (jlong)(intptr_t)ctx,
                                 (jint)state, (jlong)hf_token(hold));
    end_callback(env, native);
}

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    JNIEnv *env = environment();
    jclass native = native_class(env);
    jobject thrown = NULL;

    if (!native) {
        if (rc == 0 && hold)
            hf_hold_unref(hold);
        return;
    }
    if (rc != 0)
        thrown = failure(env, native, err);
    if ((*env)->ExceptionCheck(env))
        (*env)->ExceptionClear(env); /* done() sees that there is neither */
    (*env)->CallStaticVoidMethod(env, native, java.done, (jlong)(intptr_t)ctx,
                                 (jlong)(intptr_t)hold, thrown);
    if (thrown)
        (*env)->DeleteLocalRef(env, thrown);
    end_callback(env, native);
}

static void on_log(int level, const char *text, void *ctx)
{
    JNIEnv *env = environment();
    jclass native = native_class(env);
    jbyteArray bytes;

    (void)ctx;
    if (!native)
        return;
    bytes = text_of(env, text);
    if (bytes) {
        (*env)->CallStaticVoidMethod(env, native, java.log, (jint)level, bytes);
        (*env)->DeleteLocalRef(env, bytes);
    }
    end_callback(env, native);
}

/*
 * Clients
 * -------
 */

static hf_client *client_of(jlong handle)
{
    return (hf_client *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

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

/* Sets the pairs of @texts, key and value in turn. False: thrown. */
static bool set_keys(JNIEnv *env, jclass native, hf_config *config,
                     jobjectArray texts)
{
    jsize i, n = texts ? (*env)->GetArrayLength(env, texts) : 0;
    char *key, *value;
    bool well = true;
    hf_error err;

    for (i = 0; well && i + 1 < n; i += 2) {
        jbyteArray first = (*env)->GetObjectArrayElement(env, texts, i);
        jbyteArray second = (*env)->GetObjectArrayElement(env, texts, i + 1);

        value = NULL;
        well = take_text(env, native, first, &key) &&
               take_text(env, native, second, &value);
        if (well && hf_config_set(config, key, value, &err) != 0) {
            throw_error(env, native, &err);
            well = false;
        }
        free(key);
        free(value);
        (*env)->DeleteLocalRef(env, first);
        (*env)->DeleteLocalRef(env, second);
    }
    return well;
}

static bool load_file(JNIEnv *env, jclass native, hf_config *config,
                      const char *path, const char *profile)
{
    hf_error err;

    if (!path || hf_config_load(config, path, profile, &err) == 0)
        return true;
    throw_error(env, native, &err);
    return false;
}

static jlong JNICALL open_client(JNIEnv *env, jclass native, jbyteArray url,
                                 jobjectArray keys, jbyteArray path,
                                 jbyteArray profile)
{
    char *url_text = NULL, *path_text = NULL, *profile_text = NULL;
    hf_config *config = hf_config_new();
    hf_client *client = NULL;
    hf_error err;

    if (!config)
        throw_code(env, native, HF_ENOMEM, NULL);
    else if (take_text(env, native, url, &url_text) &&
             take_text(env, native, path, &path_text) &&
             take_text(env, native, profile, &profile_text) &&
             load_file(env, native, config, path_text, profile_text) &&
             set_keys(env, native, config, keys) &&
             hf_open(url_text, config, &client, &err) != 0)
        throw_error(env, native, &err);
    hf_config_free(config);
    free(url_text);
    free(path_text);
    free(profile_text);
    return (jlong)(intptr_t)client;
}

static void JNICALL shutdown_client(JNIEnv *env, jclass native, jlong handle,
                                    jlong wait_ms)
{
    hf_error err;

    if (hf_shutdown(client_of(handle), wait_ms, &err) != 0)
        throw_error(env, native, &err);
}

static void JNICALL close_client(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    hf_close(client_of(handle));
}

static jlong JNICALL capabilities(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return (jlong)hf_capabilities(client_of(handle));
}

static jbyteArray JNICALL capability_name(JNIEnv *env, jclass native, jlong bit)
{
    (void)native;
    return text_of(env, hf_capability_name((uint64_t)bit));
}

static jbyteArray JNICALL engine_name(JNIEnv *env, jclass native, jlong handle)
{
    (void)native;
    return text_of(env, hf_engine_name(client_of(handle)));
}

static jbyteArray JNICALL client_url(JNIEnv *env, jclass native, jlong handle)
{
    (void)native;
    return text_of(env, hf_client_url(client_of(handle)));
}

static jbyteArray JNICALL library_version(JNIEnv *env, jclass native)
{
    (void)native;
    return text_of(env, hf_library_version());
}

static void JNICALL set_log(JNIEnv *env, jclass native, jint level)
{
    (void)env, (void)native;
    hf_set_log(level < 0 ? NULL : on_log, level, NULL);
}

/* Text that grows. */
struct text {
    char *bytes;
    size_t size, room;
    bool failed;
};

static void append(const char *piece, size_t size, void *ctx)
{
    struct text *text = ctx;
    char *bytes = text->bytes;

    if (text->failed)
        return;
    if (text->size + size > text->room) {
        text->room = 2 * (text->size + size);
        bytes = realloc(text->bytes, text->room);
        if (!bytes) {
            text->failed = true;
            return;
        }
        text->bytes = bytes;
    }
    memcpy(bytes + text->size, piece, size);
    text->size += size;
}

static jbyteArray JNICALL metrics(JNIEnv *env, jclass native, jlong handle)
{
    struct text text = {0};
    jbyteArray bytes = NULL;

    hf_metrics_write(client_of(handle), append, &text);
    if (text.failed)
        throw_code(env, native, HF_ENOMEM, NULL);
    else
        bytes = bytes_of(env, text.bytes ? text.bytes : "", text.size);
    free(text.bytes);
    return bytes;
}

/*
 * Locks
 * -----
 */

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
        throw_code(env, native, HF_EINTERNAL, "wrong number of options");
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
    opts->on_event = n[EVENT] ? on_event : NULL;
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
        take_text(env, native, name, &ask->name) &&
        take_text(env, native, owner, &ask->owner) &&
        take_text(env, native, note, &ask->note)) {
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
    throw_error(env, native, err);
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
    rc = hf_acquire(client_of(handle), ask.name, &ask.opts, &hold, &err);
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
        throw_code(env, native, HF_ENOMEM, NULL);
        return NULL;
    }
    for (i = 0; i < n; i++) {
        jbyteArray name = (*env)->GetObjectArrayElement(env, array, i);

        if (!take_text(env, native, name, &names[i])) {
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
    rc = hf_acquire_many(client_of(handle), (const char *const *)names,
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
            client_of(handle), ask.name, &ask.opts, number ? on_done : NULL,
            (void *)(intptr_t)number, // NOLINT(performance-no-int-to-ptr)
            &request, &err) != 0)
        throw_error(env, native, &err);
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
        throw_error(env, native, &err);
}

static void JNICALL hold_release(JNIEnv *env, jclass native, jlong handle)
{
    call_hold(env, native, handle, hf_release);
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

/*
 * Elections and versions
 * ----------------------
 */

static jlong JNICALL elect_start(JNIEnv *env, jclass native, jlong handle,
                                 jbyteArray name, jlongArray numbers,
                                 jbyteArray owner, jbyteArray note)
{
    hf_election *election = NULL;
    struct ask ask;
    hf_error err;

    if (!take_ask(env, native, name, numbers, owner, note, &ask))
        return 0;
    if (hf_elect_start(client_of(handle), ask.name, &ask.opts, on_event,
                       ask.opts.ctx, &election, &err) != 0)
        throw_error(env, native, &err);
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
        throw_error(env, native, &err);
}

static jlong JNICALL version_read(JNIEnv *env, jclass native, jlong handle,
                                  jbyteArray name)
{
    uint64_t version = 0;
    hf_error err;
    char *text;

    if (!take_text(env, native, name, &text))
        return 0;
    if (hf_version_read(client_of(handle), text, &version, &err) != 0)
        throw_error(env, native, &err);
    free(text);
    return (jlong)version;
}

static jlong JNICALL version_commit(JNIEnv *env, jclass native, jlong handle,
                                    jbyteArray name, jlong expected)
{
    uint64_t version = 0;
    hf_error err;
    char *text;

    if (!take_text(env, native, name, &text))
        return 0;
    if (hf_version_commit(client_of(handle), text, (uint64_t)expected, &version,
                          &err) != 0)
        throw_error(env, native, &err);
    free(text);
    return (jlong)version;
}

/*
 * Looking
 * -------
 */

struct rows {
    JNIEnv *env;
    jclass native;
    jobject list;
};

/* Calls Native.row(list, numbers, name, owner, host, note). Exceptions stop. */
static int on_row(const hf_lock_info *info, void *ctx)
{
    struct rows *rows = ctx;
    JNIEnv *env = rows->env;
    jlong n[] = {info->role,     info->mode,         info->slots,
                 info->pid,      (jlong)info->token, info->since_ms,
                 info->lease_ms, info->place,        info->alive};
    jsize count = sizeof n / sizeof *n;
    jlongArray numbers;
    jbyteArray text[4];

    if ((*env)->PushLocalFrame(env, 8) != 0)
        return 1;
    numbers = (*env)->NewLongArray(env, count);
    text[0] = text_of(env, info->name);
    text[1] = text_of(env, info->owner);
    text[2] = text_of(env, info->host);
    text[3] = text_of(env, info->note);
    if (numbers && text[0] && text[1] && text[2] && text[3]) {
        (*env)->SetLongArrayRegion(env, numbers, 0, count, n);
        (*env)->CallStaticVoidMethod(env, rows->native, java.row, rows->list,
                                     numbers, text[0], text[1], text[2],
                                     text[3]);
    }
    (*env)->PopLocalFrame(env, NULL);
    return (*env)->ExceptionCheck(env) ? 1 : 0;
}

static void JNICALL list(JNIEnv *env, jclass native, jlong handle,
                         jbyteArray name, jboolean exact, jobject to)
{
    struct rows rows = {env, native, to};
    hf_error err;
    char *text;
    int rc;

    if (!take_text(env, native, name, &text))
        return;
    rc = exact ? hf_show(client_of(handle), text, on_row, &rows, &err)
               : hf_list(client_of(handle), text, on_row, &rows, &err);
    free(text);
    if (rc < 0 && !(*env)->ExceptionCheck(env))
        throw_error(env, native, &err);
}

static void JNICALL check_token(JNIEnv *env, jclass native, jlong handle,
                                jbyteArray name, jlong token)
{
    hf_error err;
    char *text;

    if (!take_text(env, native, name, &text))
        return;
    if (hf_check_token(client_of(handle), text, (uint64_t)token, &err) != 0)
        throw_error(env, native, &err);
    free(text);
}

static void JNICALL break_lock(JNIEnv *env, jclass native, jlong handle,
                               jbyteArray name, jlong token, jbyteArray owner)
{
    char *name_text = NULL, *owner_text = NULL;
    hf_error err;

    if (take_text(env, native, name, &name_text) &&
        take_text(env, native, owner, &owner_text) &&
        hf_break(client_of(handle), name_text, (uint64_t)token, owner_text,
                 &err) != 0)
        throw_error(env, native, &err);
    free(name_text);
    free(owner_text);
}

/*
 * Loading
 * -------
 */

#define ASK "[B[J[B[B" /* name, numbers, owner, note */

/* jni.h wants text that is not const. */
#define METHOD(name, type, function)                                           \
    {                                                                          \
        (char *)(uintptr_t)(name), (char *)(uintptr_t)(type),                  \
            (void *)(function)                                                 \
    }

static JNINativeMethod methods[] = {
    METHOD("open", "([B[[B[B[B)J", open_client),
    METHOD("shutdown", "(JJ)V", shutdown_client),
    METHOD("close", "(J)V", close_client),
    METHOD("capabilities", "(J)J", capabilities),
    METHOD("capabilityName", "(J)[B", capability_name),
    METHOD("engineName", "(J)[B", engine_name),
    METHOD("clientUrl", "(J)[B", client_url),
    METHOD("libraryVersion", "()[B", library_version),
    METHOD("setLog", "(I)V", set_log),
    METHOD("metrics", "(J)[B", metrics),
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
    METHOD("list", "(J[BZLjava/util/List;)V", list),
    METHOD("checkToken", "(J[BJ)V", check_token),
    METHOD("breakLock", "(J[BJ[B)V", break_lock),
};

static bool find_methods(JNIEnv *env, jclass native)
{
    java.failure = (*env)->GetStaticMethodID(
        env, native, "failure", "(II[B)Ldev/holdfast/HoldfastException;");
    java.event = (*env)->GetStaticMethodID(env, native, "event", "(JIJ)V");
    java.done = (*env)->GetStaticMethodID(
        env, native, "done", "(JJLdev/holdfast/HoldfastException;)V");
    java.log = (*env)->GetStaticMethodID(env, native, "log", "(I[B)V");
    java.row = (*env)->GetStaticMethodID(env, native, "row",
                                         "(Ljava/util/List;[J[B[B[B[B)V");
    return java.failure && java.event && java.done && java.log && java.row;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    JNIEnv *env;
    jclass native;

    (void)reserved;
    java.vm = vm;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK)
        return JNI_ERR;
    native = (*env)->FindClass(env, "dev/holdfast/Native");
    if (!native || !find_methods(env, native) ||
        (*env)->RegisterNatives(env, native, methods,
                                sizeof methods / sizeof *methods) != 0)
        return JNI_ERR;
    java.native = (*env)->NewWeakGlobalRef(env, native);
    if (!java.native || pthread_key_create(&java.attached, detach) != 0)
        return JNI_ERR;
    return JNI_VERSION_1_8;
}

JNIEXPORT void JNICALL JNI_OnUnload(JavaVM *vm, void *reserved)
{
    JNIEnv *env;

    (void)reserved;
    hf_set_log(NULL, 0, NULL);
    pthread_key_delete(java.attached);
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) == JNI_OK)
        (*env)->DeleteWeakGlobalRef(env, java.native);
}
