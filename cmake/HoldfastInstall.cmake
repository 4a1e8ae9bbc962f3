# SPDX-License-Identifier: MIT
#
# cmake --install: the header, both libraries, pkg-config and CMake packages.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")

# The .pc file finds the prefix from its own place, so the tree can be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/holdfast.pc.in"
               "${PROJECT_BINARY_DIR}/holdfast.pc" @ONLY)
configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/holdfast-config.cmake.in"
    "${PROJECT_BINARY_DIR}/holdfast-config.cmake"
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/holdfast-config-version.cmake"
    COMPATIBILITY SameMinorVersion)

install(FILES "${PROJECT_SOURCE_DIR}/include/holdfast.h"
              "${PROJECT_SOURCE_DIR}/include/holdfast.hpp"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${holdfast_api}"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/holdfast")
install(
    TARGETS holdfast_shared holdfast_static
    EXPORT holdfast
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# A program that links the archive should not have to optimise all of it.
if(holdfast_lto AND CMAKE_OBJCOPY)
    install(
        CODE "execute_process(
            COMMAND \"${CMAKE_OBJCOPY}\" --wildcard -R .gnu.lto_*
                    -R .gnu.debuglto_* -N __gnu_lto_v1
                    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libholdfast.a\"
            COMMAND_ERROR_IS_FATAL ANY)")
endif()
install(
    EXPORT holdfast
    NAMESPACE holdfast::
    FILE holdfast-targets.cmake
    DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/holdfast-config.cmake"
              "${PROJECT_BINARY_DIR}/holdfast-config-version.cmake"
        DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/holdfast.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/libholdfast.3"
        DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/holdfast.7"
        DESTINATION "${CMAKE_INSTALL_MANDIR}/man7")
foreach(section IN ITEMS 1 7)
    install(FILES "${PROJECT_SOURCE_DIR}/docs/man/zh_CN/holdfast.${section}"
            DESTINATION "${CMAKE_INSTALL_MANDIR}/zh_CN/man${section}")
endforeach()
