/* SPDX-License-Identifier: MIT */
/*
 * setuid_program.c DIR - a program that uses the library with a configuration
 * of its own, to be installed set-user-id by a test.
 *
 * Prints whether it runs with another's rights, and what became of each URL.
 */
#include <stdio.h>
#include <sys/auxv.h>

#include "holdfast.h"

static void try_url(const char *label, const char *url, const hf_config *config)
{
    hf_client *client = NULL;
    hf_error err = {0};
    int rc = hf_open(url, config, &client, &err);

    printf("%s=%s %s\n", label,
           rc == 0 ? hf_client_url(client) : hf_errname(rc), err.text);
    if (rc == 0)
        hf_close(client);
}

int main(int argc, char **argv)
{
    hf_config *config = hf_config_new();
    char url[512];

    if (argc != 2)
        return 64;
    snprintf(url, sizeof(url), "local://%s/store", argv[1]);
    if (hf_config_set(config, "url", url, NULL) != 0)
        return 70;
    printf("secure=%lu\n", getauxval(AT_SECURE));
    try_url("configured", NULL, config);
    try_url("mysql", "mysql://u:p@127.0.0.1:1/db?connect_timeout=100ms", NULL);
    try_url("postgresql",
            "postgresql://u:p@127.0.0.1:1/db?connect_timeout=100ms", NULL);
    hf_config_free(config);
    return 0;
}
