#pragma once
/// convert: a heap as another heap in a new file: of another kind, capacity or address, or with its blocks laid close together, in any combination.
///
/// As compress() and expand() one after the other, without the stream between them. The heap that is converted stays as it is, in its files, until the program removes it; the new one has an identity of
/// its own, and no history. Memory: at most 64 MiB; where blocks move or types are declared, what doc/moving.md says besides. Thread rule: safe.

#include <taiyen/transfer/expand.hpp>

namespace taiyen {

/// How the new heap differs, and what is refused.
struct ConvertOptions : ExpandOptions {
    bool drop_history = false;  ///< the new heap begins without a past: accept that, instead of Error{history_conflict}
    PersistentOptions files;    ///< where companions of the heap are that don't lie beside it
};

/// Makes the heap `target` out of the heap `path`, which nobody has open for writing and which lies at a free address; after a crash of its user it is read as recovery would leave it.
/// What the result says besides `move` is that of `path`.
/// Durability: the new heap is durable on return; a crash before leaves nothing, or all of it, as of expand(). Disk: twice the new heap's pages for a moment if something moves.
/// Throws: as expand(), and as opening `path` for reading; Error{history_conflict}. Nothing is left then, but as expand() says.
TAIYEN_EXPORT Expanded convert(const std::filesystem::path& path, const std::filesystem::path& target, const ConvertOptions& options = {});

}  // namespace taiyen
