/* SPDX-License-Identifier: MIT */
/* sockets.h - TCP sockets of the loopback interface, and whose they are. */
#ifndef HF_TESTS_SOCKETS_H
#define HF_TESTS_SOCKETS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* Has process @pid the socket of @port that is connected to @peer_port, or, if
 * that is 0, listens? */
bool process_has_socket(pid_t pid, int port, int peer_port);

/* A socket that listens on a free port; fails the test if there is none. */
int socket_listen(int *ret_port);
/* One that is connected to @port; -1: nobody listens there. */
int socket_dial(int port);
/* The same; fails the test. */
int socket_dial_now(int port);

/* Stop to listen on @fd, and end the thread that accepts there. */
void socket_unlisten(int fd, pthread_t thread);

#endif
