/* SPDX-License-Identifier: MIT */
/*
 * http.h - requests to one server at a time, by libcurl, on our loop.
 *
 * A call is one POST with its answer, or a stream: an answer that does not end
 * and comes in lines. Calls end by done(), or are stopped and then end
 * silently; never from inside hf__http_start() or hf__http_flush(). With the
 * owner's monitor held.
 */
#ifndef HF_ETCD_HTTP_H
#define HF_ETCD_HTTP_H

#include <curl/curl.h>

#include "base/buf.h"
#include "base/list.h"
#include "engine.h"

struct hf__http;
struct hf__http_call;

/* The answer: call->status and call->reply; status 0: there was none, and
 * call->problem says why. The call may be given back inside. */
typedef void hf__http_done_fn(struct hf__http_call *call);
/* One line of a stream, in call->reply, without its end. */
typedef void hf__http_line_fn(struct hf__http_call *call, const char *line,
                              size_t len);

struct hf__http_call {
    struct hf__list link; /* http->active, ended or spare */
    struct hf__http *http;
    CURL *easy;
    struct curl_slist *headers;
    struct hf__buf body;  /* the owner writes it before the start */
    struct hf__buf reply; /* bounded by HF__HTTP_REPLY */
    hf__http_done_fn *done;
    hf__http_line_fn *line; /* NULL: not a stream */
    size_t read;            /* how much of a stream's reply was told */
    int64_t sent_ns;
    long status; /* HTTP's */
    int problem; /* HF_EUNAVAILABLE, HF_EAUTH, … where status is 0 */
    bool active; /* libcurl has it */
    bool fresh;  /* something of a stream came */
    char text[CURL_ERROR_SIZE];
};

enum {
    HF__HTTP_REPLY = 16 << 20, /* longer answers are refused */
    HF__HTTP_SPARE = 8,
    HF__HTTP_TOKEN = 1024
};

struct hf__http {
    const struct hf__engine_host *host;
    CURLM *multi;
    char token[HF__HTTP_TOKEN]; /* of the user; "": none */
    size_t call_size;           /* sizeof of what begins with a hf__http_call */
    bool tls;
    bool due; /* libcurl wants to run */
    struct hf__timer timer;
    struct hf__list active;
    struct hf__list ended; /* done() has to be called */
    struct hf__list spare;
    uint32_t spare_n;
    struct hf__list sockets;
};

/* Load the library, take what is needed. Zeroed before. */
int hf__http_init(struct hf__http *http, const struct hf__engine_host *host,
                  size_t call_size, bool tls, hf_error *err);
/* Everything back; calls end silently. @forked: only close descriptors. */
void hf__http_release(struct hf__http *http, bool forked);
/* What every further request says about who we are: "" for nothing. */
void hf__http_authorize(struct hf__http *http, const char *token);
/* A call, zeroed beyond its base; NULL without memory. */
struct hf__http_call *hf__http_call_new(struct hf__http *http);
/* Send call->body to @url; @timeout_ms 0: without end. HF_ENOMEM: not sent,
 * and the call is still the caller's. */
int hf__http_start(struct hf__http_call *call, const char *url,
                   int64_t timeout_ms, hf_error *err);
/* End it silently and give it back; NULL is ignored. */
void hf__http_stop(struct hf__http_call *call);
/* Let libcurl send what was started. */
void hf__http_flush(struct hf__http *http);

#endif
