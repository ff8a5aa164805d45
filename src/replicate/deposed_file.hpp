#pragma once
/// set_deposed_aside: the files of a heap that lost its place to another one make room for a follower's.

#include <filesystem>
#include <functional>
#include <optional>

#include <taiyen/store/options.hpp>

#include "base/uuid.hpp"
#include "io/storage.hpp"

namespace taiyen::replicate {

/// If the heap there was deposed, its files get other names, at which it can be read and copied as before: PATH.deposed, or PATH.deposed-2, …, its log and second copy alike. Returns the name; nothing: it was
/// not deposed, or there is no file. Only files that are the heap's own are touched. `heap_to_come`: uuid of the heap whose follower is to take the place, asked before anything is.
/// Durability: on return. A crash before leaves the heap's file where it was, until all that is beside it has gone: the next call goes on.
/// Throws: Error{busy}: a program has it open; Error{corrupt}: its header can't be read; Error{mismatch}: another heap is to come, or what `options` name, or what lies beside it, isn't this heap's; Error{not_found}: a file that holds what no other
/// one has isn't where `options` say; what `heap_to_come` throws. Nothing was renamed then.
std::optional<std::filesystem::path> set_deposed_aside(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& options,
                                                       const std::function<Uuid()>& heap_to_come);

}  // namespace taiyen::replicate
