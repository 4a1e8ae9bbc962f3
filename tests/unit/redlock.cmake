# SPDX-License-Identifier: MIT
# The parts of the RedLock engine that need no server.
if("redlock" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_redlock_quorum SOURCES redlock_quorum_test.c
                      LABELS unit)
endif()
