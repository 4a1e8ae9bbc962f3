/* SPDX-License-Identifier: MIT */
/* textfile.h - a file that is replaced at once, for node_exporter. */
#ifndef CLI_TEXTFILE_H
#define CLI_TEXTFILE_H

#include <stdio.h>

#include "cli.h"

/* Writes the text; 0, or HF_E*: then the file stays as it was. */
typedef int textfile_fn(FILE *to, void *ctx);

/* 0; HF_E* of @fill; or -1 with errno. */
int textfile_write(const char *path, textfile_fn *fill, void *ctx);
/* What @client counted, to the file of --metrics-textfile, if it was given. A
 * failure is said, and changes nothing else. */
void textfile_save(hf_client *client);

#endif
