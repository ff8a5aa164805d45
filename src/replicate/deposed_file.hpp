#pragma once
/// set_deposed_aside: the files of a heap that lost its place to another one make room for a follower's.

#include <filesystem>
#include <optional>

#include <taiyen/store/options.hpp>

#include "io/storage.hpp"

namespace taiyen::replicate {

/// If the heap there was deposed, its files get other names, at which it can be read and copied as before: PATH.deposed, or PATH.deposed-2, …, and what is beside it goes with it. Returns the name; nothing: it was
/// not deposed, or there is no file.
/// Durability: on return. A crash before leaves the heap's file where it was, until all that is beside it has gone: the next call goes on.
/// Throws: Error{busy}: a program has it open; Error{corrupt}: its header can't be read.
std::optional<std::filesystem::path> set_deposed_aside(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& options);

}  // namespace taiyen::replicate
