#pragma once
/// Where in the address space a heap goes that isn't told its address.

namespace taiyen {

enum class Placement {
    automatic,  ///< a file's heap: a place that its uuid chooses, so that two of them rarely meet; a volatile heap: as `high`
    low,        ///< the lowest free place of the zone for heaps
    high        ///< the highest one
};

}  // namespace taiyen
