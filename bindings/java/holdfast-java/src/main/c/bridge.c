/* SPDX-License-Identifier: MIT */
/*
 * bridge.c - text, failures and callbacks between the library and the JVM.
 *
 * Handles are longs, text is UTF-8 in byte arrays, a failure becomes a
 * HoldfastException made by Native.failure().
 *
 * Callbacks of the library arrive on its own threads. They are attached to the
 * JVM as daemons when they first come, and detached when they end. A callback
 * carries a number, under which Java keeps what it is about; so nothing here
 * keeps a Java object alive, and the class may be unloaded (its reference is
 * weak).
 */
#include "bridge.h"

#include <stdlib.h>
#include <string.h>

struct bridge bridge;

jbyteArray bridge_bytes(JNIEnv *env, const char *text, size_t size)
{
    jbyteArray bytes = (*env)->NewByteArray(env, (jsize)size);

    if (bytes)
        (*env)->SetByteArrayRegion(env, bytes, 0, (jsize)size,
                                   (const jbyte *)text);
    return bytes;
}

jbyteArray bridge_text(JNIEnv *env, const char *text)
{
    return text ? bridge_bytes(env, text, strlen(text)) : NULL;
}

static jthrowable failure(JNIEnv *env, jclass native, const hf_error *err)
{
    jbyteArray text = bridge_text(env, err->text);
    jthrowable thrown;

    if (!text)
        return NULL;
    thrown = (*env)->CallStaticObjectMethod(env, native, bridge.failure,
                                            err->code, err->engine_code, text);
    (*env)->DeleteLocalRef(env, text); /* our threads never return to Java */
    return thrown;
}

void bridge_throw(JNIEnv *env, jclass native, const hf_error *err)
{
    jthrowable thrown = failure(env, native, err);

    if (thrown)
        (*env)->Throw(env, thrown);
}

void bridge_throw_code(JNIEnv *env, jclass native, int code, const char *text)
{
    hf_error err = {.code = code};

    strncpy(err.text, text ? text : hf_strerror(code), sizeof err.text - 1);
    bridge_throw(env, native, &err);
}

/* A NUL inside would end the text early and name another lock. */
enum { TEXT_MAX = 65536 };

bool bridge_take_text(JNIEnv *env, jclass native, jbyteArray bytes, char **text)
{
    jsize size;

    *text = NULL;
    if (!bytes)
        return true;
    size = (*env)->GetArrayLength(env, bytes);
    if (size > TEXT_MAX) {
        bridge_throw_code(env, native, HF_EINVAL, "the text is too long");
        return false;
    }
    *text = malloc((size_t)size + 1);
    if (!*text) {
        bridge_throw_code(env, native, HF_ENOMEM, NULL);
        return false;
    }
    (*env)->GetByteArrayRegion(env, bytes, 0, size, (jbyte *)*text);
    (*text)[size] = 0;
    if (strlen(*text) == (size_t)size)
        return true;
    free(*text);
    *text = NULL;
    bridge_throw_code(env, native, HF_EINVAL, "the text has a NUL in it");
    return false;
}

/* ---- callbacks ----------------------------------------------------------- */

void bridge_detach(void *env)
{
    (void)env;
    (*bridge.vm)->DetachCurrentThread(bridge.vm);
}

/* The environment of this thread, which becomes a daemon of the JVM. */
static JNIEnv *environment(void)
{
    static char name[] = "holdfast";
    JavaVMAttachArgs args = {JNI_VERSION_1_8, name, NULL};
    JNIEnv *env = NULL;

    if ((*bridge.vm)->GetEnv(bridge.vm, (void **)&env, JNI_VERSION_1_8) ==
        JNI_OK)
        return env;
    if ((*bridge.vm)
            ->AttachCurrentThreadAsDaemon(bridge.vm, (void **)&env, &args) !=
        JNI_OK)
        return NULL;
    pthread_setspecific(bridge.attached, env);
    return env;
}

/* A local reference to the class, or NULL when it is gone. */
static jclass native_class(JNIEnv *env)
{
    return env ? (*env)->NewLocalRef(env, bridge.native) : NULL;
}

/* A method of ours catches everything; what still comes is out of memory. */
static void end_callback(JNIEnv *env, jclass native)
{
    if ((*env)->ExceptionCheck(env))
        (*env)->ExceptionClear(env);
    (*env)->DeleteLocalRef(env, native);
}

void bridge_on_event(hf_hold *hold, int state, void *ctx)
{
    JNIEnv *env = environment();
    jclass native = native_class(env);

    if (!native)
        return;
    (*env)->CallStaticVoidMethod(env, native, bridge.event,
                                 (jlong)(intptr_t)ctx, (jint)state,
                                 (jlong)hf_token(hold));
    end_callback(env, native);
}

void bridge_on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
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
    (*env)->CallStaticVoidMethod(env, native, bridge.done, (jlong)(intptr_t)ctx,
                                 (jlong)(intptr_t)hold, thrown);
    if (thrown)
        (*env)->DeleteLocalRef(env, thrown);
    end_callback(env, native);
}

void bridge_on_log(int level, const char *text, void *ctx)
{
    JNIEnv *env = environment();
    jclass native = native_class(env);
    jbyteArray bytes;

    (void)ctx;
    if (!native)
        return;
    bytes = bridge_text(env, text);
    if (bytes) {
        (*env)->CallStaticVoidMethod(env, native, bridge.log, (jint)level,
                                     bytes);
        (*env)->DeleteLocalRef(env, bytes);
    }
    end_callback(env, native);
}
