#pragma once
/// What `taiyen restore` and `taiyen replicas` do with the cuts of a group.

#include "tool/command_line.hpp"

namespace taiyen::tool {

/// Makes the heaps of a cut in the folder OUT.
Exit restore_group_of(const Given& given);
/// Tells the newest cut, and those that have names.
Exit show_group(const Given& given);

}  // namespace taiyen::tool
