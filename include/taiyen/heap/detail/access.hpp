#pragma once
/// The compiled functions behind the thin templates: from an address or a slot to its heap, and memory from it.
///
/// A heap owns a span of address space: the *durable* memory of its blocks (what the file holds; a volatile heap's memory goes by that name, too). Containers outside every heap have *scratch* memory,
/// which is the process's (scratch.hpp). Heaps occupy whole 4 GiB slots of the 47-bit address space, so the heap of an address is two loads away.
/// Thread rule: look-ups and scratch memory are safe; durable memory obeys the heap's own rule.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// For `find`: the program knows that the object is what it asks for, though something inside has another layout than when it was stored, or its hash other values.
struct accept_layout_t {
    explicit accept_layout_t() = default;
};
inline constexpr accept_layout_t accept_layout{};

}  // namespace taiyen

namespace taiyen::shape {
struct TypeShape;
}

namespace taiyen::heap {

class HeapCore;  ///< the compiled side of any open heap

/// What a block holds. No search for pointers reads pointer_free ones: saves, leaks, moves to other addresses. (Collectors call such memory atomic: H. Boehm, M. Weiser, "Garbage Collection in an
/// Uncooperative Environment", 1988.) Volatile heaps make no difference.
enum class Content : bool { any, pointer_free };

/// The open heap in whose span the address lies, null if none. Complexity: constant.
TAIYEN_EXPORT HeapCore* core_at(const void* address) noexcept;
/// The open heap whose first slot is `slot`, null if none.
TAIYEN_EXPORT HeapCore* core_of_slot(std::uint32_t slot) noexcept;
TAIYEN_EXPORT std::uint32_t slot_of(const HeapCore& core) noexcept;

TAIYEN_EXPORT bool in_durable(const HeapCore& core, const void* address) noexcept;

/// Durable memory. Throws: HeapFull, Error{read_only | closed | forked | poisoned | no_transaction}.
TAIYEN_EXPORT void* allocate_durable(HeapCore& core, std::size_t bytes, std::size_t alignment, Content content = Content::any);
/// Frees a durable block, whichever heap it belongs to, or a scratch block. A bad pointer is reported (errc::double_free | foreign_pointer) and ignored.
TAIYEN_EXPORT void deallocate(void* block) noexcept;

/// The same for a durable block that an object outside had on loan since the scope of that serial (0: none): what its free means depends on what became of the scope.
TAIYEN_EXPORT void deallocate_lent(void* block, std::uint32_t scope) noexcept;
/// Whether what that scope lent belongs to the heap again: the scope was rolled back, or its step is undone.
TAIYEN_EXPORT bool lent_came_back(std::uint32_t slot, std::uint32_t scope) noexcept;

/// Usable bytes of the live durable block that starts at the address, 0 if none does. Throws: Error{closed | forked}.
TAIYEN_EXPORT std::size_t usable_size(const HeapCore& core, const void* block);

/// A named object as the templates see it.
struct NamedObject {
    void* object;
    std::size_t bytes;
    std::size_t count;
    std::string fingerprint;
};
/// In a fingerprint, what stands before the layout of what lies inside. Those of older heaps end there.
inline constexpr std::string_view inside_mark = ", inside ";
/// How two fingerprints compare: `unsaid`: alike, but one of them doesn't tell what lies inside; `inside`: only that differs.
enum class TypeMatch { same, unsaid, inside, other };
TAIYEN_EXPORT TypeMatch match_types(std::string_view stored, std::string_view asked) noexcept;

TAIYEN_EXPORT std::optional<NamedObject> find_named(const HeapCore& core, std::string_view name);
/// Throws: Error{name_taken | invalid_argument | …}, HeapFull.
/// `shape`: of its type, which the heap is to keep if there is room and it has none that says as much; null: unknown.
TAIYEN_EXPORT void add_named(HeapCore& core, std::string_view name, const NamedObject& object, shape::TypeShape* shape = nullptr);
/// Bytes of an object.
struct ObjectBytes {
    const void* begin;
    std::size_t count;
};
/// An object was made in durable memory of the heap, and has that name or is to get it; empty: none. Throws: Error{foreign_pointer} if it holds a pointer to the program's own memory (its images, malloc's
/// memory, stacks) in a heap that outlives the process; with ForeignPointers::report the handler is told instead. Words that stand in one of `sources` don't count, since bytes that were never set are copied, too.
TAIYEN_EXPORT void check_made(const HeapCore& core, ObjectBytes object, std::string_view name, std::span<const ObjectBytes> sources);
TAIYEN_EXPORT bool remove_named(HeapCore& core, std::string_view name);
/// Compares the fingerprint that a named object has with the one that is asked for, which are not the same text. Throws: Error{type_mismatch} naming the heap's file, both types, how they differ field by field, and the remedy.
TAIYEN_EXPORT void check_type(const HeapCore& core, std::string_view name, std::string_view stored, std::string_view asked, shape::TypeShape& type);
/// The same; a fingerprint that says nothing of what lies inside is replaced, and with `accept` one that says something else. Durability: with the next save, transaction or UndoScope that changes something.
TAIYEN_EXPORT void settle_type(HeapCore& core, std::string_view name, std::string_view stored, std::string_view asked, shape::TypeShape& type,
                               bool accept);
/// Compares the shape that the heap has of the type of that fingerprint. Throws: Error{type_mismatch}: by it the same bytes mean something else, as where two fields have changed places, naming all that differs.
/// Complexity: a look at two words, but for the first time for each type and open heap.
TAIYEN_EXPORT void check_shape(const HeapCore& core, std::string_view name, shape::TypeShape& type, std::string_view fingerprint);
/// The same; the heap keeps the shape if it has none that says as much, and with `accept` in place of any other. Durability: as settle_type.
TAIYEN_EXPORT void settle_shape(HeapCore& core, std::string_view name, shape::TypeShape& type, std::string_view fingerprint, bool accept);
/// Whether a key of the container of that name was looked for since the heap was opened.
TAIYEN_EXPORT bool was_looked_at(const HeapCore& core, std::string_view name);
TAIYEN_EXPORT void set_looked_at(const HeapCore& core, std::string_view name);
/// Throws Error{type_mismatch}: the container's hash gives other values than those it was filled with.
[[noreturn]] TAIYEN_EXPORT void throw_other_hash(const HeapCore& core, std::string_view name, std::string_view asked);
[[noreturn]] TAIYEN_EXPORT void throw_name_taken(const HeapCore& core, std::string_view name);
/// Throws Error{raw_pointer} if the heap may be mapped anywhere: addresses that are stored in it would be wrong elsewhere.
TAIYEN_EXPORT void check_addresses_allowed(const HeapCore& core);
/// For calls on a heap object whose compiled side is gone.
[[noreturn]] TAIYEN_EXPORT void throw_closed();

}  // namespace taiyen::heap
