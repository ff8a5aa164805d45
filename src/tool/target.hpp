#pragma once
/// What the command line calls TARGET: a directory of frames, or a stream of NATS.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <taiyen/replicate/replication_target.hpp>

#include "tool/command.hpp"

namespace taiyen::tool {

/// "nats://HOST:PORT/NAME", "tls://…", else a directory. Throws: Error.
std::shared_ptr<ReplicationTarget> open_target(const Given& given, const std::string& target);

/// `own` and those that say how to get to a server.
std::vector<Option> with_target_options(std::vector<Option> own);

}  // namespace taiyen::tool
