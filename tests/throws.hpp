#pragma once
/// throws: whether an action ends with an Error of that code. names_heap: whether a HeapFull begins with that path or name.

#include <string>

#include <taiyen/base/error.hpp>

namespace taiyen::test {

template <class F>
bool throws(errc code, F&& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.code() == code;
    }
    return false;
}

inline bool names_heap(const HeapFull& full, const std::string& heap) { return std::string(full.what()).starts_with(heap + ": heap full: "); }

}  // namespace taiyen::test
