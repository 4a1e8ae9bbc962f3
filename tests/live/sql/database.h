/* SPDX-License-Identifier: MIT */
/* database.h - what tests need that run on either database. */
#ifndef HF_LIVE_SQL_DATABASE_H
#define HF_LIVE_SQL_DATABASE_H

#include "test.h"
#include "test_client.h"

/* The server, without tables. */
void database_fresh(void);
/* Carry out statements as its administrator; what they print. */
const char *database_run(const char *statements);
const char *database_do(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* A URL of the user of the tests, with "?QUERY"; valid until the end
 * of the test. */
const char *database_url(const char *query);
/* … and as Java's drivers have it. */
const char *database_jdbc(void);
/* Now, in UTC and without a zone; the type of that. */
extern const char database_utc[];
extern const char database_instant[];
/* That user may not make tables any more; it may use them. */
void database_forbid_tables(void);

/* The mode whose locks live in a session. */
extern const char database_session[];
/* How many sessions the user of the tests has. */
extern const char database_sessions[];
/* End the newest of them. */
void database_end_newest(void);
/* End one that waits for another's lock; false if there is none. */
bool database_end_wait(void);
/* The client of the server, that reads statements and writes answers. */
const char *database_client(void);
/* Statements that lock by hand: the tables of the articles, with a column more
 * for the one that the articles' INSERT needs; lose patience after a second. */
extern const char database_lock_table[];
extern const char database_described_table[];
extern const char database_version_table[];
extern const char database_impatient[];
/* Where tables are whose schema nobody names. */
extern const char database_schema[];
/* What the doctor calls its finding about leases. */
extern const char database_lease[];
/* Nobody but an administrator may write; the second, until the test is over. */
void database_read_only(bool on);
void database_read_only_for_now(void);
/* A lock of ShedLock's on a fresh server, after a statement about its zone. */
hf_hold *database_shedlock_after(const char *statement);
/* The connection of a hold, for the caller's own statements by @functions of
 * @library, which are called @names. */
void *database_lend(hf_hold *hold, const char *library,
                    const char *const *names, size_t n, void *functions);
/* lend() does that with caller, a struct of the functions that @CALLERS lists. */
#define DATABASE_LEND(CALLERS, library, type)                                  \
    static struct {                                                            \
        CALLERS(HF__DYNLIB_FIELD)                                              \
    } caller;                                                                  \
    static type *lend(hf_hold *hold)                                           \
    {                                                                          \
        static const char *const names[] = {CALLERS(HF__DYNLIB_NAME)};         \
                                                                               \
        return database_lend(hold, library, names, HF_COUNT_OF(names),         \
                             &caller);                                         \
    }

#endif
