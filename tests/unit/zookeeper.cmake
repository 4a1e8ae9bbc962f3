# SPDX-License-Identifier: MIT
# The parts of the ZooKeeper engine that need no server.
if("zookeeper" IN_LIST HOLDFAST_ENGINES)
    foreach(module IN ITEMS lease queue wire)
        holdfast_add_test(NAME unit_zookeeper_${module}
                          SOURCES zookeeper_${module}_test.c LABELS unit)
    endforeach()
endif()
