/* SPDX-License-Identifier: MIT */
/* rights_program.c - a program that may be set-user-id, and uses mysql://. */
#include <stdio.h>
#include <sys/auxv.h>

#include "holdfast.h"

int main(void)
{
    hf_client *client;
    hf_error err;
    int rc =
        hf_open("mysql://u:p@127.0.0.1:1/db?connect=lazy", NULL, &client, &err);

    (void)printf("secure %lu, open %d: %s\n", getauxval(AT_SECURE), rc,
                 rc != 0 ? err.text : "");
    if (rc == 0)
        hf_close(client);
    return 0;
}
