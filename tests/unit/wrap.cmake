# SPDX-License-Identifier: MIT
#
# Engines around an engine.

holdfast_add_test(
    NAME unit_fault_script
    SOURCES fault_script_test.c
    LABELS unit)
holdfast_add_test(
    NAME unit_wrap
    SOURCES wrap_test.c core_fixture.c
    LABELS unit)
