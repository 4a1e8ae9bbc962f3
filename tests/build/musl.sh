#!/bin/sh
# SPDX-License-Identifier: MIT
# musl.sh CMAKE SOURCE - the library built with another C library, musl: a
# program that has threads already opens it by dlopen(), as bindings do, and
# holds a lock.
set -eu

cmake=$1
source=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# musl has no headers of the kernel; those of glibc come last.
flags="-O0 -idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu"
"$cmake" -G Ninja -S "$source" -B "$dir/build" -DCMAKE_C_COMPILER=musl-gcc \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Debug \
    -DHOLDFAST_ENGINES=local -DHOLDFAST_TESTS=OFF >"$dir/log" 2>&1 ||
    { cat "$dir/log"; exit 1; }
"$cmake" --build "$dir/build" --target holdfast_shared >"$dir/log" 2>&1 ||
    { cat "$dir/log"; exit 1; }

cat >"$dir/binding.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include <holdfast.h>

static const char *url;
static void *library;

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

static int lock_once(void)
{
    int (*open)(const char *, const hf_config *, hf_client **, hf_error *);
    int (*acquire)(hf_client *, const char *, const hf_opts *, hf_hold **,
                   hf_error *);
    int (*release)(hf_hold *, hf_error *);
    void (*close)(hf_client *);
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    *(void **)&open = dlsym(library, "hf_open");
    *(void **)&acquire = dlsym(library, "hf_acquire");
    *(void **)&release = dlsym(library, "hf_release");
    *(void **)&close = dlsym(library, "hf_close");
    if (open(url, NULL, &client, &err) != 0 ||
        acquire(client, "musl", NULL, &hold, &err) != 0 ||
        release(hold, &err) != 0)
        return fail(err.text);
    close(client);
    return 0;
}

static void *thread_main(void *arg)
{
    *(int *)arg = lock_once();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int failed = 1;

    if (argc != 3)
        return fail("usage: binding LIBRARY URL");
    url = argv[2];
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(dlerror());
    if (lock_once() != 0 ||
        pthread_create(&thread, NULL, thread_main, &failed) != 0)
        return 1;
    pthread_join(thread, NULL);
    return failed;
}
END
musl-gcc -I "$source/include" -o "$dir/binding" "$dir/binding.c"
"$dir/binding" "$dir/build/libholdfast.so" "local://$dir/locks"
echo "ok: dlopen() by musl"
