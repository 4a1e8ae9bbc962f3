/* SPDX-License-Identifier: MIT */
/*
 * quiet.h - what a process writes to a terminal that nobody gave it to write
 * on.
 *
 *     ASSERT_STREQ(quiet_watch(open_with_a_wrong_password, url), "");
 */
#ifndef HF_TESTS_QUIET_H
#define HF_TESTS_QUIET_H

typedef void quiet_fn(void *arg);

/* Run @work twice in a child on a pseudo-terminal of its own: once with stdout
 * and stderr closed, and once with both on the terminal. The child has to end
 * by itself. Returns what the terminal was shown, valid until the next call. */
const char *quiet_watch(quiet_fn *work, void *arg);
/* hf_open() @url, ask the doctor and close, with a log hook; for quiet_watch(). */
void quiet_open(void *url);
/* Copy the query of a URL to @to, with @dir for every '@'. */
void quiet_query(char *to, const char *query, const char *dir);

#endif
