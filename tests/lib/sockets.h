/* SPDX-License-Identifier: MIT */
/* sockets.h - whose is a TCP socket of this machine? */
#ifndef HF_TESTS_SOCKETS_H
#define HF_TESTS_SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

/* Has process @pid the socket of @port that is connected to @peer_port, or, if
 * that is 0, listens? */
bool process_has_socket(pid_t pid, int port, int peer_port);

#endif
