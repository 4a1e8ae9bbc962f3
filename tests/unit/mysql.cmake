# SPDX-License-Identifier: MIT
# The parts of the MariaDB engine that need no server.
if("mysql" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_mysql_packet SOURCES mysql_packet_test.c
                      LABELS unit)
endif()
