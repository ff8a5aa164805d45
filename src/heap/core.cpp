#include "heap/core.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <ranges>
#include <span>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/shape/detail/builder.hpp>

#include "base/demangle.hpp"
#include "base/planted.hpp"
#include "base/sanitizers.hpp"
#include "base/sentence.hpp"
#include "heap/scratch.hpp"
#include "shape/encoding.hpp"
#include "vm/address_space.hpp"

namespace taiyen::heap {

// Zero pages until a heap opens.
constinit std::array<std::atomic<HeapCore*>, slot_count> slot_table{};

namespace {

/// The same heaps as a list: a scan for foreign pointers asks for all of them. A heap leaves it before anything of it is taken apart.
/// Never destroyed: heaps in static storage may outlive this file's statics.
struct OpenList {
    std::mutex mutex;
    std::vector<HeapCore*> cores;
    std::atomic<std::size_t> count{0};  ///< of `cores`
};
OpenList& open_list() {
    static OpenList& list = *new OpenList;
    return list;
}

HeapCore* at_slot(std::uint64_t slot) noexcept { return slot < slot_count ? slot_table[slot].load(std::memory_order_acquire) : nullptr; }

/// Tells the handler about a free that can't be done.
void report_bad_free(errc code, const void* block, std::string_view text) noexcept { report({code, block, text}); }

/// The type name at the front of a fingerprint, readable where the compiler's name can be undone.
std::string readable_type(std::string_view fingerprint) {
    const std::string mangled(fingerprint.substr(0, fingerprint.find(' ')));
    std::string name = demangled(mangled.c_str()).value_or(mangled);
    if (const auto rest = fingerprint.find(' '); rest != std::string_view::npos) name.append(" (").append(fingerprint.substr(rest + 1)).append(")");
    return name;
}

}  // namespace

bool tell(FreeResult result, const void* block) noexcept {
    switch (result) {
        case FreeResult::freed: return true;
        case FreeResult::foreign:
            report_bad_free(errc::foreign_pointer, block, "a pointer that is no block of the heap was freed; the free is ignored");
            return false;
        case FreeResult::not_a_block: break;
    }
    report_bad_free(errc::double_free, block,
                    "a pointer was freed that is not the start of a live block (freed twice, dangling or interior); the free is ignored");
    return false;
}

bool tell_failed_free(const void* block) noexcept {
    try {
        throw;
    } catch (const Error& error) {
        report_bad_free(static_cast<errc>(error.code().value()), block, error.what());
    } catch (const std::exception& error) {
        report_bad_free(errc::foreign_pointer, block, error.what());
    }
    return false;
}

HeapCore::HeapCore(const CoreRanges& ranges, ByteCount reserved, Listed listed)
    : ranges_(ranges), durable_extent_(ranges.durable_bytes), reserved_(listed == Listed::yes ? 0 : reserved) {
    TAIYEN_CHECK(ranges.durable % base_alignment == 0 && ranges.durable_bytes != 0 && ranges.durable + ranges.durable_bytes <= ranges.beside);
    if (listed == Listed::no) return;
    occupy(reserved);
    registered_ = true;
    OpenList& list = open_list();
    const std::lock_guard lock(list.mutex);
    list.cores.push_back(this);
    list.count.store(list.cores.size(), std::memory_order_relaxed);
}

std::uint64_t HeapCore::slot_end(ByteCount reserved) const {
    return reserved == 0 ? ranges_.durable >> slot_shift : ((ranges_.durable + reserved - 1) >> slot_shift) + 1;
}

void HeapCore::occupy(ByteCount reserved) {
    const std::uint64_t first = slot_end(reserved_.load(std::memory_order_relaxed));
    const std::uint64_t last = slot_end(reserved);
    TAIYEN_CHECK(last <= slot_count);
    for (std::uint64_t slot = first; slot < last; ++slot) {
        HeapCore* nobody = nullptr;
        if (!slot_table[slot].compare_exchange_strong(nobody, this, std::memory_order_acq_rel)) {  // (I1)
            while (slot-- > first) slot_table[slot].store(nullptr, std::memory_order_release);
            throw Error(errc::address_in_use, "a heap that is open in this process has a part of these 4 GiB");
        }
    }
    for (std::uint64_t slot = last; slot < first; ++slot) slot_table[slot].store(nullptr, std::memory_order_release);
    reserved_.store(reserved, std::memory_order_relaxed);
}

HeapCore::~HeapCore() { unregister(); }

void HeapCore::unregister() noexcept {
    if (!registered_) return;
    registered_ = false;
    {
        OpenList& list = open_list();
        const std::lock_guard lock(list.mutex);
        std::erase(list.cores, this);
        list.count.store(list.cores.size(), std::memory_order_relaxed);
    }
    const std::uint64_t last = slot_end(reserved_bytes());
    for (std::uint64_t slot = ranges_.durable >> slot_shift; slot < last; ++slot) slot_table[slot].store(nullptr, std::memory_order_release);
}

bool HeapCore::protect(HeapOffset offset, ByteCount length, bool writable) noexcept {
    return vm::try_protect(reinterpret_cast<std::byte*>(ranges_.durable) + offset.value, length, writable);
}

void* HeapCore::allocate_durable(ByteCount bytes, ByteCount alignment, Content content) {
    check_changeable();
    return engine().allocate(bytes, alignment, content);
}

bool HeapCore::begins_block(const void* address) const {
    // Metadata may be hidden until it is touched. If nobody has it whole, it can't say that no block is there.
    const auto copy = [this](const void* from, void* to, ByteCount length) {
        if (vm::try_copy(from, to, length)) return true;
        return const_cast<HeapCore*>(this)->on_touch(const_cast<void*>(from), false) == Touched::opened && vm::try_copy(from, to, length);
    };
    return engine().seems_block(address, durable_extent(), copy).value_or(true);
}

void HeapCore::note_type(std::string_view name, std::string_view fingerprint) {
    type_notes_.note(name, fingerprint);
    const auto lock = lock_engine();
    type_notes_.write_into(engine());
}

void HeapCore::note_shape(std::string_view fingerprint, std::string_view encoded) {
    type_notes_.note_shape(fingerprint, encoded);
    const auto lock = lock_engine();
    type_notes_.write_into(engine());
}

bool HeapCore::deallocate_durable(void* block) noexcept {
    try {
        check_changeable();
        return tell(engine().deallocate(block), block);
    } catch (...) {
        return tell_failed_free(block);
    }
}

bool HeapCore::deallocate_lent(void* block, std::uint32_t) noexcept { return deallocate_durable(block); }

void announce_store(HeapCore& core, std::uintptr_t address, ByteCount length) noexcept {
    if (!in_durable(core, reinterpret_cast<const void*>(address))) return;
    if (StoreListener* const listener = core.listener(); listener != nullptr) listener->on_store(reinterpret_cast<void*>(address), length);
}

void visit_open_cores(const std::function<bool(const HeapCore&)>& visit) {
    OpenList& list = open_list();
    const std::lock_guard lock(list.mutex);
    for (const HeapCore* core : list.cores)
        if (!visit(*core)) return;
}

namespace {

bool overlap(std::uintptr_t one, ByteCount one_bytes, std::uintptr_t other, ByteCount other_bytes) {
    return one < other + other_bytes && other < one + one_bytes;
}

/// [first byte of the first slot, end of the last one) that a range of addresses has a part of: heaps share no slot.
std::pair<std::uintptr_t, ByteCount> slots_around(std::uintptr_t base, ByteCount bytes) {
    const std::uintptr_t first = round_down(base, slot_bytes);
    return {first, round_up(base + bytes, slot_bytes) - first};
}

}  // namespace

std::string who_takes_address(std::uintptr_t base, ByteCount bytes, const Error& refusal) {
    std::string text = "the heap's address is taken: " + sentence_of(refusal);
    const auto [first, length] = slots_around(base, bytes);
    visit_open_cores([&](const HeapCore& core) {
        const bool overlaps = overlap(first, length, core.ranges().durable, core.reserved_bytes());
        if (overlaps && core.is_complete()) {
            text = "the heap's address is taken by " +
                   (core.path().empty() ? "a volatile heap" : (core.is_volatile() ? "the volatile heap " : "the heap ") + core.path().string()) +
                   ", which is open in this process";
        }
        return !overlaps;
    });
    return text;
}

std::unique_lock<std::mutex> hold_open_cores() { return std::unique_lock(open_list().mutex); }

bool has_free_slots(std::uintptr_t base, ByteCount bytes) noexcept {
    for (std::uint64_t slot = base >> slot_shift; slot <= (base + bytes - 1) >> slot_shift; ++slot)
        if (at_slot(slot) != nullptr) return false;
    return true;
}

bool is_claimed(std::uintptr_t base, ByteCount bytes) {
    bool claimed = false;
    const auto [first, length] = slots_around(base, bytes);
    visit_open_cores([&](const HeapCore& core) {
        claimed = overlap(first, length, core.ranges().durable, core.ranges().end() - core.ranges().durable);
        return !claimed;
    });
    return claimed;
}

std::size_t open_core_count() noexcept { return open_list().count.load(std::memory_order_relaxed); }

namespace {

// Of this file's own, so that a free has no call of either.

inline bool has_address(const HeapCore& core, const void* address) noexcept {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - core.ranges().durable;
    return offset < core.ranges().durable_bytes && offset < core.reserved_bytes();
}

inline HeapCore* find_core(const void* address) noexcept {
    HeapCore* const core = at_slot(reinterpret_cast<std::uintptr_t>(address) >> slot_shift);
    return core != nullptr && has_address(*core, address) ? core : nullptr;
}

}  // namespace

bool in_durable(const HeapCore& core, const void* address) noexcept { return has_address(core, address); }

HeapCore* core_at(const void* address) noexcept { return find_core(address); }

HeapCore* core_of_slot(std::uint32_t slot) noexcept {
    HeapCore* const core = at_slot(slot);
    return core != nullptr && slot_of(*core) == slot ? core : nullptr;
}

std::uint32_t slot_of(const HeapCore& core) noexcept { return static_cast<std::uint32_t>(core.ranges().durable >> slot_shift); }

void* allocate_durable(HeapCore& core, std::size_t bytes, std::size_t alignment, Content content) {
    return core.allocate_durable(bytes, alignment, content);
}

void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    if (HeapCore* const core = find_core(block); core != nullptr) {
        core->deallocate_durable(block);
    } else if (!deallocate_scratch(block)) {
        report_bad_free(errc::foreign_pointer, block,
                        "a block was freed that belongs to no open heap (its heap was closed, or it never came from one); the free is ignored");
    }
}

void deallocate_lent(void* block, std::uint32_t scope) noexcept {
    if (HeapCore* const core = find_core(block); core != nullptr)
        core->deallocate_lent(block, scope);
    else
        deallocate(block);
}

bool lent_came_back(std::uint32_t slot, std::uint32_t scope) noexcept {
    const HeapCore* const core = scope == 0 ? nullptr : core_of_slot(slot);
    return core != nullptr && core->lent_came_back(scope);
}

std::size_t usable_size(const HeapCore& core, const void* block) {
    core.check_usable(true);
    return core.usable_durable(block);
}

std::optional<NamedObject> find_named(const HeapCore& core, std::string_view name) {
    core.check_usable(true);
    const auto lock = core.lock_engine();
    const std::optional<Root> root = core.engine().find_root(name);
    if (!root || (Engine::is_shape_name(name) && root->object.value == 0)) return std::nullopt;
    return NamedObject{reinterpret_cast<void*>(core.ranges().durable + root->object.value), root->bytes, root->count, root->fingerprint};
}

static std::uint32_t number_of(shape::TypeShape& type) noexcept {
    static std::atomic<std::uint32_t> last_type = 0;
    std::uint32_t number = type.number.load(std::memory_order_relaxed);
    if (number != 0) return number;
    const std::uint32_t next = last_type.fetch_add(1, std::memory_order_relaxed) + 1;
    return type.number.compare_exchange_strong(number, next) ? next : number;
}

/// Under the engine's lock. Empty: the heap has it, or the directory is damaged where shapes lie, which is nothing to whoever wants the object.
static std::string_view wanted_shape(HeapCore& core, shape::TypeShape& type, std::string_view fingerprint) {
    try {
        const std::string& own = shape::encoded(type);
        const auto stored = core.engine().shape_of(fingerprint);
        if (shape::is_wanted(own, stored)) return own;
        if (*stored != own) core.type_notes().doubt_shape(fingerprint);
        return {};
    } catch (const Error&) {
        return {};
    }
}

/// How the shape that the heap has of the type of that fingerprint differs from the program's; nothing where one of them can't be read. Under the engine's lock.
static std::vector<ShapeChange> changes_of(const Engine& engine, std::string_view stored, shape::TypeShape& type) {
    try {
        const auto text = engine.shape_of(stored);
        const std::string& own = shape::encoded(type);
        if (!text || *text == own) return {};
        const Shape before = Shape::decode(std::as_bytes(std::span(*text)));
        const Shape after = Shape::decode(std::as_bytes(std::span(own)));
        if (before.nodes.front().kind != after.nodes.front().kind) return {};  // names say so
        return changes(before, after);
    } catch (const Error&) {
        return {};
    }
}

/// ": this; that; and 3 more"
static std::string told(const std::vector<ShapeChange>& changes) {
    constexpr std::size_t told_max = 6;
    std::string text;
    for (const ShapeChange& change : changes | std::views::take(told_max)) text += (text.empty() ? ": " : "; ") + change.text;
    if (changes.size() > told_max) text += "; and " + std::to_string(changes.size() - told_max) + " more";
    return text;
}

[[noreturn]] static void throw_contradiction(const HeapCore& core, std::string_view name, std::string_view fingerprint,
                                             const std::vector<ShapeChange>& changes) {
    throw Error(errc::type_mismatch, core.path(),
                "object '" + std::string(name) + "' was stored by a program to which the bytes of " + readable_type(fingerprint) +
                    " meant something else" + told(changes) +
                    "; use the type it was stored with, or, if you know that the bytes are right, find<T>(name, taiyen::accept_layout)");
}

/// An object of the type that is to be constructed may be there from a program that meant something else by the same bytes. Under the engine's lock.
static void refuse_contradiction(const HeapCore& core, shape::TypeShape& type, std::string_view fingerprint) {
    if (core.type_notes().is_shape_noted(fingerprint)) return;
    const std::vector<ShapeChange> changes = changes_of(core.engine(), fingerprint, type);
    if (std::ranges::none_of(changes, &ShapeChange::is_certain)) return;
    for (const Root& root : core.engine().roots())
        if (root.fingerprint == fingerprint) throw_contradiction(core, root.name, fingerprint, changes);
}

void add_named(HeapCore& core, std::string_view name, const NamedObject& object, shape::TypeShape* type) {
    core.check_changeable();
    const auto lock = core.lock_engine();
    if (Engine::is_shape_name(name))
        throw Error(errc::invalid_argument, core.path(), "names that begin like that are the heap's own; take another one");
    if (core.engine().find_root(name)) throw_name_taken(core, name);
    TAIYEN_CHECK(in_durable(core, object.object));
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object.object) - core.ranges().durable;
    const std::uint32_t number = type == nullptr ? 0 : number_of(*type);
    const bool is_kept = type == nullptr || core.type_notes().is_shape_kept(number, core.engine().outside_changes());
    const std::string_view wanted = is_kept ? std::string_view() : wanted_shape(core, *type, object.fingerprint);
    if (!wanted.empty()) refuse_contradiction(core, *type, object.fingerprint);
    core.engine().add_root({std::string(name), object.fingerprint, HeapOffset{offset}, object.bytes, object.count}, wanted);
    if (!is_kept) core.type_notes().set_shape_kept(number, core.engine().outside_changes());
}

void replace_named(HeapCore& core, std::span<const NewlyNamed> objects) {
    core.check_changeable();
    const auto lock = core.lock_engine();
    std::vector<std::pair<Root, std::string_view>> roots;
    for (const NewlyNamed& one : objects) {
        TAIYEN_CHECK(in_durable(core, one.object.object));
        const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(one.object.object) - core.ranges().durable;
        roots.emplace_back(Root{one.name, one.object.fingerprint, HeapOffset{offset}, one.object.bytes, one.object.count}, shape::encoded(*one.type));
    }
    core.engine().replace_roots(roots);
}

bool remove_named(HeapCore& core, std::string_view name) {
    core.check_changeable();
    const auto lock = core.lock_engine();
    return core.engine().remove_root(name);
}

TypeMatch match_types(std::string_view stored, std::string_view asked) noexcept {
    if (stored == asked) return TypeMatch::same;
    const std::size_t stored_end = std::min(stored.find(inside_mark), stored.size());
    const std::size_t asked_end = std::min(asked.find(inside_mark), asked.size());
    if (stored.substr(0, stored_end) != asked.substr(0, asked_end)) return TypeMatch::other;
    return stored_end == stored.size() || asked_end == asked.size() ? TypeMatch::unsaid : TypeMatch::inside;
}

void check_type(const HeapCore& core, std::string_view name, std::string_view stored, std::string_view asked, shape::TypeShape& type) {
    const TypeMatch match = match_types(stored, asked);
    if (match == TypeMatch::same || match == TypeMatch::unsaid || (match == TypeMatch::inside && core.type_notes().is_noted(name, asked))) return;
    const std::string object = "object '" + std::string(name) + "' was constructed as " + readable_type(stored);
    const std::string differences = [&] {
        const auto lock = core.lock_engine();
        return told(changes_of(core.engine(), stored, type));
    }();
    if (match == TypeMatch::inside)
        throw Error(
            errc::type_mismatch, core.path(),
            object + ", in which something had another size, alignment or version than in what is asked for (" +
                std::string(asked.substr(asked.find(inside_mark) + 2)) + ")" + differences +
                "; use the types it was constructed with, or, if you know that the bytes are still right, find<T>(name, taiyen::accept_layout)");
    throw Error(errc::type_mismatch, core.path(),
                object + " but is asked for as " + readable_type(asked) + differences +
                    "; use the type it was constructed with, or destroy it with that type first");
}

void settle_type(HeapCore& core, std::string_view name, std::string_view stored, std::string_view asked, shape::TypeShape& type, bool accept) {
    const TypeMatch match = match_types(stored, asked);
    if (!accept || match != TypeMatch::inside) check_type(core, name, stored, asked, type);
    if (match == TypeMatch::inside ? accept : match == TypeMatch::unsaid && asked.size() > stored.size()) core.note_type(name, asked);
}

/// The type's first time in this heap.
[[gnu::noinline]] static void compare_shape(const HeapCore& core, std::string_view name, shape::TypeShape& type, std::string_view fingerprint) {
    if (!core.type_notes().is_shape_noted(fingerprint)) {
        const auto lock = core.lock_engine();
        const std::vector<ShapeChange> changes = changes_of(core.engine(), fingerprint, type);
        if (std::ranges::any_of(changes, &ShapeChange::is_certain)) throw_contradiction(core, name, fingerprint, changes);
    }
    core.type_notes().set_shape_checked(number_of(type));
}

void check_shape(const HeapCore& core, std::string_view name, shape::TypeShape& type, std::string_view fingerprint) {
    if (!core.type_notes().is_shape_checked(type.number.load(std::memory_order_relaxed)) && !core.type_notes().are_shapes_trusted()) [[unlikely]]
        compare_shape(core, name, type, fingerprint);
}

[[gnu::noinline]] static void look_at_shape(HeapCore& core, std::string_view name, shape::TypeShape& type, std::string_view fingerprint,
                                            bool accept) {
    if (!accept) compare_shape(core, name, type, fingerprint);
    const std::string_view wanted = [&] {
        const auto lock = core.lock_engine();
        return wanted_shape(core, type, fingerprint);
    }();
    if (!wanted.empty()) core.note_shape(fingerprint, wanted);
    core.type_notes().set_shape_settled(number_of(type));
}

void settle_shape(HeapCore& core, std::string_view name, shape::TypeShape& type, std::string_view fingerprint, bool accept) {
    if (!core.type_notes().is_shape_settled(type.number.load(std::memory_order_relaxed))) [[unlikely]]
        look_at_shape(core, name, type, fingerprint, accept);
}

bool was_looked_at(const HeapCore& core, std::string_view name) { return core.type_notes().was_looked_at(name); }
void set_looked_at(const HeapCore& core, std::string_view name) { core.type_notes().set_looked_at(name); }

void throw_other_hash(const HeapCore& core, std::string_view name, std::string_view asked) {
    throw Error(errc::type_mismatch, core.path(),
                "a key of '" + std::string(name) + "' is not found by its own hash, which gives other values than those that " +
                    readable_type(asked) +
                    " was filled with; use a hash that is the same in every process, and copy the elements into a container that has one: "
                    "find<T>(name, taiyen::accept_layout) gives this one as it is");
}

void throw_name_taken(const HeapCore& core, std::string_view name) {
    throw Error(errc::name_taken, core.path(),
                "there is an object named '" + std::string(name) + "' already; use find_or_construct, or destroy it first");
}

void check_addresses_allowed(const HeapCore& core) {
    if (core.links() == Links::addresses) [[likely]]
        return;
    throw Error(
        errc::raw_pointer, core.path(),
        "the heap may be mapped anywhere, and raw pointers in it would be wrong elsewhere; use taiyen::offset::string, taiyen::offset::map, … "
        "and taiyen::offset_ptr at every level, or a heap that is not position_independent");
}

void throw_closed() { throw Error(errc::closed, "the heap is closed; open it again"); }

}  // namespace taiyen::heap
