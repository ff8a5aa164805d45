#include "change/audit_shadow.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <taiyen/base/error.hpp>

namespace taiyen::change {
namespace {

void put(std::byte* target, std::span<const std::byte> bytes, ByteCount length) noexcept {
    if (bytes.empty())
        std::memset(target, 0, length);
    else
        std::memcpy(target, bytes.data(), bytes.size());
}

bool is_zero_page(const std::byte* page) { return page[0] == std::byte{0} && std::memcmp(page, page + 1, page_bytes - 1) == 0; }

}  // namespace

void write_entry(std::byte* target, const Entry& entry, Direction direction) noexcept {
    const bool forward = direction == Direction::forward;
    switch (entry.kind) {
        case EntryKind::bytes: put(target + entry.where.value, forward ? entry.after : entry.before, entry.length); break;
        case EntryKind::zeroed_run:
            if (forward) put(target + entry.where.value, {}, entry.length);
            break;
        case EntryKind::pages_moved:
            if (forward)
                std::memmove(target + entry.where.value, target + entry.source.value, entry.length);
            else
                put(target + entry.where.value, entry.before, entry.length);
            break;
        case EntryKind::procedure: break;
    }
}

void write_changes(std::byte* target, const ChangeSetView& changes, Direction direction) noexcept {
    changes.for_each(direction, [&](const Entry& entry) { write_entry(target, entry, direction); });
}

AuditShadow::AuditShadow(const heap::HeapCore& core, ByteCount mapped)
    : core_(core), copy_(round_up(core.ranges().durable_bytes, page_bytes)), mapped_(mapped) {
    core.uncover({0}, mapped);
    copy_.grow(mapped);
    const auto* const span = reinterpret_cast<const std::byte*>(core.ranges().durable);
    for (ByteCount at = 0; at < mapped; at += page_bytes)
        if (!is_zero_page(span + at)) std::memcpy(copy_.data() + at, span + at, page_bytes);
}

void AuditShadow::follow(const ChangeSetView& changes, Direction direction) noexcept { write_changes(copy_.data(), changes, direction); }

void AuditShadow::extended(ByteCount to) {
    copy_.grow(to);
    mapped_ = std::max(mapped_, to);
}

std::optional<HeapOffset> AuditShadow::first_difference() const {
    const auto* const span = reinterpret_cast<const std::byte*>(core_.ranges().durable);
    std::vector<vm::PageRun> written;
    tracker_.written_pages(span, mapped_, written);
    for (const vm::PageRun& run : written) {
        const std::byte* const now = span + run.first * page_bytes;
        const std::byte* const expected = copy_.data() + run.first * page_bytes;
        const ByteCount length = run.count * page_bytes;
        if (std::memcmp(now, expected, length) == 0) continue;
        return HeapOffset{static_cast<std::uint64_t>(std::mismatch(now, now + length, expected).first - span)};
    }
    return std::nullopt;
}

void AuditShadow::prove() const {
    const auto where = first_difference();
    if (!where) return;
    std::string text = "byte " + std::to_string(where->value) + " of the heap was written without capture";
    const void* const address = reinterpret_cast<const std::byte*>(core_.ranges().durable) + where->value;
    if (const auto block = core_.engine().find_block(address))
        text += ", in the block of " + std::to_string(block->usable_bytes) + " bytes at " + std::to_string(block->offset.value);
    else
        text += ", in no live block";
    throw Error(errc::uncaptured_store, core_.path(), where->value, text + "; write there inside a scope, with instrumented code, or after touch()");
}

}  // namespace taiyen::change
