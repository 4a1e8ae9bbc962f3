/* SPDX-License-Identifier: MIT */
/* evil_plugin.c - what the caller of a set-user-id program would like to run. */
#include <unistd.h>

__attribute__((constructor)) static void run(void)
{
    (void)!write(STDOUT_FILENO, "EVIL\n", 5);
}
