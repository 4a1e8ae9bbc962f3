/* SPDX-License-Identifier: MIT */
/* import.h - holdfast config import: the settings of Java programs as ours. */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

/* Read a Spring, Redisson or Curator configuration and write ours to stdout;
 * an exit code, said. */
int import_file(const char *path);

#endif
