#pragma once
/// throws: whether an action ends with an Error of that code.

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

}  // namespace taiyen::test
