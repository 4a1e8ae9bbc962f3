/* SPDX-License-Identifier: MIT */
/* start.h - what the asynchronous forms have in common. */
#ifndef HF_START_H
#define HF_START_H

#include "core/request.h"

/* hf__request_kind.tell of a request whose outcome is a code alone. */
void hf__start_tell(struct hf_request *request);

#endif
