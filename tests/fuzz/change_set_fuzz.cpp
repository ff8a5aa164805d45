// Change sets as nobody writes them: refused, or every entry lies within the bytes and the heap, in both directions, and a redo that is made of them is one. Sets that the program makes
// lead from the bytes before to the bytes after and back, and their redo does the same forward.
//
// First byte odd: the rest are the bytes of a set. Even: a program of stores.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/change/procedure.hpp>

#include "change/audit_shadow.hpp"
#include "change/procedure_calls.hpp"
#include "change/redo.hpp"
#include "fuzz/input.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::change;
using taiyen::fuzz::Input;

constexpr ByteCount capacity = 8_KiB;
using Heap = std::vector<std::byte>;

void nothing(ProcedureHeap&, std::uint64_t) {}

void look(const Entry& entry, const ChangeSetView& set) {
    const auto inside = [&](std::span<const std::byte> part) {
        TAIYEN_CHECK(part.empty() || (part.data() >= set.bytes().data() && part.data() + part.size() <= set.bytes().data() + set.bytes().size()));
    };
    inside(entry.before);
    inside(entry.after);
    inside(entry.arguments);
    inside(std::as_bytes(std::span(entry.name)));
    if (entry.kind == EntryKind::procedure) {
        TAIYEN_CHECK(!entry.name.empty());
        try {
            (void)stored_call(entry, capacity, "x");
        } catch (const Error& error) {
            TAIYEN_CHECK(error.code() == errc::corrupt || error.code() == errc::missing_procedure);
        }
        return;
    }
    TAIYEN_CHECK(entry.length <= capacity && entry.where.value <= capacity - entry.length);
    TAIYEN_CHECK(entry.before.empty() || entry.before.size() == entry.length);
    TAIYEN_CHECK(entry.after.empty() || entry.after.size() == entry.length);
    if (entry.kind == EntryKind::pages_moved) TAIYEN_CHECK(entry.source.value <= capacity - entry.length);
}

void apply(Heap& heap, const ChangeSetView& set, Direction direction) {
    set.for_each(direction, [&](const Entry& entry) {
        look(entry, set);
        if (entry.kind != EntryKind::procedure) write_entry(heap.data(), entry, direction);
    });
}

RedoView redo_of(const ChangeSetView& set, ByteBuffer& out) {
    append_redo(set, out);
    const auto redo = RedoView::checked(out.bytes(), capacity);
    TAIYEN_CHECK(redo.has_value());
    return *redo;
}

void foreign(std::span<const std::byte> given) {
    // Aligned as sets are; the end of the allocation is the end of the bytes.
    const std::vector<std::byte> bytes(given.begin(), given.end());
    const auto set = ChangeSetView::checked(bytes, capacity);
    if (!set) return;
    std::size_t forward = 0;
    std::size_t backward = 0;
    set->for_each(Direction::forward, [&](const Entry&) { ++forward; });
    set->for_each(Direction::backward, [&](const Entry&) { ++backward; });
    TAIYEN_CHECK(forward == backward);
    Heap heap(capacity);
    apply(heap, *set, Direction::forward);
    apply(heap, *set, Direction::backward);
    ByteBuffer out;
    (void)redo_of(*set, out);
}

void program(Input& input) {
    ChangeSet set;
    Heap heap(capacity, static_cast<std::byte>(input.number(1)));
    const Heap before = heap;
    Heap by_redo = heap;
    while (!input.empty() && set.size() < 1_MiB) {
        const std::uint64_t what = input.number(1);
        const HeapOffset where{input.number(2) % capacity};
        const ByteCount length = std::min<ByteCount>(1 + input.number(what % 2 == 0 ? 1 : 2), capacity - where.value);
        std::byte* const at = heap.data() + where.value;
        const Heap old(at, at + length);
        switch (what / 2 % 6) {
            case 0: {  // free pages of zeros: what they held is nobody's
                std::memset(at, 0, length);
                set.add_bytes(where, old, {at, length});
                set.add_zeroed_run(where, length);
                break;
            }
            case 1: {
                const ByteCount source = input.number(2) % (capacity - length + 1);
                std::memmove(at, heap.data() + source, length);
                set.add_pages_moved({source}, where, old);
                break;
            }
            case 2: set.add_procedure("fuzz: nothing", old, what); break;
            case 3: {
                const auto bytes = input.bytes(length);
                std::copy(bytes.begin(), bytes.end(), at);
                set.add_bytes(where, old, {at, length});
                break;
            }
            case 4: {
                std::memset(at, static_cast<int>(input.number(1)), length);
                set.add_bytes(where, old, {at, length});
                break;
            }
            default: {  // a range that stays as it is
                ChangeSet later;
                later.add_bytes(where, old, old);
                set.append(later);
            }
        }
    }
    TAIYEN_CHECK(ChangeSetView::checked(set.view().bytes(), capacity).has_value());
    ByteBuffer out;
    redo_of(set, out).for_each([&](const Entry& entry) {
        if (entry.kind != EntryKind::procedure) write_entry(by_redo.data(), entry, Direction::forward);
    });
    TAIYEN_CHECK(by_redo == heap);
    const Heap after = heap;
    apply(heap, set, Direction::backward);
    TAIYEN_CHECK(heap == before);
    apply(heap, set, Direction::forward);
    TAIYEN_CHECK(heap == after);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool registered = [] {
        register_procedure("fuzz: nothing", &nothing, &nothing);
        return true;
    }();
    (void)registered;
    Input input(data, size);
    if (input.number(1) % 2 == 1)
        foreign(input.rest());
    else
        program(input);
    return 0;
}
