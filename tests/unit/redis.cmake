# SPDX-License-Identifier: MIT
# The parts of the Redis engine that need no server.
if("redis" IN_LIST HOLDFAST_ENGINES)
    foreach(module IN ITEMS resp slot)
        holdfast_add_test(NAME unit_redis_${module}
                          SOURCES redis_${module}_test.c LABELS unit)
    endforeach()
endif()
