/* SPDX-License-Identifier: MIT */
/* test_client.h - a client of the library, as a test wants it. */
#ifndef HF_TESTS_TEST_CLIENT_H
#define HF_TESTS_TEST_CLIENT_H

#include "event.h"
#include "holdfast.h"

/* Has to succeed; closed at the end of the test. */
hf_client *client_open(const char *url);
/* Waits, and has to succeed. */
hf_hold *client_acquire(hf_client *client, const char *name);
/* The same, and @events are told what becomes of it. */
hf_hold *client_acquire_told(hf_client *client, const char *name,
                             struct event *events);
/* Begins to wait; and ends in a grant. */
hf_request *client_start(hf_client *client, const char *name);
hf_hold *client_finish(hf_request *request);
/* What one attempt says; a hold that it gets is released again. */
int client_try(hf_client *client, const char *name, hf_error *err);

/* What the doctor thinks of @check, HF_FINDING_*; -1: nothing. */
int client_finding(hf_client *client, const char *check);

/* on_event for an event that is told the states. */
void client_on_event(hf_hold *hold, int state, void *ctx);

#endif
