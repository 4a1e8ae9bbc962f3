# SPDX-License-Identifier: MIT
# The parts of the PostgreSQL engine that need no server.
if("postgres" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_postgres_wire SOURCES postgres_wire_test.c
                      LABELS unit)
endif()
