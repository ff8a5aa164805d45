#----------------------------------------------------------------
# Generated CMake target import file for configuration "Release".
#----------------------------------------------------------------

# Commands may need to know the format version.
set(CMAKE_IMPORT_FILE_VERSION 1)

# Import target "taiyen::taiyen" for configuration "Release"
set_property(TARGET taiyen::taiyen APPEND PROPERTY IMPORTED_CONFIGURATIONS RELEASE)
set_target_properties(taiyen::taiyen PROPERTIES
  IMPORTED_LINK_INTERFACE_LANGUAGES_RELEASE "CXX"
  IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/lib/libtaiyen.a"
  )

list(APPEND _cmake_import_check_targets taiyen::taiyen )
list(APPEND _cmake_import_check_files_for_taiyen::taiyen "${_IMPORT_PREFIX}/lib/libtaiyen.a" )

# Import target "taiyen::stores" for configuration "Release"
set_property(TARGET taiyen::stores APPEND PROPERTY IMPORTED_CONFIGURATIONS RELEASE)
set_target_properties(taiyen::stores PROPERTIES
  IMPORTED_LINK_INTERFACE_LANGUAGES_RELEASE "CXX"
  IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/lib/libtaiyen_stores.a"
  )

list(APPEND _cmake_import_check_targets taiyen::stores )
list(APPEND _cmake_import_check_files_for_taiyen::stores "${_IMPORT_PREFIX}/lib/libtaiyen_stores.a" )

# Commands beyond this point should not need to know the version.
set(CMAKE_IMPORT_FILE_VERSION)
