/// These tests ask what heaps do by themselves, in sanitizer builds, too; what memory checkers are told is tested by programs of their own (tests/memory_tools).

#include "heap/memory_tools.hpp"

namespace {

[[maybe_unused]] const bool off = [] {
    taiyen::heap::memory_tools_wanted = false;
    return true;
}();

}  // namespace
