#include "command/steps.hpp"

namespace cad::command {

Step::Step(taiyen::SnapshotHeap&, std::string_view) {}

void Step::keep() {}

}  // namespace cad::command
