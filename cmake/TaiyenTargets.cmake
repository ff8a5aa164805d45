# taiyen_own_target(target): what every target of this project shares: C++20 without extensions, strict warnings, hidden visibility.
include_guard(GLOBAL)

function(taiyen_own_target target)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion)
  if(TAIYEN_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # A class may have members or bases of types that only its own file knows, although that file is included there.
  target_compile_options(${target} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-subobject-linkage>)
  # GCC follows values through the code that its sanitizers insert, and finds uninitialized ones in the standard library where there are none.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
endfunction()

# taiyen_unity_program(target [files]): so many files at a time, or eight, may become one translation unit: what they include is compiled once. Not where somebody works on them.
option(TAIYEN_UNITY_PROGRAMS "Compile the tests of the rooms, the examples and the tool eight files at a time" OFF)
function(taiyen_unity_program target)
  set(files 8)
  if(ARGC GREATER 1)
    set(files ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TAIYEN_UNITY_PROGRAMS} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# ccache hits in every clone of the tree (paths relative to the source folder) and with precompiled headers.
if(TAIYEN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TAIYEN_CCACHE_PROGRAM ccache)
  mark_as_advanced(TAIYEN_CCACHE_PROGRAM)
  if(TAIYEN_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${TAIYEN_CCACHE_PROGRAM})
  endif()
endif()
