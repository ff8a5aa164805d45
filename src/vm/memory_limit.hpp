#pragma once
/// How much memory this process may have: the machine's, or less where it is in a memory control group (cgroups(7)), or in a container that is one.
/// Thread rule: safe.

#include <optional>
#include <string>

#include <taiyen/base/units.hpp>

namespace taiyen::vm {

/// The least limit of this process's memory control group and those above it, as far as it can see them; nothing: there is none.
/// cgroup v2: memory.max. cgroup v1: memory.limit_in_bytes below the mount of the controller. Where the group lies outside of what is mounted, as in many containers, the mount's own
/// folder counts. `proc`, `root`: of a made-up machine, for tests.
std::optional<ByteCount> group_memory_limit(const std::string& proc = "/proc/thread-self", const std::string& root = "");

/// The smaller of that and the machine's memory.
ByteCount usable_memory();

}  // namespace taiyen::vm
