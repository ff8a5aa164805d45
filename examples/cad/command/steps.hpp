#pragma once
/// The one place that talks to the undo history of a heap.

#include <string_view>

#include <taiyen/taiyen.hpp>

namespace cad::command {

/// What happens during its life is one step of the history. Without `keep()` it never happened.
class Step {
public:
    Step(taiyen::SnapshotHeap& heap, std::string_view name);
    void keep();
};

}  // namespace cad::command
