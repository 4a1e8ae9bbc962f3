/* SPDX-License-Identifier: MIT */
/*
 * semaphore.c - at most three at a time, on all machines together.
 */
#include <holdfast.h>
#include <stdio.h>

enum { SLOTS = 3 };

int main(void)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *holds[SLOTS];
    hf_hold *extra;
    hf_client *client;
    hf_error err;
    char owner[32];
    int rc;

    if (hf_open(NULL, NULL, &client, &err) != 0) {
        fprintf(stderr, "semaphore: %s\n", err.text);
        return 1;
    }
    opts.mode = HF_SLOT;
    opts.slots = SLOTS;
    opts.wait_ms = 0; /* try once */
    opts.owner = owner;
    for (int i = 0; i < SLOTS; i++) {
        snprintf(owner, sizeof(owner), "worker-%d", i);
        if (hf_acquire(client, "downloads", &opts, &holds[i], &err) != 0) {
            fprintf(stderr, "semaphore: %s\n", err.text);
            hf_close(client);
            return 1;
        }
        printf("%s has a slot\n", owner);
    }

    snprintf(owner, sizeof(owner), "one-too-many");
    rc = hf_acquire(client, "downloads", &opts, &extra, &err);
    printf("%s: %s\n", owner, rc == 0 ? "also has a slot?" : hf_strerror(rc));

    for (int i = 0; i < SLOTS; i++)
        (void)hf_release(holds[i], NULL); /* hf_close() would do it too */
    hf_close(client);
    return rc == HF_EBUSY ? 0 : 1;
}
