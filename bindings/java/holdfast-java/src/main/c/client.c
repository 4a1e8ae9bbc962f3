/* SPDX-License-Identifier: MIT */
/*
 * client.c - native methods of a client: open, close, look, break, metrics.
 */
#include "bridge.h"

#include <stdlib.h>
#include <string.h>

/* ---- clients ---------------------------------------------------------------- */

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
        well = bridge_take_text(env, native, first, &key) &&
               bridge_take_text(env, native, second, &value);
        if (well && hf_config_set(config, key, value, &err) != 0) {
            bridge_throw(env, native, &err);
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
    bridge_throw(env, native, &err);
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
        bridge_throw_code(env, native, HF_ENOMEM, NULL);
    else if (bridge_take_text(env, native, url, &url_text) &&
             bridge_take_text(env, native, path, &path_text) &&
             bridge_take_text(env, native, profile, &profile_text) &&
             load_file(env, native, config, path_text, profile_text) &&
             set_keys(env, native, config, keys) &&
             hf_open(url_text, config, &client, &err) != 0)
        bridge_throw(env, native, &err);
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

    if (hf_shutdown(bridge_client(handle), wait_ms, &err) != 0)
        bridge_throw(env, native, &err);
}

static void JNICALL close_client(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    hf_close(bridge_client(handle));
}

static jlong JNICALL capabilities(JNIEnv *env, jclass native, jlong handle)
{
    (void)env, (void)native;
    return (jlong)hf_capabilities(bridge_client(handle));
}

static jbyteArray JNICALL capability_name(JNIEnv *env, jclass native, jlong bit)
{
    (void)native;
    return bridge_text(env, hf_capability_name((uint64_t)bit));
}

static jbyteArray JNICALL engine_name(JNIEnv *env, jclass native, jlong handle)
{
    (void)native;
    return bridge_text(env, hf_engine_name(bridge_client(handle)));
}

static jbyteArray JNICALL client_url(JNIEnv *env, jclass native, jlong handle)
{
    (void)native;
    return bridge_text(env, hf_client_url(bridge_client(handle)));
}

static jbyteArray JNICALL library_version(JNIEnv *env, jclass native)
{
    (void)native;
    return bridge_text(env, hf_library_version());
}

static void JNICALL set_log(JNIEnv *env, jclass native, jint level)
{
    (void)env, (void)native;
    hf_set_log(level < 0 ? NULL : bridge_on_log, level, NULL);
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

    hf_metrics_write(bridge_client(handle), append, &text);
    if (text.failed)
        bridge_throw_code(env, native, HF_ENOMEM, NULL);
    else
        bytes = bridge_bytes(env, text.bytes ? text.bytes : "", text.size);
    free(text.bytes);
    return bytes;
}

/* ---- looking ---------------------------------------------------------------- */

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
    text[0] = bridge_text(env, info->name);
    text[1] = bridge_text(env, info->owner);
    text[2] = bridge_text(env, info->host);
    text[3] = bridge_text(env, info->note);
    if (numbers && text[0] && text[1] && text[2] && text[3]) {
        (*env)->SetLongArrayRegion(env, numbers, 0, count, n);
        (*env)->CallStaticVoidMethod(env, rows->native, bridge.row, rows->list,
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

    if (!bridge_take_text(env, native, name, &text))
        return;
    rc = exact ? hf_show(bridge_client(handle), text, on_row, &rows, &err)
               : hf_list(bridge_client(handle), text, on_row, &rows, &err);
    free(text);
    if (rc < 0 && !(*env)->ExceptionCheck(env))
        bridge_throw(env, native, &err);
}

static void JNICALL check_token(JNIEnv *env, jclass native, jlong handle,
                                jbyteArray name, jlong token)
{
    hf_error err;
    char *text;

    if (!bridge_take_text(env, native, name, &text))
        return;
    if (hf_check_token(bridge_client(handle), text, (uint64_t)token, &err) != 0)
        bridge_throw(env, native, &err);
    free(text);
}

static void JNICALL break_lock(JNIEnv *env, jclass native, jlong handle,
                               jbyteArray name, jlong token, jbyteArray owner)
{
    char *name_text = NULL, *owner_text = NULL;
    hf_error err;

    if (bridge_take_text(env, native, name, &name_text) &&
        bridge_take_text(env, native, owner, &owner_text) &&
        hf_break(bridge_client(handle), name_text, (uint64_t)token, owner_text,
                 &err) != 0)
        bridge_throw(env, native, &err);
    free(name_text);
    free(owner_text);
}

static const JNINativeMethod methods[] = {
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
    METHOD("list", "(J[BZLjava/util/List;)V", list),
    METHOD("checkToken", "(J[BJ)V", check_token),
    METHOD("breakLock", "(J[BJ[B)V", break_lock),
};
METHODS(client_methods);
