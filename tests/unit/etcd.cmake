# SPDX-License-Identifier: MIT
# The parts of the etcd engine that need no server.
if("etcd" IN_LIST HOLDFAST_ENGINES)
    holdfast_add_test(NAME unit_etcd_message SOURCES etcd_message_test.c LABELS
                                                                         unit)
    holdfast_add_test(
        NAME unit_etcd_grpc
        SOURCES etcd_grpc_test.c
        LABELS unit
        LIBRARIES nghttp2)
endif()
