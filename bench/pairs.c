/* SPDX-License-Identifier: MIT */
/*
 * pairs.c - acquire and release N times, for whoever counts instructions.
 *
 *     pairs N URL
 */
#include <stdio.h>
#include <stdlib.h>

#include "holdfast.h"

int main(int argc, char **argv)
{
    long n = argc == 3 ? atol(argv[1]) : 0;
    hf_client *client;
    hf_hold *hold;
    hf_error err;
    int rc;

    if (n <= 0) {
        fprintf(stderr, "usage: pairs N URL\n");
        return 64;
    }
    rc = hf_open(argv[2], NULL, &client, &err);
    for (long i = 0; rc == 0 && i < n; i++) {
        rc = hf_acquire(client, "pairs", NULL, &hold, &err);
        if (rc == 0)
            rc = hf_release(hold, &err);
    }
    if (rc != 0) {
        fprintf(stderr, "pairs: %s\n", err.text);
        return 1;
    }
    hf_close(client);
    return 0;
}
