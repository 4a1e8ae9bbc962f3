/* SPDX-License-Identifier: MIT */
/*
 * errors.h - what went wrong, in our words.
 */
#ifndef HF_ETCD_ERRORS_H
#define HF_ETCD_ERRORS_H

#include "engines/etcd/connection.h"

int hf__etcd_errors_not_up(struct hf__etcd *etcd, hf_error *err);
/* There is no answer, or none that can be believed: @reply says so. */
void hf__etcd_errors_lost(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                          int code, const char *why);
/* The server's word for what is wrong. */
void hf__etcd_errors_read(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                          const struct hf__grpc_call *rpc);
/* A query ends with @code and @text; 0: well. */
void hf__etcd_errors_tell(struct hf__etcd *etcd, struct hf__query *query,
                          int code, const char *text);
/* … with what went wrong. */
void hf__etcd_errors_answer(struct hf__etcd *etcd, struct hf__query *query,
                            const struct hf__etcd_reply *reply);
/* The same for one that was to change something: what was sent and not answered
 * may have been carried out. */
void hf__etcd_errors_answer_unsure(struct hf__etcd *etcd,
                                   struct hf__query *query,
                                   const struct hf__etcd_reply *reply);

#endif
