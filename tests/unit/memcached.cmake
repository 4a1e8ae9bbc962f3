# SPDX-License-Identifier: MIT
# The parts of the Memcached engine that need no server.
if("memcached" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_memcached_wire SOURCES memcached_wire_test.c
                      LABELS unit)
endif()
