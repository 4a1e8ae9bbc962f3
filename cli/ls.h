/* SPDX-License-Identifier: MIT */
/* ls.h - one lock as "holdfast show" prints it. */
#ifndef CLI_LS_H
#define CLI_LS_H

#include <stdio.h>

#include "look.h"

/* The name, the titles, a line for each row, then the commands; or "is free". */
void ls_print_card(const struct look_lock *lock, FILE *to);

#endif
