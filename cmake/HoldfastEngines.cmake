# SPDX-License-Identifier: MIT
#
# Which engines this machine can compile: engines_found. Each needs a folder
# under src/engines, and the header of its client library.

find_package(OpenSSL QUIET)

find_path(ZOOKEEPER_INCLUDE_DIR zookeeper/zookeeper.h)
find_path(NGHTTP2_INCLUDE_DIR nghttp2/nghttp2.h)
find_path(MARIADB_INCLUDE_DIR mysql.h PATH_SUFFIXES mariadb)
find_path(PQ_INCLUDE_DIR libpq-fe.h PATH_SUFFIXES postgresql)
mark_as_advanced(ZOOKEEPER_INCLUDE_DIR NGHTTP2_INCLUDE_DIR MARIADB_INCLUDE_DIR
                 PQ_INCLUDE_DIR)

set(needs_local PROJECT_NAME)
set(needs_redis OPENSSL_FOUND)
set(needs_redlock OPENSSL_FOUND)
set(needs_memcached OPENSSL_FOUND)
set(needs_zookeeper OPENSSL_FOUND)
set(needs_mysql MARIADB_INCLUDE_DIR)
# src/net comes with OpenSSL.
set(needs_etcd NGHTTP2_INCLUDE_DIR AND OPENSSL_FOUND)
set(needs_postgres PQ_INCLUDE_DIR AND OPENSSL_FOUND)

set(engines_found)
foreach(engine IN LISTS engines_known)
    set(folder ${engine})
    if(engine STREQUAL "redlock")
        set(folder redis)
    endif()
    if(NOT EXISTS "${PROJECT_SOURCE_DIR}/src/engines/${folder}/CMakeLists.txt")
        continue()
    endif()
    if(${needs_${engine}})
        list(APPEND engines_found ${engine})
    endif()
endforeach()
if(NOT HOLDFAST_ENGINES STREQUAL "auto")
    foreach(engine IN LISTS HOLDFAST_ENGINES)
        if(NOT engine IN_LIST engines_found)
            message(FATAL_ERROR "HOLDFAST_ENGINES: ${engine} is not to be had "
                                "here; there is: ${engines_found}")
        endif()
    endforeach()
    set(engines_found ${HOLDFAST_ENGINES})
endif()
# For what follows: tests and documents ask IN_LIST HOLDFAST_ENGINES.
set(HOLDFAST_ENGINES ${engines_found})
message(STATUS "engines: ${HOLDFAST_ENGINES}")
