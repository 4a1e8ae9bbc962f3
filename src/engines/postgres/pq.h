/* SPDX-License-Identifier: MIT */
/* pq.h - libpq, loaded when the first client of PostgreSQL is opened. */
#ifndef HF_POSTGRES_PQ_H
#define HF_POSTGRES_PQ_H

#include <libpq-fe.h>

#include "base/dynlib.h"

#define HF__PQ_FILE "libpq.so.5"
/* All of them are in libpq 14, which was the first with a pipeline. */
#define HF__PQ_FUNCTIONS(X)                                                    \
    X(PQlibVersion)                                                            \
    X(PQconninfoParse)                                                         \
    X(PQconninfo)                                                              \
    X(PQconndefaults)                                                          \
    X(PQconninfoFree)                                                          \
    X(PQfreemem)                                                               \
    X(PQconnectStartParams)                                                    \
    X(PQconnectPoll)                                                           \
    X(PQstatus)                                                                \
    X(PQfinish)                                                                \
    X(PQsocket)                                                                \
    X(PQerrorMessage)                                                          \
    X(PQserverVersion)                                                         \
    X(PQbackendPID)                                                            \
    X(PQconnectionNeedsPassword)                                               \
    X(PQsslInUse)                                                              \
    X(PQsetNoticeReceiver)                                                     \
    X(PQsetnonblocking)                                                        \
    X(PQenterPipelineMode)                                                     \
    X(PQexitPipelineMode)                                                      \
    X(PQtransactionStatus)                                                     \
    X(PQsendQuery)                                                             \
    X(PQsendPrepare)                                                           \
    X(PQsendQueryPrepared)                                                     \
    X(PQpipelineSync)                                                          \
    X(PQflush)                                                                 \
    X(PQconsumeInput)                                                          \
    X(PQisBusy)                                                                \
    X(PQgetResult)                                                             \
    X(PQnotifies)                                                              \
    X(PQclear)                                                                 \
    X(PQresultStatus)                                                          \
    X(PQresultErrorField)                                                      \
    X(PQresultErrorMessage)                                                    \
    X(PQntuples)                                                               \
    X(PQnfields)                                                               \
    X(PQgetvalue)                                                              \
    X(PQgetlength)                                                             \
    X(PQgetisnull)                                                             \
    X(PQcmdStatus)                                                             \
    X(PQcmdTuples)

struct hf__pq_library {
    HF__PQ_FUNCTIONS(HF__DYNLIB_FIELD)
};

/* Filled by hf__pq_load(). */
extern struct hf__pq_library hf__pq;

/* 0, or HF_EUNSUPPORTED with the package to install. */
int hf__pq_load(hf_error *err);

/* libpq's calls of the system are points at which a thread may be cancelled,
 * and it would take the monitor with it: not between these two. */
int hf__pq_begin(void);
void hf__pq_end(int cancel_state);

#endif
