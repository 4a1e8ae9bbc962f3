/* SPDX-License-Identifier: MIT */
/*
 * table.h - locks that are rows of our own tables: mode=table.
 */
#ifndef HF_MYSQL_TABLE_H
#define HF_MYSQL_TABLE_H

#include "engines/engine.h"

struct hf__mysql;

/* table_acquire.c: ask for a place in line; put it there, or take it. */
int hf__mysql_table_acquire_ask(struct hf__mysql *mysql,
                                struct hf__ticket *ticket, hf_error *err);
/* table_wait.c: look at the place of @ticket, the @place-th, when it is time. */
void hf__mysql_table_wait_plan(struct hf__mysql *mysql,
                               struct hf__ticket *ticket, uint64_t place);
int64_t hf__mysql_table_wait_attend(struct hf__mysql *mysql, int64_t now_ns);
void hf__mysql_table_wait_lost(struct hf__mysql *mysql);
/* table_release.c. _sweep(): plan to remove rows of dead clients. */
int hf__mysql_table_release(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            hf_error *err);
int hf__mysql_table_release_downgrade(struct hf__mysql *mysql,
                                      struct hf__ticket *ticket, hf_error *err);
void hf__mysql_table_release_sweep(struct hf__mysql *mysql);
int64_t hf__mysql_table_release_attend(struct hf__mysql *mysql, int64_t now_ns);

/* table_condition.c. _look(): has @ticket, which is parked, been called?
 * _sweep(): remove the rows of the dead, and pass their wake-ups on. */
int hf__mysql_table_condition_look(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket);
void hf__mysql_table_condition_sweep(struct hf__mysql *mysql);
hf__engine_park_fn hf__mysql_table_condition_park;
hf__engine_unpark_fn hf__mysql_table_condition_unpark;
hf__engine_query_fn hf__mysql_table_condition_signal;

#endif
