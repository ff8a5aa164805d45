# Runs the README's program three times with one heap file: each run sees what the earlier ones saved.
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})
set(expected "")
foreach(run 1 2 3)
  string(APPEND expected "steel, as of run ${run}\n")
  execute_process(COMMAND ${program} ${folder}/parts.tyn OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(result OR NOT "${output}" STREQUAL "${expected}")
    message(FATAL_ERROR "run ${run} ended with ${result} and printed:\n${output}${errors}\nexpected:\n${expected}")
  endif()
endforeach()
