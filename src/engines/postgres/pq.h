/* SPDX-License-Identifier: MIT */
/* pq.h - libpq, loaded when the first client of PostgreSQL is opened. */
#ifndef HF_POSTGRES_PQ_H
#define HF_POSTGRES_PQ_H

#include <libpq-fe.h>

#include "base/dynlib.h"

#define HF__PQ_FILE "libpq.so.5"
#define HF__PQ_FUNCTIONS(X)                                                    \
    X(PQconnectStartParams)                                                    \
    X(PQconnectPoll)                                                           \
    X(PQstatus)                                                                \
    X(PQfinish)                                                                \
    X(PQsocket)                                                                \
    X(PQerrorMessage)                                                          \
    X(PQserverVersion)                                                         \
    X(PQbackendPID)                                                            \
    X(PQconnectionNeedsPassword)                                               \
    X(PQsetnonblocking)                                                        \
    X(PQtransactionStatus)                                                     \
    X(PQsendQuery)                                                             \
    X(PQflush)                                                                 \
    X(PQconsumeInput)                                                          \
    X(PQisBusy)                                                                \
    X(PQgetResult)                                                             \
    X(PQclear)                                                                 \
    X(PQsslInUse)                                                              \
    X(PQsslStruct)                                                             \
    X(PQgssEncInUse)                                                           \
    X(PQconninfo)                                                              \
    X(PQconninfoFree)

struct hf__pq_library {
    HF__PQ_FUNCTIONS(HF__DYNLIB_FIELD)
};

/* Filled by hf__pq_load(). */
extern struct hf__pq_library hf__pq;

/* 0, or HF_EUNSUPPORTED with the package to install. */
int hf__pq_load(hf_error *err);

#endif
