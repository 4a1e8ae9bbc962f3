/* SPDX-License-Identifier: MIT */
/*
 * tables.c - the tables of libholdfast(3) as mdoc, from the library itself.
 *
 * tables keys | tables errors
 */
#include <holdfast.h>
#include <stdio.h>
#include <string.h>

static int print_key(const hf_key_info *key, void *ctx)
{
    (void)ctx;
    printf(".It Ic %s No = Ar %s", key->name, key->type);
    if (key->standard[0])
        printf(" Pq Ql %s", key->standard);
    printf("\n%s\n", key->help);
    return 0;
}

static void print_error(const char *name, const char *text)
{
    printf(".It Dv HF_%s\n%s\n", name, text);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "keys") == 0) {
        printf(".Bl -tag -width Ds\n");
        hf_config_keys(print_key, NULL);
        printf(".El\n");
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "errors") == 0) {
#define HF_X(name, value, text) print_error(#name, text);
        HF_ERROR_MAP(HF_X)
#undef HF_X
        return 0;
    }
    fprintf(stderr, "usage: tables keys|errors\n");
    return 64;
}
