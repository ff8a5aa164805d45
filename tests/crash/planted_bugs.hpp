#pragma once
/// Which safeguards are taken away one at a time, and which scenarios must notice.

#include <string_view>
#include <vector>

#include "base/planted.hpp"

namespace taiyen::crash {

struct PlantedBug {
    Bug bug;
    const char* name;
    std::vector<const char*> scenarios;  ///< tried in this order until one fails
    const char* rule;                    ///< what it breaks, in the words of README.md's table of rules
    const char* fault = nullptr;         ///< caught by this kind of fault, not by a crash alone
    bool seen_alive = false;             ///< caught by the model while the recorded life goes on, before any crash
};

const std::vector<PlantedBug>& planted_bugs();
/// Throws std::invalid_argument: nobody has that name.
Bug planted_bug_of(std::string_view name);

}  // namespace taiyen::crash
