/* SPDX-License-Identifier: MIT */
/*
 * certificates.h - certificates for a test, made by openssl(1).
 *
 * NAME.crt and NAME.key in a directory that is gone when the test is over.
 */
#ifndef HF_LIVE_REDIS_CERTIFICATES_H
#define HF_LIVE_REDIS_CERTIFICATES_H

/* A directory with the authority "good". */
const char *certificates_new(void);
/* One more authority. */
void certificates_authority(const char *dir, const char *name);
/* A certificate of @authority, for "IP:127.0.0.1,DNS:localhost" and the like.
 * @days -1: expired yesterday. */
void certificates_make(const char *dir, const char *name, const char *authority,
                       const char *san, int days);

/* @name.key again as locked.key, with a password: right.pw has it, wrong.pw
 * another. */
void certificates_lock(const char *dir, const char *name);

#endif
