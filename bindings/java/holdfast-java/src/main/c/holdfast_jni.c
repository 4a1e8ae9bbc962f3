/* SPDX-License-Identifier: MIT */
/*
 * holdfast_jni.c - the public C calls, as static methods of dev.holdfast.Native.
 *
 * Nothing of the lock is decided here. This file loads and unloads; client.c and
 * lock.c have the methods, bridge.c what they share.
 */
#include "bridge.h"

static bool find_methods(JNIEnv *env, jclass native)
{
    bridge.failure = (*env)->GetStaticMethodID(
        env, native, "failure", "(II[B)Ldev/holdfast/HoldfastException;");
    bridge.event = (*env)->GetStaticMethodID(env, native, "event", "(JIJ)V");
    bridge.done = (*env)->GetStaticMethodID(
        env, native, "done", "(JJLdev/holdfast/HoldfastException;)V");
    bridge.log = (*env)->GetStaticMethodID(env, native, "log", "(I[B)V");
    bridge.row = (*env)->GetStaticMethodID(env, native, "row",
                                           "(Ljava/util/List;[J[B[B[B[B)V");
    return bridge.failure && bridge.event && bridge.done && bridge.log &&
           bridge.row;
}

static bool add_methods(JNIEnv *env, jclass native,
                        const struct bridge_methods *methods)
{
    return (*env)->RegisterNatives(env, native, methods->table, methods->n) ==
           0;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    JNIEnv *env;
    jclass native;

    (void)reserved;
    bridge.vm = vm;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK)
        return JNI_ERR;
    native = (*env)->FindClass(env, "dev/holdfast/Native");
    if (!native || !find_methods(env, native) ||
        !add_methods(env, native, &client_methods) ||
        !add_methods(env, native, &lock_methods))
        return JNI_ERR;
    bridge.native = (*env)->NewWeakGlobalRef(env, native);
    if (!bridge.native ||
        pthread_key_create(&bridge.attached, bridge_detach) != 0)
        return JNI_ERR;
    return JNI_VERSION_1_8;
}

JNIEXPORT void JNICALL JNI_OnUnload(JavaVM *vm, void *reserved)
{
    JNIEnv *env;

    (void)reserved;
    hf_set_log(NULL, 0, NULL);
    pthread_key_delete(bridge.attached);
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) == JNI_OK)
        (*env)->DeleteWeakGlobalRef(env, bridge.native);
}
