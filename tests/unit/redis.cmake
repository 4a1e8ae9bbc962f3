# SPDX-License-Identifier: MIT
# The parts of the Redis engine that need no server.
if("redis" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_redis_resp SOURCES redis_resp_test.c
                      LABELS unit)
endif()
