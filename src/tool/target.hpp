#pragma once
/// What the command line calls TARGET: a directory of frames, or a stream of NATS; sealed, where a key is named.

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <taiyen/replicate/replication_target.hpp>

#include "tool/command.hpp"

namespace taiyen::tool {

/// "nats://HOST:PORT/NAME", "tls://…", else a directory. Throws: Error.
std::shared_ptr<ReplicationTarget> open_target(const Given& given, const std::string& target);

/// `own` and those that say how to get to a server, and how frames are sealed.
std::vector<Option> with_target_options(std::vector<Option> own);

/// What --at says: "2026-03-01 12:00:00 UTC", as the tool prints times, with or without UTC, T between date and time, or Z. Throws: Error{invalid_argument}.
std::chrono::system_clock::time_point time_given(const std::string& text);

}  // namespace taiyen::tool
