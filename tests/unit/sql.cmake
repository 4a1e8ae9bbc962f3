# SPDX-License-Identifier: MIT
# What the engines on SQL databases share, and needs no server.
if("mysql" IN_LIST HOLDFAST_ENGINES OR "postgres" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_sql_pool SOURCES sql_pool_test.c LABELS unit)
    holdfast_add_test(NAME unit_sql_dialect SOURCES sql_dialect_test.c
                      LABELS unit)
endif()
