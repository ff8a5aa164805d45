#pragma once
/// HeapCore: an open heap as the rooms above see it: a span, its engine, a place in the slot table.
///
/// (I1) From construction to destruction the slots of all that the heap has reserved point here; nobody else's do.
/// (I2) Durable calls pass `check_usable` first, those that change something `check_changeable`: closed, forked, poisoned and read-only heaps refuse with their own
///      code, and so do transactional ones outside transactions.
/// Thread rule: as access.hpp says.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/heap/foreign_pointers.hpp>

#include "base/process.hpp"
#include "heap/engine.hpp"
#include "heap/links.hpp"
#include "heap/type_notes.hpp"
#include "vm/address_space.hpp"

namespace taiyen::heap {

class HeldBlocks;

inline constexpr ByteCount slot_bytes = ByteCount{1} << 32U;
inline constexpr unsigned slot_shift = 32;
inline constexpr std::uint32_t slot_count = 1U << 15U;
static_assert(slot_bytes == ByteCount{1} << slot_shift);

/// Bases are multiples of this. New heaps begin in the middle of a slot: the low half of an address in the first 2 GiB is then no small number of either sign and no ASCII text, and no two small numbers
/// side by side look like an address.
inline constexpr ByteCount base_alignment = slot_bytes / 2;

/// Address space of a heap: [base, base + capacity) durable, and what it keeps beside it.
struct CoreRanges {
    std::uintptr_t durable = 0;
    ByteCount durable_bytes = 0;
    std::uintptr_t beside = 0;  ///< of volatile heaps: their metadata
    ByteCount beside_bytes = 0;

    static CoreRanges at(std::uintptr_t base, ByteCount capacity) { return {base, capacity, base + capacity, 0}; }
    std::uintptr_t end() const { return beside + beside_bytes; }
    /// How much address space a heap file takes that has that much in use, with a page behind that nobody can touch: it takes more as it grows.
    static ByteCount reserved_bytes(ByteCount extent, ByteCount capacity) {
        constexpr ByteCount least = ByteCount{16} << 20U;
        return std::min(round_up(capacity, page_bytes) + page_bytes, std::max(least, std::bit_ceil(extent + page_bytes)));
    }
};

/// Wants to know about stores into a heap's durable span (room change).
class StoreListener {
public:
    virtual ~StoreListener() = default;
    /// A store faulted on a page of the span. True: the page is writable now, the store may be repeated. Called in a signal handler.
    virtual bool on_fault(void* address) noexcept = 0;
    /// Instrumented code is about to store there. The range starts in the span. Must not allocate from the heap.
    virtual void on_store(void* address, ByteCount length) noexcept = 0;
};

/// What is known of pages: `damaged` ones can be read, but nobody has them as they were saved; `hidden` ones can't.
enum class Proof { sound, damaged, hidden };
/// What became of an access to a protected page: `opened`: it may be repeated; `refused`: it is a real fault.
enum class Touched { not_taken, opened, refused };

/// What the shapes of a heap's types say of a word that a search has come across.
struct WordUse {
    enum class Kind : std::uint8_t {
        unknown,  ///< no shape tells
        number,  ///< nothing that anybody follows, whatever it looks like: a number in which no program keeps addresses, what an `optional` held once
        pointer,
        container,  ///< one of a container's own words
    };
    Kind kind = Kind::unknown;
    std::string path;  ///< of the value: `parts["bolt"].remark`; behind a pointer from the type on that it leads to
    std::string type;  ///< of the value
};

class HeapCore {
public:
    HeapCore(const HeapCore&) = delete;
    HeapCore& operator=(const HeapCore&) = delete;
    virtual ~HeapCore();

    const CoreRanges& ranges() const { return ranges_; }
    /// How its containers link their blocks: the heap may be mapped anywhere if they do it by distances.
    Links links() const noexcept { return links_; }
    /// The file that errors name; empty for volatile heaps.
    virtual const std::filesystem::path& path() const = 0;
    /// Whether containers outside that were given the heap keep their elements in it.
    virtual bool is_volatile() const noexcept { return false; }
    /// Throws the reason why the heap can't be changed (or, `for_reading`, not even be read) now: Error{closed | forked | poisoned | read_only}.
    virtual void check_usable(bool for_reading) const = 0;
    /// Throws the reason why no block and no named object may be changed now: what check_usable(false) throws, and Error{no_transaction}.
    virtual void check_changeable() const { check_usable(false); }
    /// The durable engine. Requires: open.
    virtual Engine& engine() = 0;
    const Engine& engine() const { return const_cast<HeapCore*>(this)->engine(); }

    virtual void* allocate_durable(ByteCount bytes, ByteCount alignment, Content content = Content::any);
    /// Usable bytes of the live durable block that starts at the address, 0 if none does. Requires: usable for reading.
    virtual ByteCount usable_durable(const void* block) const noexcept { return engine().usable_size(block); }
    /// Whether a live block of the durable span begins at the address. Others may change the heap meanwhile: what is taken or freed at this moment may be told either way. Requires: complete, and kept
    /// from leaving the slot table (visit_open_cores).
    virtual bool begins_block(const void* address) const;
    /// What lies in those words, one use for each: in fields and elements of named objects, and of what typed pointers in them lead to. Puts nothing right. Requires: nobody changes the heap
    /// meanwhile. Complexity: linear in the values of all named objects.
    virtual std::vector<WordUse> uses_of(std::span<const HeapOffset> words) { return std::vector<WordUse>(words.size()); }
    /// What becomes of words in it that lead out of it.
    virtual ForeignPointers foreign_pointers() const noexcept { return ForeignPointers::refuse; }
    /// Held around calls of `engine()` that find or change named objects; holds nothing where the program itself serialises them.
    virtual std::unique_lock<std::mutex> lock_engine() const { return {}; }
    /// The named object's fingerprint is to become this one: now, or when the heap may be changed.
    virtual void note_type(std::string_view name, std::string_view fingerprint);
    /// The type's shape is to become this one, alike.
    virtual void note_shape(std::string_view fingerprint, std::string_view encoded);
    TypeNotes& type_notes() const noexcept { return type_notes_; }
    /// False: a bad free, which was reported.
    virtual bool deallocate_durable(void* block) noexcept;
    /// A free by an object outside that had the block on loan since the scope of that serial (0: none). False: a bad free, which was reported.
    virtual bool deallocate_lent(void* block, std::uint32_t scope) noexcept;
    /// Whether what that scope lent belongs to the heap again.
    virtual bool lent_came_back(std::uint32_t /*scope*/) const noexcept { return false; }
    /// Remembers what objects outside take along. Null: nobody does, of a reader or a volatile heap.
    HeldBlocks* lender() const noexcept { return lender_; }
    /// Capture is about to keep the bytes before of a part of the durable span that it has not kept yet. Whoever can puts right what rotted there. `asked`: somebody changes it, so what can't be put
    /// right makes the heap unusable; else capture may leave it out. Returns the worst that was found. Also called in signal handlers.
    virtual Proof about_to_change(HeapOffset /*offset*/, ByteCount /*length*/, bool /*asked*/) noexcept { return Proof::sound; }
    /// An access to a protected page of the durable span. Called in signal handlers.
    virtual Touched on_touch(void* /*address*/, bool /*writes*/) noexcept { return Touched::not_taken; }
    /// Makes that part of the durable span readable, if it is hidden until it is proven. Throws: Error{corrupt | io_error}: nobody has a page of it whole; HeapFull{address_space}.
    virtual void uncover(HeapOffset /*offset*/, ByteCount /*length*/) const {}
    /// mprotect(2) of a part of the durable span, as capture wants it; pages that nobody may see yet stay hidden. False: the system refuses. For signal handlers, too.
    [[nodiscard]] virtual bool protect(HeapOffset offset, ByteCount length, bool writable) noexcept;
    /// Serial of the open scope, 0: none. What is moved out of the heap meanwhile is lent by that scope.
    std::uint32_t scope_serial() const noexcept { return scope_serial_.load(std::memory_order_relaxed); }
    void set_scope_serial(std::uint32_t serial) noexcept { scope_serial_.store(serial, std::memory_order_relaxed); }
    /// Null: nobody listens.
    StoreListener* listener() const noexcept { return listener_.load(std::memory_order_acquire); }
    void set_listener(StoreListener* listener) noexcept { listener_.store(listener, std::memory_order_release); }
    /// Whether the heap's own constructor has ended: from then on its path can be asked for by other threads.
    bool is_complete() const noexcept { return complete_.load(std::memory_order_acquire); }
    /// Whether this process is a forked child of the one that opened the heap.
    bool in_forked_child() const noexcept { return !is_process(process_); }
    /// Bytes of the durable span that can hold blocks now. Thread-safe.
    ByteCount durable_extent() const noexcept { return durable_extent_.load(std::memory_order_relaxed); }
    /// How much address space is the heap's from its base on. Thread-safe.
    ByteCount reserved_bytes() const noexcept { return reserved_.load(std::memory_order_relaxed); }

protected:
    /// Whether containers can have it as their home: it is in the slot table and among the open heaps. Scratch memory is in neither.
    enum class Listed : bool { no, yes };
    /// The first `reserved` bytes of the ranges are reserved. Throws: Error{address_in_use}: another heap has one of its slots.
    HeapCore(const CoreRanges& ranges, ByteCount reserved, Listed listed = Listed::yes);
    /// So much is reserved from now on, less if it didn't come to it. Throws: Error{address_in_use}; then nothing changed.
    void occupy(ByteCount reserved);
    void set_links(Links links) noexcept { links_ = links; }
    /// The last step of each heap's constructor.
    void complete() noexcept { complete_.store(true, std::memory_order_release); }
    /// All of the span until somebody knows better.
    void set_durable_extent(ByteCount bytes) noexcept { durable_extent_.store(bytes, std::memory_order_relaxed); }
    /// Takes the heap out of the slot table (idempotent): call it before its range is given up.
    void unregister() noexcept;

protected:
    void set_lender(HeldBlocks* lender) noexcept { lender_ = lender; }

private:
    /// Behind the last slot of so many bytes from the base on.
    std::uint64_t slot_end(ByteCount reserved) const;

    CoreRanges ranges_;
    Links links_ = Links::addresses;
    const ProcessNumber process_ = this_process();  ///< the one that opened the heap
    std::atomic<ByteCount> durable_extent_;
    std::atomic<ByteCount> reserved_;
    std::atomic<StoreListener*> listener_{nullptr};
    std::atomic<std::uint32_t> scope_serial_{0};
    std::atomic<bool> complete_{false};
    bool registered_ = false;
    HeldBlocks* lender_ = nullptr;
    mutable TypeNotes type_notes_;
};

/// The heap of each 4 GiB slot of the 47-bit address space. Exported for the store hooks, which are compiled into programs.
extern TAIYEN_EXPORT constinit std::array<std::atomic<HeapCore*>, slot_count> slot_table;

/// An object that takes the place of the one that has the name.
struct NewlyNamed {
    std::string name;
    NamedObject object;
    shape::TypeShape* type;
};
/// All of them at once; the heap keeps the shapes of their types in place of any others. Throws: as add_named; then nothing has changed. Requires: the names are there.
void replace_named(HeapCore& core, std::span<const NewlyNamed> objects);

/// Tells the report handler about a free that can't be done; true: it was done.
bool tell(FreeResult result, const void* block) noexcept;
/// The same of the exception that is being handled; false.
bool tell_failed_free(const void* block) noexcept;

/// Instrumented code is about to store there; tells the listener if the address lies in the heap's durable span.
TAIYEN_EXPORT void announce_store(HeapCore& core, std::uintptr_t address, ByteCount length) noexcept;

/// Calls `visit` with each open heap, in no order, until it returns false. No heap opens or closes meanwhile, so `visit` must not do that either.
/// Nothing virtual may be called on a heap that is not complete yet. Thread-safe.
void visit_open_cores(const std::function<bool(const HeapCore&)>& visit);
/// The beginning of a sentence: who has the addresses that could not be reserved. Thread-safe.
std::string who_takes_address(std::uintptr_t base, ByteCount bytes, const Error& refusal);
/// Whether an open heap may grow into that range, or lies there. Thread-safe.
bool is_claimed(std::uintptr_t base, ByteCount bytes);
/// While it is held nobody visits them; for who exchanges what a visit may look at.
std::unique_lock<std::mutex> hold_open_cores();
/// Whether no open heap has one of the slots of that range. Thread-safe.
bool has_free_slots(std::uintptr_t base, ByteCount bytes) noexcept;
/// How many there are. Thread-safe, without a lock.
std::size_t open_core_count() noexcept;

}  // namespace taiyen::heap
