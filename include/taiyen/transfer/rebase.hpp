#pragma once
/// Moving a heap to another address: every pointer in it is rewritten, its files say the new address.
///
/// The heap's own shapes (taiyen/shape/shape.hpp), or a program that declares the types of its named objects, tell exactly which words are pointers, and these are rewritten. Only a program that asks for it by name (`conservative`) gets pointers *guessed* where no type is declared: an aligned word in a
/// live block is one if its value is the address of a live block, of a place in one, or of one's end. A number of such a value can't be told from a pointer and is changed: two small ints side by side will do.
/// So the report lists each word that was changed and that nothing proves to be a pointer. Words whose value lies in the heap's range without being that are *ambiguous*: they stay as they are and are
/// reported. Details: doc/moving.md.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/transfer/declared.hpp>
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

/// A word that is taken for a pointer by its value alone: no declared type and no shape names it, and the words around it don't prove that it is the link of a container.
struct GuessedWord {
    std::uint64_t offset = 0;  ///< where it stands, within the heap
    std::uint64_t block = 0;   ///< where the block that it stands in begins, within the heap
    std::string name;          ///< of the named object that it stands in; empty: in none
    std::uintptr_t old_value = 0;
    std::uintptr_t new_value = 0;
};

/// Let the library choose, as it does for a new heap.
inline constexpr std::uintptr_t anywhere = 0;

/// Whether and in which order the blocks of a heap are laid close together. By declared types or shapes only, never by guesses: addresses change in every bit then, and bytes that look like a pointer by chance with them.
enum class Defragment {
    no,
    by_address,       ///< as they lay
    by_reachability,  ///< as they are met from the named objects on: what is used together lies together
};

/// How the pointers of a heap that moves are found, and what is refused.
struct PointerOptions {
    /// By these types' descriptions; every named object must be of one of them, told by its shape, or guessed, else Error{type_mismatch}.
    DeclaredTypes types;
    /// What the heap's own shapes tell of types that aren't declared counts as declared (doc/moving.md). The address where the heap lay must be free in this process for a moment.
    bool by_shapes = true;
    /// Pointers that neither a declared type nor a shape tells are guessed by their values; all of them, if nothing is declared and the heap's old address is taken in this process. Without it, a heap of which neither tells all goes nowhere: Error{type_mismatch}.
    bool conservative = false;
    /// Hears of each word that is guessed and changes, by place, before anything is written; what it throws ends the call with the heap untouched.
    std::function<void(const GuessedWord& word)> guessed;
    bool refuse_ambiguous = false;  ///< Error{foreign_pointer} if there is an ambiguous word
    /// Keys that are pointers lie in buckets by their old value (and, where blocks move against one another, in trees): move all the same, instead of Error{type_mismatch}.
    bool accept_hashed_by_address = false;
    std::size_t listed_max = 20;  ///< ambiguous words, and guessed ones, that the report lists
};

/// How a heap is moved, and what is refused.
struct RebaseOptions : PointerOptions {
    bool dry_run =
        false;  ///< look and report; nothing is written, not even repairs. Where nothing tells the types words are guessed, as nothing comes of it
    bool drop_history = false;  ///< a history's steps hold bytes with old addresses: end it, instead of Error{history_conflict}
    PersistentOptions files;    ///< where companions are that don't lie beside the heap
    std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< bytes of live blocks
};

/// What moving a heap did, or would do.
struct RebaseReport {
    std::uintptr_t old_address = 0;
    std::uintptr_t new_address = 0;
    std::size_t capacity_bytes = 0;
    bool moved = false;                 ///< false: a dry run, or it lay there already
    bool position_independent = false;  ///< it can be mapped anywhere: nothing was looked at, and nothing has to move
    std::uint64_t live_blocks = 0;
    std::size_t live_bytes = 0;
    std::uint64_t pointers = 0;       ///< words that were rewritten, or would be
    std::uint64_t pages_changed = 0;  ///< that hold them
    std::uint64_t ambiguous_words = 0;
    std::vector<AmbiguousWord> ambiguous;  ///< the first of them by place
    std::uint64_t guessed_words = 0;       ///< of `pointers`: nothing proves that they are some
    std::vector<GuessedWord> guessed;      ///< the first of them by place; PointerOptions::guessed hears of all
    bool has_history = false;              ///< it ends with the move
    /// Named objects whose type says that it hashes pointers: their elements are not found any more under the new addresses until they are inserted again. Only what the type's
    /// name shows is seen, not the members of a struct.
    std::vector<std::string> hashed_by_address;
    /// By declared types: the same for containers that order pointers. It matters where blocks move against one another.
    std::vector<std::string> ordered_by_address;
    bool by_declared_types = false;  ///< or by shapes; else by guesses alone
    std::uint64_t unreached_blocks =
        0;              ///< by declared types: live, and no declared pointer leads there, so that what they hold stays as it is, or is guessed
    Relocation blocks;  ///< of a heap that was defragmented: one range a block

    /// For the program's own pointers into the heap.
    Relocation relocation() const { return blocks.ranges().empty() ? Relocation(old_address, capacity_bytes, new_address) : blocks; }
};

/// Moves the heap, of whatever kind, that nobody has open, to `address`: a multiple of 2 GiB where nothing of this process lies. A position-independent heap stays: the report says so, at no cost. A heap whose user crashed is recovered first, and a transaction
/// log is brought into the files and emptied.
/// Durability: on return; a crash leaves the heap at its old address or at its new one, whole. Disk: pages that change lie twice in the files meanwhile. Memory: 64 MiB, 10 bytes for each such page, and what doc/moving.md says of pointers.
/// Throws: Error{invalid_argument | address_in_use (the old address, which is needed to recover it, or the new one) | out_of_address_space}, Error{foreign_pointer | history_conflict |
/// type_mismatch} as the options say, Error{corrupt}: a page is damaged, and what opening it throws. Unless it is io_error, the heap lies where it lay.
TAIYEN_EXPORT RebaseReport rebase(const std::filesystem::path& path, std::uintptr_t address, const RebaseOptions& options = {});

}  // namespace taiyen
