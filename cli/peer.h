/* SPDX-License-Identifier: MIT */
/* peer.h - a client of our HTTP server, which may be slow or hostile. */
#ifndef CLI_PEER_H
#define CLI_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a signal asks us to end, also one that no wait has let in yet. */
bool peer_must_end(void);
/* Read a request up to its empty line, or @size - 1 bytes of it. False if it
 * does not come before @until (lock_now_ms()), or a signal asks us to end. */
bool peer_read(int fd, char *text, size_t size, int64_t until);
/* Send all of @text; false as for peer_read(). */
bool peer_send(int fd, const char *text, size_t len, int64_t until);

#endif
