# taiyen_boost_cases(target PREFIX prefix [LABELS labels...] [TIMEOUT seconds]): makes each Boost.Test case of `target` a ctest test
# `prefix.suite.case`. The cases are listed when ctest starts (BoostCasesList.cmake), again whenever the program is newer than the list.
include_guard(GLOBAL)

function(taiyen_boost_cases target)
  cmake_parse_arguments(arg "" "PREFIX;TIMEOUT" "LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}_cases.cmake)
  file(GENERATE OUTPUT ${script} CONTENT
"set(program [==[$<TARGET_FILE:${target}>]==])
set(list [==[${CMAKE_CURRENT_BINARY_DIR}/${target}_list.cmake]==])
if(NOT EXISTS \"\${program}\")
  add_test(${arg_PREFIX}.not_built ${CMAKE_COMMAND} -E false)
else()
  if(NOT EXISTS \"\${list}\" OR \"\${program}\" IS_NEWER_THAN \"\${list}\" OR \"\${CMAKE_CURRENT_LIST_FILE}\" IS_NEWER_THAN \"\${list}\")
    execute_process(COMMAND ${CMAKE_COMMAND} -D program=\${program} -D list=\${list} -D prefix=${arg_PREFIX} \"-Dlabels=${arg_LABELS}\"
      -D timeout=${arg_TIMEOUT} -P [==[${PROJECT_SOURCE_DIR}/cmake/BoostCasesList.cmake]==] RESULT_VARIABLE failed)
  endif()
  if(failed)
    add_test(${arg_PREFIX}.not_listed ${CMAKE_COMMAND} -E false)
  else()
    include(\"\${list}\")
  endif()
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()
