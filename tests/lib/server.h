/* SPDX-License-Identifier: MIT */
/*
 * server.h - a real server for a test, on a free port, in a directory of its
 * own.
 *
 *     static const char *const redis[] = {
 *         "redis-server", "--port", "{port}", "--bind", "127.0.0.1",
 *         "--save", "", "--dir", "{dir}", NULL};
 *     struct server *server = server_start(redis);
 *     … 127.0.0.1:server_port(server) …
 *
 * Started means that a process of ours listens on that port: the one who
 * answers is the one we started, not a server that was there before. Whatever
 * happens, it is ended when the test is over, and dies with the test program.
 */
#ifndef HF_TESTS_SERVER_H
#define HF_TESTS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct server;

/* @argv ends with NULL; "{port}" and "{dir}" in it are replaced. Fails the
 * test, showing the server's output, if nobody listens in time. */
struct server *server_start(const char *const *argv);
/* One for all tests of this process, in @dir. */
struct server *server_share(const char *const *argv, const char *dir);
int server_port(const struct server *server);
const char *server_dir(const struct server *server);
pid_t server_pid(const struct server *server);

/* SIGTERM, and wait for its end. */
void server_stop(struct server *server);
/* SIGKILL. */
void server_kill(struct server *server);
/* Start it again after that, on the same port and directory. */
void server_restart(struct server *server);
/* SIGSTOP and SIGCONT. */
void server_pause(struct server *server);
void server_resume(struct server *server);

/* A port of the loopback interface that nobody listens on. */
int server_free_port(void);
/* Is there a program called @name in the PATH? */
bool server_is_installed(const char *name);

#endif
