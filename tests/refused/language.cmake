# cmake -Dcompiler=… -Dinclude=… -P language.cmake
# What a file meets that is compiled as another language than taiyen's headers need: a sentence.
foreach(header IN ITEMS heap taiyen)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/language_${header}.cpp")
  file(WRITE ${file} "#include <taiyen/${header}.hpp>\n")
  foreach(case IN ITEMS "-std=c\\+\\+17|taiyen needs C\\+\\+20" "-std=c\\+\\+20 -fno-exceptions|without -fno-exceptions" "-std=c\\+\\+20 -fno-rtti|without -fno-rtti")
    string(REPLACE "\\+" "+" flags "${case}")
    string(REGEX REPLACE "[|].*" "" flags "${flags}")
    string(REGEX REPLACE ".*[|]" "" sentence "${case}")
    separate_arguments(flags)
    # The sentence comes first, so that nothing behind it needs to be read.
    execute_process(COMMAND ${compiler} ${flags} -fsyntax-only -fmax-errors=1 -I${include} ${file} RESULT_VARIABLE result ERROR_VARIABLE said)
    if(result EQUAL 0)
      message(SEND_ERROR "${header}.hpp, ${flags}: nothing was refused.")
    elseif(NOT said MATCHES "${sentence}")
      message(SEND_ERROR "${header}.hpp, ${flags}: the compiler doesn't say first: ${sentence}\n${said}")
    endif()
  endforeach()
endforeach()
