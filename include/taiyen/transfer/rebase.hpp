#pragma once
/// Moving a heap to another base address: every pointer in it is rewritten, its files say the new address.
///
/// Which words are pointers nobody has written down, so they are found *conservatively*: an aligned word in a live block is one if its value is the address of a live block, of a
/// place in one, or of one's end. A number that happens to have such a value can't be told from a pointer and is changed; it takes a 64-bit number in the heap's own range of addresses.
/// Words whose value lies in the heap's range without being that are *ambiguous*: they stay as they are and are reported. Details: doc/relocation.md.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/base/export.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/transfer/relocation.hpp>

namespace taiyen {

/// What an ambiguous word points to.
enum class AmbiguousTarget {
    free_space,  ///< no block: it dangles, or is what is left of a pointer in unused capacity
    metadata,    ///< the heap's own pages, or what it keeps back beside a block
    beyond,      ///< behind what is in use of the heap's range
    unaligned,   ///< a live block, but the word does not begin at a multiple of 8: of a packed struct, or two neighbours by chance
};
TAIYEN_EXPORT std::string_view name_of(AmbiguousTarget target) noexcept;

/// A word of which nobody can say whether it is a pointer.
struct AmbiguousWord {
    std::uint64_t offset = 0;  ///< where it stands, within the heap
    std::uintptr_t value = 0;
    AmbiguousTarget target = AmbiguousTarget::free_space;
};

/// How a heap is moved, and what is refused.
struct RebaseOptions {
    bool dry_run = false;           ///< look and report; nothing is written, not even repairs
    bool refuse_ambiguous = false;  ///< Error{foreign_pointer} if there is an ambiguous word
    bool drop_history = false;      ///< a history's steps hold bytes with old addresses: end it, instead of Error{history_conflict}
    bool accept_hashed_by_address =
        false;                    ///< keys that are pointers lie in buckets by their old value: move all the same, instead of Error{type_mismatch}
    std::size_t listed_max = 20;  ///< ambiguous words that the report lists
    PersistentOptions files;      ///< where companions are that don't lie beside the heap
    std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< bytes of live blocks
};

/// What moving a heap did, or would do.
struct RebaseReport {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    std::size_t capacity_bytes = 0;
    bool moved = false;  ///< false: a dry run, or it lay there already
    std::uint64_t live_blocks = 0;
    std::size_t live_bytes = 0;
    std::uint64_t pointers = 0;       ///< words that were rewritten, or would be
    std::uint64_t pages_changed = 0;  ///< that hold them
    std::uint64_t ambiguous_words = 0;
    std::vector<AmbiguousWord> ambiguous;  ///< the first of them by place
    bool has_history = false;              ///< it ends with the move
    /// Named objects whose type says that it hashes pointers: their elements are not found any more under the new addresses until they are inserted again. Only what the type's
    /// name shows is seen, not the members of a struct.
    std::vector<std::string> hashed_by_address;

    /// For the program's own pointers into the heap.
    Relocation relocation() const { return {from, capacity_bytes, to}; }
};

/// Let the library choose, as it does for a new heap.
inline constexpr std::uintptr_t anywhere = 0;

/// Moves the heap, of whatever kind, that nobody has open, to `to`: a multiple of 4 GiB where nothing of this process lies. A heap whose user crashed is recovered first, and a transaction
/// log is brought into the files and emptied.
/// Durability: on return; a crash leaves the heap at its old address or at its new one, whole. Disk: pages that change lie twice in the files meanwhile. Memory: 64 MiB and 10 bytes for each such page.
/// Throws: Error{invalid_argument | address_in_use (the old address, which is needed to recover it, or the new one) | out_of_address_space}, Error{foreign_pointer | history_conflict |
/// type_mismatch} as the options say, Error{corrupt}: a page is damaged, and what opening it throws. Unless it is io_error, the heap lies where it lay.
TAIYEN_EXPORT RebaseReport rebase(const std::filesystem::path& path, std::uintptr_t to, const RebaseOptions& options = {});

}  // namespace taiyen
