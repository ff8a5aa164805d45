#include <taiyen/base/error.hpp>

#include "store/log_replay.hpp"

namespace taiyen::store {

std::unique_ptr<LogReplay> make_log_replay(const std::filesystem::path& log, ByteCount, Serial) {
    throw Error(errc::unsupported_version, log, "this version does not replay transaction logs; open the heap with one that does");
}

}  // namespace taiyen::store
