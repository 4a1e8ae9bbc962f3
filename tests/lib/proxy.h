/* SPDX-License-Identifier: MIT */
/*
 * proxy.h - a TCP proxy that does what networks do.
 *
 * It stands on a free port before a server on the loopback interface, in a
 * thread of its own, and lets bytes pass until it is told otherwise. Each
 * order holds until the next one of its kind, or proxy_pass().
 *
 *     "applied, but the answer is lost":
 *         proxy_hold(proxy, PROXY_TO_CLIENT, true);
 *         …send…
 *         proxy_reset(proxy);
 */
#ifndef HF_TESTS_PROXY_H
#define HF_TESTS_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum proxy_direction { PROXY_TO_SERVER, PROXY_TO_CLIENT };

struct proxy;

/* A proxy before 127.0.0.1:@server_port; ends with the test. */
struct proxy *proxy_start(int server_port);
int proxy_port(const struct proxy *proxy);

/* Everything passes again. */
void proxy_pass(struct proxy *proxy);
/* Every byte arrives so much later. */
void proxy_delay(struct proxy *proxy, int64_t ms);
/* Nothing passes in this direction; it is kept. */
void proxy_hold(struct proxy *proxy, enum proxy_direction direction, bool on);
/* From the next piece with @text in it on, that one connection is held in this
 * direction, the others are not. NULL: what was held so goes on. @text lives as
 * long as the proxy. */
void proxy_hold_at(struct proxy *proxy, enum proxy_direction direction,
                   const char *text);
/* In how many connections and directions it has come to that. */
int proxy_holds(struct proxy *proxy);
/* Does one of them have a piece with @text to pass? */
bool proxy_keeps(struct proxy *proxy, enum proxy_direction direction,
                 const char *text);
/* That a client has closed its connection does not reach the server: what is
 * held is still carried out there. */
void proxy_lose_ends(struct proxy *proxy, bool on);
/* All connections are reset, now; new ones are accepted. */
void proxy_reset(struct proxy *proxy);
/* New connections are reset as soon as they are made. */
void proxy_refuse(struct proxy *proxy, bool on);
/* The same for those that process @pid makes, and what it has made is reset: with
 * a proxy before each of several servers, one is cut off from the others. 0: of
 * nobody. */
void proxy_refuse_process(struct proxy *proxy, pid_t pid);
/* At most @bytes at a time; 0: as they come. */
void proxy_slice(struct proxy *proxy, size_t bytes);
/* One byte in @n is changed; 0: none. */
void proxy_corrupt(struct proxy *proxy, unsigned n);
/* After @bytes more in this direction the connection is reset, once. */
void proxy_cut_after(struct proxy *proxy, enum proxy_direction direction,
                     size_t bytes);
/* Connections that are open, and bytes passed so far. */
int proxy_connections(struct proxy *proxy);
uint64_t proxy_bytes(struct proxy *proxy, enum proxy_direction direction);

#endif
