#pragma once
/// The compiled side of a volatile heap.

#include <taiyen/base/error.hpp>
#include <taiyen/heap/volatile_heap.hpp>

#include "volatile/volatile_core.hpp"

namespace taiyen::inspect {

/// Throws: Error{closed}.
inline const heap::VolatileCore& volatile_core(const VolatileHeap& heap) {
    if (heap.core() == nullptr) throw Error(errc::closed, "the heap is closed; make another one");
    return static_cast<const heap::VolatileCore&>(*heap.core());
}

}  // namespace taiyen::inspect
