#pragma once
/// The named objects of an engine, whatever heap it is part of.

#include <vector>

#include <taiyen/inspect/objects.hpp>

#include "heap/engine.hpp"

namespace taiyen::inspect {

/// As stored_objects. Requires: nobody changes names meanwhile.
std::vector<StoredObject> objects_of(const heap::Engine& engine);

}  // namespace taiyen::inspect
