/* SPDX-License-Identifier: MIT */
/* stores.h - other stores of this user and machine. */
#ifndef CLI_STORES_H
#define CLI_STORES_H

#include "cli.h"

/* A store that local: could have meant, and somebody holds locks in. */
typedef void stores_cb(const char *url, int holders, void *ctx);

/* Tell of each, if @client is the default store of this user; else of none. */
void stores_others(const hf_client *client, stores_cb *tell, void *ctx);
/* The same as warnings on stderr, unless -q. */
void stores_warn(const hf_client *client);

#endif
