/* SPDX-License-Identifier: MIT */
/*
 * url.h - the URL of an engine, taken apart. A pure parser.
 *
 *   [wrapper+]scheme:[//[user[:password]@]host[:port][,host…]][/path][?query]
 *
 * "local:", "local:///dir", "trace+local:", "fault+redis://h1,h2/0?ttl=5s".
 * Percent-encoding is undone in user, password, path and query values.
 */
#ifndef HF_URL_H
#define HF_URL_H

#include "base/base.h"

enum { HF__URL_HOSTS = 32, HF__URL_WRAPPERS = 4 };

struct hf__url_host {
    char *host; /* without the brackets of an IPv6 address */
    int port;   /* 0: not given */
};

struct hf__url_pair {
    char *key;
    char *value;
    struct hf__url_pair *next;
};

struct hf__url {
    char *wrappers[HF__URL_WRAPPERS]; /* outermost first */
    size_t n_wrappers;
    char *scheme;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    struct hf__url_host hosts[HF__URL_HOSTS];
    size_t n_hosts;
    char *path;                 /* with its leading slash; "" */
    struct hf__url_pair *query; /* in order */
    char *redacted; /* for people: password and secret values as *** */
};

int hf__url_parse(const char *text, struct hf__url **ret_url, hf_error *err);
/* Would hf_redact() hide something of @text? */
bool hf__url_has_secret(const char *text);
/* Wipes what is secret. */
void hf__url_free(struct hf__url *url);
static inline void hf__url_freep(struct hf__url **url)
{
    hf__url_free(*url);
}

#endif
