# SPDX-License-Identifier: MIT

# holdfast_add_test(NAME name SOURCES file… [LABELS label…] [ARGS arg…]
#                   [LIBRARIES target…] [ENVIRONMENT var=value…]
#                   [TIMEOUT seconds] [BUSY])
#
# A program that links the library's private parts and tests/lib, and a ctest
# of the same name that runs it. What is not called …_test.c is a fixture. Most
# tests wait for servers and leases, so ./dev runs five for each processor; BUSY
# is for one that computes. A live test fails if it leaves anything in the
# temporary directory. The long ones, which wait most, begin first.
set(HOLDFAST_TESTS_PER_PROCESSOR 5)
set(HOLDFAST_LONG_TEST_COST 100)

# What ./dev asan and ./dev tsan build: programs with one of these labels.
set(HOLDFAST_SANITIZED "unit|contract|sim|torture|stress")
add_custom_target(sanitized_tests)

# What links a test, or a fixture of tests.
function(holdfast_use_test_libraries target)
    if(TARGET holdfast_test)
        target_link_libraries(${target} PRIVATE holdfast_test)
    endif()
    target_link_libraries(${target} PRIVATE holdfast_internal)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
endfunction()

# The object of a fixture: compiled once, whoever names it.
function(holdfast_fixture source ret_object)
    get_filename_component(path "${source}" ABSOLUTE)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${path}")
    string(MAKE_C_IDENTIFIER "${name}" name)
    if(NOT TARGET ${name})
        add_library(${name} OBJECT "${path}")
        holdfast_use_test_libraries(${name})
    endif()
    set(${ret_object} $<TARGET_OBJECTS:${name}> PARENT_SCOPE)
endfunction()

# Count what the children of a test run, too.
function(holdfast_count_forked target)
    if(HOLDFAST_COVERAGE)
        target_sources(${target}
                       PRIVATE "${PROJECT_SOURCE_DIR}/cmake/coverage_exit.c")
        target_link_options(${target} PRIVATE "LINKER:--wrap=_exit"
                            "LINKER:--wrap=__gcov_fork")
    endif()
endfunction()

function(holdfast_add_test)
    cmake_parse_arguments(
        test "BUSY" "NAME;TIMEOUT" "SOURCES;LABELS;ARGS;LIBRARIES;ENVIRONMENT;WITH"
        ${ARGN})
    if(test_UNPARSED_ARGUMENTS OR NOT test_NAME OR NOT test_SOURCES)
        message(FATAL_ERROR "holdfast_add_test(NAME … SOURCES …): ${ARGN}")
    endif()
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 600)
    endif()

    add_executable(${test_NAME})
    foreach(source IN LISTS test_SOURCES)
        if(NOT source MATCHES "_test[.]c$")
            holdfast_fixture("${source}" source)
        endif()
        target_sources(${test_NAME} PRIVATE "${source}")
    endforeach()
    target_link_libraries(${test_NAME} PRIVATE ${test_LIBRARIES})
    holdfast_use_test_libraries(${test_NAME})

    if(test_LABELS MATCHES "${HOLDFAST_SANITIZED}")
        add_dependencies(sanitized_tests ${test_NAME})
    endif()

    holdfast_count_forked(${test_NAME})

    if(test_LABELS MATCHES "live")
        list(PREPEND test_WITH
             "${PROJECT_SOURCE_DIR}/tests/lib/leaves_nothing.sh")
    endif()
    add_test(NAME ${test_NAME} COMMAND ${test_WITH} $<TARGET_FILE:${test_NAME}>
                                   ${test_ARGS})
    set_tests_properties(
        ${test_NAME}
        PROPERTIES LABELS "${test_LABELS}" TIMEOUT "${test_TIMEOUT}"
                   ENVIRONMENT "${test_ENVIRONMENT}")
    if(test_LABELS MATCHES "contract|live")
        set_tests_properties(${test_NAME}
                             PROPERTIES COST ${HOLDFAST_LONG_TEST_COST})
    endif()
    if(test_BUSY)
        set_tests_properties(
            ${test_NAME} PROPERTIES PROCESSORS ${HOLDFAST_TESTS_PER_PROCESSOR})
    endif()
endfunction()

# holdfast_add_cli_test(engine command…)
#
# The command, on the servers that command… starts for it: a ctest cli_on_engine.
function(holdfast_add_cli_test engine)
    if(TARGET holdfast_command)
        add_test(NAME cli_on_${engine} COMMAND ${ARGN}
                                               $<TARGET_FILE:cli_engine>)
        set_tests_properties(cli_on_${engine} PROPERTIES LABELS cli TIMEOUT 600)
    endif()
endfunction()

# holdfast_add_contract(NAME LABEL QUERY command… [SUITES suite…])
#
# The contract as a test of its own: command… starts the server, and with the
# query of the URL runs all of it, or these suites.
function(holdfast_add_contract name label query)
    cmake_parse_arguments(contract "" "" "SUITES" ${ARGN})
    add_test(NAME ${name}
             COMMAND ${contract_UNPARSED_ARGUMENTS} "${query}"
                     $<TARGET_FILE:contract_local> ${contract_SUITES})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600 COST
                                            ${HOLDFAST_LONG_TEST_COST})
endfunction()

# The contracts that MySQL and PostgreSQL share; @with starts the server, and has
# made the table by_hand. Nobody notices the death of a holder there. A hold of
# for_update needs a connection of its own.
function(holdfast_add_sql_contracts engine with)
    holdfast_add_contract(contract_${engine} contract "" "${with}")
    holdfast_add_contract(contract_${engine}_for_update live
                          "mode=for_update&pool.max=64" "${with}")
    foreach(dialect IN ITEMS shedlock spring)
        holdfast_add_contract(contract_${engine}_${dialect} live
                              dialect=${dialect} "${with}")
    endforeach()
    holdfast_add_contract(
        contract_${engine}_row live
        "dialect=row&table=by_hand&key=name&owner_column=owner" "${with}"
        SUITES callback. close. exclusion. fork. hold. lease. look. loop. modes.
               multi. names. open. version. wait.)
endfunction()
