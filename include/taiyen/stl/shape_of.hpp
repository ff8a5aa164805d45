#pragma once
/// The shape of a type, as heaps keep it for their named objects.

#include <span>

#include <taiyen/shape/shape.hpp>
#include <taiyen/stl/detail/shape_of.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen {

/// What a T is made of, as the compiler knows it: aggregates of at most 32 fields, standard containers and values, taiyen's containers, and classes with TAIYEN_DESCRIBE are looked into; all else is opaque,
/// and what pointers lead to, unless it lies in place somewhere in the T, too, or has TAIYEN_DESCRIBE. Complexity: linear in the number of types.
template <storable T>
Shape shape_of() {
    return Shape::decode(std::as_bytes(std::span(stl::encoded_shape<T>())));
}

}  // namespace taiyen
