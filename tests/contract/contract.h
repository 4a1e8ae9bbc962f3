/* SPDX-License-Identifier: MIT */
/*
 * contract.h - what the tests of the contract share.
 *
 * The suite is THE definition of a lock. It runs against one URL:
 *
 *     contract_test [--url URL] [test…]      or HOLDFAST_TEST_URL
 *
 * A URL that ends in "local:" gets a new directory for every test. The
 * engine's capabilities decide what is expected of it; what is not tested for
 * want of one is printed.
 */
#ifndef HF_CONTRACT_H
#define HF_CONTRACT_H

#include "event.h"
#include "holdfast.h"
#include "proc.h"
#include "test.h"
#include "test_client.h"

/* The URL of this test, with "?query" if @query is not NULL; valid until the
 * end of the test. */
const char *contract_url(const char *query);
/* The same behind the wrapper @wrapper: "fault". */
const char *contract_wrapped_url(const char *wrapper, const char *query);
/* A client of it, closed at the end of the test, or by contract_close(). */
hf_client *contract_open(const char *query);
hf_client *contract_open_url(const char *url);
void contract_close(hf_client *client);
/* A name that nobody else uses; valid until the end of the test. */
const char *contract_name(const char *base);

/* Two clients, and a name that both want. */
struct rivals contract_rivals(const char *base);

/* Does the engine promise all that is @wanted? */
bool contract_can(uint64_t wanted);
/* The first of it that it does not. */
const char *contract_lacks(uint64_t wanted);
/* End the test, and say why, if the engine does not. */
#define NEEDS(capabilities)                                                    \
    do {                                                                       \
        if (!contract_can(capabilities)) {                                     \
            test_not_tested("%s: the engine is not '%s'", test_name(),         \
                            contract_lacks(capabilities));                     \
            return;                                                            \
        }                                                                      \
    } while (0)

/* Where there are slots only, one slot of one is what a lock is elsewhere. */
const hf_opts *contract_opts(const hf_opts *opts, hf_opts *copy);
#define CONTRACT_OPTS(opts) contract_opts(opts, &(hf_opts){0})
#define hf_acquire(client, name, opts, ...)                                    \
    hf_acquire(client, name, CONTRACT_OPTS(opts), __VA_ARGS__)
#define hf_acquire_start(client, name, opts, ...)                              \
    hf_acquire_start(client, name, CONTRACT_OPTS(opts), __VA_ARGS__)
#define hf_acquire_many(client, names, n, opts, ...)                           \
    hf_acquire_many(client, names, n, CONTRACT_OPTS(opts), __VA_ARGS__)
#define hf_elect_start(client, name, opts, ...)                                \
    hf_elect_start(client, name, CONTRACT_OPTS(opts), __VA_ARGS__)
#define hf_with_enter(client, name, opts, ...)                                 \
    hf_with_enter(client, name, CONTRACT_OPTS(opts), __VA_ARGS__)

#define client_acquire_with(client, name, opts)                                \
    client_acquire_with(client, name, CONTRACT_OPTS(opts))
#define client_start_with(client, name, opts)                                  \
    client_start_with(client, name, CONTRACT_OPTS(opts))

/* hf_acquire() with the common options, which has to succeed. */
hf_hold *contract_acquire(hf_client *client, const char *name);
hf_hold *contract_acquire_mode(hf_client *client, const char *name, int mode,
                               int slots);
/* What one attempt says; a hold that it gets is released again. */
int contract_try(hf_client *client, const char *name, int mode, int slots);

/* The metrics of @client, as text; valid until the end of the test. */
const char *contract_metrics(hf_client *client);
/* The value of the first line of them that begins with @prefix; -1: none. */
int64_t contract_metric(hf_client *client, const char *prefix);

/* What a process of a test needs to know. */
struct contract_job {
    const char *url;
    const char *name;
};

#endif
