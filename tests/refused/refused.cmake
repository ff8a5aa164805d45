# cmake -Dcompile=… -Dfile=… -P refused.cmake
execute_process(COMMAND ${compile} ${file} RESULT_VARIABLE result ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "The file must compile without TAIYEN_REFUSED:\n${said}")
endif()
execute_process(COMMAND ${compile} -DTAIYEN_REFUSED ${file} RESULT_VARIABLE result ERROR_VARIABLE said)
if(result EQUAL 0)
  message(FATAL_ERROR "Nothing was refused.")
endif()
foreach(sentence IN ITEMS
    "taiyen: std::string keeps raw pointers and would break in a heap that is mapped elsewhere. use taiyen::offset::string"
    "taiyen: std::vector<bool> keeps raw pointers and would break in a heap that is mapped elsewhere. use taiyen::offset::vector<bool>"
    "taiyen: std::list links .* use taiyen::offset::list"
    "taiyen: std::forward_list links .* use taiyen::offset::slist"
    "taiyen: std::map links its nodes by raw pointers and would break in a heap that is mapped elsewhere. use taiyen::offset::map"
    "taiyen: std::multimap links .* use taiyen::offset::multimap"
    "taiyen: std::set links .* use taiyen::offset::set"
    "taiyen: std::multiset links .* use taiyen::offset::multiset"
    "taiyen: std::unordered_map links .* use taiyen::offset::map or taiyen::offset::flat_map"
    "taiyen: std::unordered_multimap links .* use taiyen::offset::multimap"
    "taiyen: std::unordered_set links .* use taiyen::offset::set or taiyen::offset::flat_set"
    "taiyen: std::unordered_multiset links .* use taiyen::offset::multiset"
    "taiyen: a raw pointer would lead nowhere in a heap that is mapped elsewhere. use taiyen::offset_ptr"
    "taiyen: a container of persistent_allocator keeps raw pointers, which would lead nowhere in a heap that is mapped elsewhere"
    "taiyen: a member of the type holds a raw pointer, which would lead nowhere in a heap that is mapped elsewhere")
  if(NOT said MATCHES "${sentence}")
    message(SEND_ERROR "The compiler doesn't say: ${sentence}")
  endif()
endforeach()
