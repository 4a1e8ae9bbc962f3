/* SPDX-License-Identifier: MIT */
/*
 * dialect.h - the tables of others, on either database: what the tests of both
 * need of one.
 */
#ifndef HF_LIVE_SQL_DIALECT_H
#define HF_LIVE_SQL_DIALECT_H

#include "test.h"
#include "test_client.h"

/* The server, without tables. */
void database_fresh(void);
/* Carry out statements as its administrator; what they print. */
const char *database_do(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* A URL of the user of the tests, with "?QUERY"; valid until the next but
 * three. */
const char *database_url(const char *query);
/* Now, in UTC and without a zone. */
extern const char database_utc[];
/* That user may not make tables any more; it may use them. */
void database_forbid_tables(void);

#endif
