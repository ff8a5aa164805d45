#pragma once
/// Names and functions of code that announces its stores (taiyen_instrument_stores() defines TAIYEN_STORES).
///
/// The linker merges functions of the same name whether they announce or not. TAIYEN_STORES_TAG gives the allocator, and so everything that is made from it, a name
/// of its own in instrumented code; TAIYEN_STORES_HERE keeps what stores the allocator's own word from being a function that could be merged.

#if defined(TAIYEN_STORES)
#define TAIYEN_STORES_TAG __attribute__((abi_tag("taiyen_stores")))
#else
#define TAIYEN_STORES_TAG
#endif
#define TAIYEN_STORES_HERE __attribute__((always_inline)) inline

namespace taiyen {
/// taiyen/stl/allocator.hpp. Declared here and nowhere else: the tag belongs to the first declaration.
template <class T>
class TAIYEN_STORES_TAG persistent_allocator;
}  // namespace taiyen
