/* SPDX-License-Identifier: MIT */
/*
 * report.c - the first example: do something that only one may do at a time.
 *
 *     cc report.c $(pkg-config --cflags --libs holdfast)
 *
 * Start it twice: the second waits for the first.
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

static int fail(const hf_error *err)
{
    fprintf(stderr, "report: %s\n", err->text);
    return 1;
}

int main(void)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    /* NULL: HOLDFAST_URL, or the locks of this machine. */
    if (hf_open(NULL, NULL, &client, &err) != 0)
        return fail(&err);
    if (hf_acquire(client, "nightly-report", NULL, &hold, &err) != 0) {
        hf_close(client);
        return fail(&err);
    }

    printf("the report is ours, token %" PRIu64 "\n", hf_token(hold));

    /* Says so if the lock was lost while we worked. */
    if (hf_release(hold, &err) != 0) {
        hf_close(client);
        return fail(&err);
    }
    hf_close(client);
    return 0;
}
