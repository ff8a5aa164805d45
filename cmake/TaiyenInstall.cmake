# Install rules: headers, the library, the CMake package and the pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS taiyen taiyen_stores EXPORT taiyenTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(component nats seal)
  if(TARGET taiyen_${component})
    install(TARGETS taiyen_${component} EXPORT taiyenTargets
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/taiyen/${component} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/taiyen FILES_MATCHING PATTERN "*.hpp")
  endif()
endforeach()
if(TARGET taiyen_malloc)
  install(TARGETS taiyen_malloc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET taiyen_tool)
  install(TARGETS taiyen_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_BINARY_DIR}/src/tool/taiyen.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${PROJECT_BINARY_DIR}/src/tool/taiyen.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME taiyen)
  install(FILES ${PROJECT_BINARY_DIR}/src/tool/taiyen.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _taiyen)
  install(FILES ${PROJECT_BINARY_DIR}/src/tool/taiyen.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# For gdb: `source` them.
install(FILES ${PROJECT_SOURCE_DIR}/doc/taiyen.gdb ${PROJECT_SOURCE_DIR}/doc/taiyen_printers.py DESTINATION ${CMAKE_INSTALL_DATADIR}/taiyen)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/taiyen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN nats EXCLUDE PATTERN seal EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/taiyen)
install(EXPORT taiyenTargets NAMESPACE taiyen:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/taiyenConfig.cmake.in ${PROJECT_BINARY_DIR}/taiyenConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change interfaces, so only the same minor version fits.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/taiyenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/taiyenConfig.cmake ${PROJECT_BINARY_DIR}/taiyenConfigVersion.cmake ${CMAKE_CURRENT_LIST_DIR}/TaiyenStores.cmake
  DESTINATION ${package_dir})

# The .pc file finds its own prefix, so an installed tree may be moved.
file(RELATIVE_PATH TAIYEN_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(TAIYEN_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(TAIYEN_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
  set(TAIYEN_PC_PREFIX "\${pcfiledir}/${TAIYEN_PREFIX_FROM_PC}")
  set(TAIYEN_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(TAIYEN_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(TAIYEN_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# A static library does not name what it needs, so its users' link line must.
if(BUILD_SHARED_LIBS)
  set(TAIYEN_PC_LIBS "-L\${libdir} -ltaiyen")
else()
  set(TAIYEN_PC_LIBS "-L\${libdir} -ltaiyen -lzstd -llz4 -ltbb -pthread")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/taiyen.pc.in ${PROJECT_BINARY_DIR}/taiyen.pc @ONLY)
set(library_of_nats nats)
set(library_of_seal sodium)
foreach(component nats seal)
  if(TARGET taiyen_${component})
    set(TAIYEN_PC_COMPONENT_LIBS "-L\${libdir} -ltaiyen-${component}")
    if(NOT BUILD_SHARED_LIBS)
      string(APPEND TAIYEN_PC_COMPONENT_LIBS " -l${library_of_${component}}")
    endif()
    configure_file(${CMAKE_CURRENT_LIST_DIR}/taiyen-${component}.pc.in ${PROJECT_BINARY_DIR}/taiyen-${component}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/taiyen-${component}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/taiyen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
