# SPDX-License-Identifier: MIT
# The parts of the etcd engine that need no server.
if("etcd" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_etcd_json SOURCES etcd_json_test.c LABELS unit)
endif()
