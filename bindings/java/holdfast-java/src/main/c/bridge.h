/* SPDX-License-Identifier: MIT */
/*
 * bridge.h - what the native methods share: text, failures, callbacks, handles.
 *
 * A file of methods ends with its table, which JNI_OnLoad() registers.
 */
#ifndef HOLDFAST_JNI_BRIDGE_H
#define HOLDFAST_JNI_BRIDGE_H

#include <holdfast.h>

#include <jni.h>
#include <pthread.h>
#include <stdbool.h>

/* The JVM, the class Native, and the methods of it that we call. */
struct bridge {
    JavaVM *vm;
    jweak native;
    jmethodID failure, event, done, log, row;
    pthread_key_t attached;
};
extern struct bridge bridge;

/* Throw a HoldfastException; @text NULL: the usual one of @code. */
void bridge_throw(JNIEnv *env, jclass native, const hf_error *err);
void bridge_throw_code(JNIEnv *env, jclass native, int code, const char *text);

/* The bytes as a C string for free(); NULL for null. False: thrown. */
bool bridge_take_text(JNIEnv *env, jclass native, jbyteArray bytes,
                      char **text);
/* Text for Java; NULL without memory, or for NULL. */
jbyteArray bridge_bytes(JNIEnv *env, const char *text, size_t size);
jbyteArray bridge_text(JNIEnv *env, const char *text);

/* Callbacks of the library, which call Native.event(), done() and log(). */
void bridge_on_event(hf_hold *hold, int state, void *ctx);
void bridge_on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx);
void bridge_on_log(int level, const char *text, void *ctx);
/* The end of a thread that the library has and we attached. */
void bridge_detach(void *env);

static inline hf_client *bridge_client(jlong handle)
{
    return (hf_client *)(intptr_t)handle; // NOLINT(performance-no-int-to-ptr)
}

/* jni.h wants text that is not const. */
#define METHOD(name, type, function)                                           \
    {                                                                          \
        (char *)(uintptr_t)(name), (char *)(uintptr_t)(type),                  \
            (void *)(function)                                                 \
    }
/* The end of a file: its table, under this name. */
#define METHODS(name)                                                          \
    const struct bridge_methods name = {methods,                               \
                                        sizeof methods / sizeof *methods}
struct bridge_methods {
    const JNINativeMethod *table;
    jint n;
};
extern const struct bridge_methods client_methods;
extern const struct bridge_methods lock_methods;

#endif
