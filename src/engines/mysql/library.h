/* SPDX-License-Identifier: MIT */
/* library.h - the functions of libmariadb, once they are loaded. */
#ifndef HF_MYSQL_LIBRARY_H
#define HF_MYSQL_LIBRARY_H

#include <mysql.h>

#include "base/dynlib.h"
#include "base/error.h"

#define HF__FROM_MARIADB(X)                                                    \
    X(mysql_server_init)                                                       \
    X(mysql_init)                                                              \
    X(mysql_options)                                                           \
    X(mysql_close)                                                             \
    X(mysql_get_socket)                                                        \
    X(mysql_real_connect_start)                                                \
    X(mysql_real_connect_cont)                                                 \
    X(mysql_real_query_start)                                                  \
    X(mysql_real_query_cont)                                                   \
    X(mysql_use_result)                                                        \
    X(mysql_fetch_row_start)                                                   \
    X(mysql_fetch_row_cont)                                                    \
    X(mysql_next_result_start)                                                 \
    X(mysql_next_result_cont)                                                  \
    X(mysql_more_results)                                                      \
    X(mysql_free_result)                                                       \
    X(mysql_num_fields)                                                        \
    X(mysql_field_count)                                                       \
    X(mysql_fetch_lengths)                                                     \
    X(mysql_affected_rows)                                                     \
    X(mysql_errno)                                                             \
    X(mysql_error)                                                             \
    X(mysql_stmt_init)                                                         \
    X(mysql_stmt_prepare_start)                                                \
    X(mysql_stmt_prepare_cont)                                                 \
    X(mysql_stmt_param_count)                                                  \
    X(mysql_stmt_bind_param)                                                   \
    X(mysql_stmt_execute_start)                                                \
    X(mysql_stmt_execute_cont)                                                 \
    X(mysql_stmt_field_count)                                                  \
    X(mysql_stmt_affected_rows)                                                \
    X(mysql_stmt_insert_id)                                                    \
    X(mysql_stmt_close)                                                        \
    X(mysql_stmt_errno)                                                        \
    X(mysql_stmt_error)                                                        \
    X(mysql_get_ssl_cipher)                                                    \
    X(mysql_get_server_info)                                                   \
    X(mysql_thread_id)                                                         \
    X(mariadb_get_infov)

struct hf__mysql_library {
    HF__FROM_MARIADB(HF__DYNLIB_FIELD)
};

extern struct hf__mysql_library hf__mariadb;

/* Load it, the first time; HF_EUNSUPPORTED says what to install. */
int hf__mysql_library_load(hf_error *err);

#endif
