# The target `doc`: the API reference by Doxygen, BUILD/reference/html/index.html.
find_program(TAIYEN_DOXYGEN doxygen)
mark_as_advanced(TAIYEN_DOXYGEN)
configure_file(${PROJECT_SOURCE_DIR}/doc/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
if(TAIYEN_DOXYGEN)
  add_custom_target(doc COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/reference COMMAND ${TAIYEN_DOXYGEN} ${PROJECT_BINARY_DIR}/Doxyfile
    COMMENT "The API reference: ${PROJECT_BINARY_DIR}/reference/html/index.html" VERBATIM)
endif()
