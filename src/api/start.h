/* SPDX-License-Identifier: MIT */
/* start.h - what the asynchronous forms have in common. */
#ifndef HF_START_H
#define HF_START_H

#include "core/request.h"

/* hf__request_kind.tell of a request whose outcome is a code alone. */
void hf__start_tell(struct hf_request *request);
/* The same of one about a hold, which the callback borrows. */
void hf__start_tell_hold(struct hf_request *request);
/* hf__request_kind.drop of one about a hold: its reference goes. */
void hf__start_let_go(struct hf_request *request);
/* With the monitor: may a request about a hold begin? */
int hf__start_may(hf_client *client, const struct hf_request *request,
                  hf_done_cb *done, hf_error *err);

#endif
