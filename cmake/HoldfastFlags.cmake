# SPDX-License-Identifier: MIT
#
# Flags for everything we compile: warnings, hardening, sanitizers, coverage.

include(CheckCCompilerFlag)

set(holdfast_warnings
    -Wall
    -Wextra
    -Walloca
    -Wcast-qual
    -Wdate-time
    -Wformat=2
    -Wimplicit-fallthrough
    -Wmissing-prototypes
    -Wnested-externs
    -Wold-style-definition
    -Wpointer-arith
    -Wredundant-decls
    -Wshadow
    -Wstrict-prototypes
    -Wundef
    -Wunused-macros
    -Wvla
    -Wwrite-strings)
# Tables that only an assert() reads.
list(APPEND holdfast_warnings -Wno-unused-const-variable)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND holdfast_warnings -Wduplicated-cond -Wjump-misses-init
         -Wlogical-op)
elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
    list(APPEND holdfast_warnings -Wcomma
         -Wunreachable-code-aggressive)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C>:${holdfast_warnings}>")
if(HOLDFAST_WERROR)
    add_compile_options(-Werror)
endif()

# GCC clears and copies structs of up to 8 KiB by "rep stos" and "rep movs", which
# take longer to start than stores take for a struct of ours. Other compilers and
# processors have no such flags.
foreach(copy memset memcpy)
    set(strategy "-m${copy}-strategy=unrolled_loop:384:noalign,libcall:-1:noalign")
    check_c_compiler_flag("${strategy}" HOLDFAST_HAS_${copy}_STRATEGY)
    if(HOLDFAST_HAS_${copy}_STRATEGY)
        add_compile_options("$<$<COMPILE_LANGUAGE:C>:${strategy}>")
    endif()
endforeach()

# Empty, so that a file that defines it itself says the same.
add_compile_definitions("_GNU_SOURCE=")
add_compile_options(-fno-common -fno-plt -ffunction-sections -fdata-sections)
add_link_options("LINKER:-z,relro" "LINKER:-z,now" "LINKER:--as-needed"
                 "LINKER:--gc-sections")

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(HOLDFAST_SANITIZE)
    add_compile_options(
        "-fsanitize=${HOLDFAST_SANITIZE}" -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    add_link_options("-fsanitize=${HOLDFAST_SANITIZE}")
else()
    add_compile_options(-fstack-protector-strong)
    if(CMAKE_BUILD_TYPE MATCHES "Rel")
        add_compile_definitions(_FORTIFY_SOURCE=2)
    endif()
endif()

if(HOLDFAST_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()

if(HOLDFAST_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "HOLDFAST_FUZZ needs clang: cmake --preset fuzz")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
