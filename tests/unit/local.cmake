# SPDX-License-Identifier: MIT
#
# The embedded engine, without the core: local_fixture.c stands in for it.

foreach(module IN ITEMS local local_directory local_hostile
        local_store local_watch)
    holdfast_add_test(
        NAME unit_${module} SOURCES ${module}_test.c local_fixture.c LABELS unit)
endforeach()
add_test(NAME unit_local_leaves_nothing
         COMMAND "${PROJECT_SOURCE_DIR}/tests/lib/leaves_nothing.sh"
                 $<TARGET_FILE:unit_local_directory>)
set_tests_properties(unit_local_leaves_nothing PROPERTIES LABELS unit)
