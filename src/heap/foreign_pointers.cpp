#include "heap/foreign_pointers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "heap/scratch.hpp"

namespace taiyen::heap {
namespace {

std::string in_hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::uint64_t word_at(const std::byte* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

}  // namespace

void ForeignPointerScan::Range::include(std::uintptr_t first, std::uintptr_t last) {
    if (first >= last) return;
    if (bytes == 0) {
        begin = first;
        bytes = last - first;
        return;
    }
    const std::uintptr_t end = std::max(begin + bytes, last);
    begin = std::min(begin, first);
    bytes = end - begin;
}

ForeignPointerScan::ForeignPointerScan(const HeapCore& core) : core_(core) {
    const auto include = [&](std::uintptr_t first, std::uintptr_t last) { (first < core.ranges().durable ? below_ : above_).include(first, last); };
    const auto [first, last] = scratch_used();
    include(first, last);
    if (open_core_count() == 1) return;  // this one alone, as in most programs: no lock, no list
    visit_open_cores([&](const HeapCore& other) {
        if (&other != &core) include(other.ranges().durable, other.ranges().durable + other.durable_extent());
        return true;
    });
}

std::optional<ForeignPointer> ForeignPointerScan::find(HeapOffset offset, ByteCount length) const {
    // Groups of eight words without a branch between them; a group with a candidate is looked at word by word.
    constexpr ByteCount group = 8 * sizeof(std::uint64_t);
    const std::byte* const begin = reinterpret_cast<const std::byte*>(core_.ranges().durable) + offset.value;
    const auto exact = [&](ByteCount from, ByteCount to) -> std::optional<ForeignPointer> {
        for (ByteCount at = from; at < to; at += sizeof(std::uint64_t)) {
            const std::uint64_t value = word_at(begin + at);
            const HeapOffset where{offset.value + at};
            if ((below_.holds(value) || above_.holds(value)) && is_foreign(where, value)) return ForeignPointer{where, value};
        }
        return std::nullopt;
    };
    const auto sweep = [&](auto suspicious) -> std::optional<ForeignPointer> {
        ByteCount at = 0;
        for (; at + group <= length; at += group) {
            unsigned hits = 0;
            for (ByteCount word = 0; word < group; word += sizeof(std::uint64_t))
                hits |= static_cast<unsigned>(suspicious(word_at(begin + at + word)));
            if (hits != 0) [[unlikely]] {
                if (auto found = exact(at, at + group)) return found;
            }
        }
        return exact(at, length);
    };
    const Range below = below_;
    const Range above = above_;
    if (is_idle()) return std::nullopt;
    if (below.bytes == 0) return sweep([above](std::uint64_t value) { return above.holds(value); });
    if (above.bytes == 0) return sweep([below](std::uint64_t value) { return below.holds(value); });
    return sweep(
        [below, above](std::uint64_t value) { return static_cast<unsigned>(below.holds(value)) | static_cast<unsigned>(above.holds(value)); });
}

bool ForeignPointerScan::is_foreign(HeapOffset where, std::uintptr_t value) const {
    const auto* const target = reinterpret_cast<const void*>(value);
    bool points_out = is_scratch_block_start(target);
    // Without the lock: most of what passes the range test lies between the heaps.
    if (!points_out && slot_table[value >> slot_shift].load(std::memory_order_relaxed) == nullptr) return false;
    if (!points_out) visit_open_cores([&](const HeapCore& heap) {
        if (!in_durable(heap, target)) return true;
        points_out = &heap != &core_ && heap.is_complete() && heap.begins_block(target);
        return false;
    });
    return points_out && core_.engine().find_block(reinterpret_cast<const void*>(core_.ranges().durable + where.value)).has_value();
}

void ForeignPointerScan::refuse(const ForeignPointer& found) const {
    const auto* const word = reinterpret_cast<const void*>(core_.ranges().durable + found.where.value);
    std::string text = "a pointer to memory outside the heap (" + in_hexadecimal(found.target) + ", ";
    const auto* const target = reinterpret_cast<const void*>(found.target);
    std::string owner = "volatile memory of a container outside";
    // What the program stored may be no pointer at all: two numbers side by side can look like one.
    std::string remedy = "destroy the containers outside before saving";
    visit_open_cores([&](const HeapCore& heap) {
        if (!in_durable(heap, target)) return true;
        owner = !heap.is_complete()   ? "in a heap that is being opened"
                : heap.path().empty() ? "in a volatile heap"
                                      : "in the heap " + heap.path().string();
        remedy = "close that heap before saving, or move it to another address (`taiyen rebase`)";
        return false;
    });
    text += owner + ")";
    if (const auto block = core_.engine().find_block(word)) {
        text += " lies in the block of " + std::to_string(block->usable_bytes) + " bytes at offset " + in_hexadecimal(block->offset.value);
        for (const Root& root : core_.engine().roots()) {
            if (root.object == block->offset) text += ", the object '" + root.name + "'";
        }
    }
    text += "; a container was moved there past its allocator: copy it instead; if it is a number that only looks like an address, " + remedy;
    throw Error(errc::foreign_pointer, core_.path(), found.where.value, text);
}

}  // namespace taiyen::heap
