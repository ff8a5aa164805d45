#pragma once
/// What a program's file needs that includes a header of taiyen, said in one sentence instead of pages of errors.

// clang-format off
#if __cplusplus < 202002L
#error "taiyen needs C++20: compile this file with -std=c++20 or later"
#endif
#ifndef __cpp_exceptions
#error "taiyen's headers throw and catch: compile this file without -fno-exceptions; others of the program may keep it as long as nothing is thrown through them"
#endif
#ifndef __cpp_rtti
#error "taiyen stores the names of types, and checks them: compile this file without -fno-rtti; others of the program may keep it"
#endif
// clang-format on
