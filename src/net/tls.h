/* SPDX-License-Identifier: MIT */
/*
 * tls.h - TLS over a non-blocking socket, by OpenSSL.
 *
 * The chain and the host's name or address are verified unless that is turned
 * off; TLS 1.2 is the least.
 */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "base/base.h"
#include "base/error.h"

struct hf__tls_context; /* certificates: one per client */
struct hf__tls;         /* one connection */

/* Texts may be "". */
struct hf__tls_options {
    const char *ca;   /* file of trusted certificates; "": the system's */
    const char *cert; /* file of our own certificate chain */
    const char *key;  /* file of its key */
    const char *key_password; /* of an encrypted key; never asked for */
    bool verify;
    const char *protocol; /* to be agreed on by ALPN; NULL: none */
};

/* HF_ECONFIG if a file cannot be used. */
int hf__tls_context_new(const struct hf__tls_options *options,
                        struct hf__tls_context **ret_context, hf_error *err);
void hf__tls_context_free(struct hf__tls_context *context);

/* A connection to @host over @fd, which stays the caller's. */
int hf__tls_new(struct hf__tls_context *context, int fd, const char *host,
                struct hf__tls **ret_tls, hf_error *err);
/* Tell the peer that nothing more comes, if the connection still works. */
void hf__tls_close(struct hf__tls *tls);
void hf__tls_free(struct hf__tls *tls);

/* What a step of TLS ended in, beside a number of bytes. */
enum {
    HF__TLS_WANT_READ = -1,
    HF__TLS_WANT_WRITE = -2,
    HF__TLS_CLOSED = -3, /* by the peer, in order */
    HF__TLS_FAILED = -4  /* hf__tls_explain() says why */
};

/* 1 when the handshake is done, or HF__TLS_*. */
int hf__tls_handshake(struct hf__tls *tls);
/* Bytes, or HF__TLS_*. */
int hf__tls_read(struct hf__tls *tls, void *to, size_t size);
int hf__tls_write(struct hf__tls *tls, const void *from, size_t len);
/* True if hf__tls_read() has something without the socket. */
bool hf__tls_pending(const struct hf__tls *tls);
/* Fill @err after HF__TLS_FAILED: HF_EAUTH for certificates, else
 * HF_EUNAVAILABLE. */
int hf__tls_explain(struct hf__tls *tls, hf_error *err);

#endif
