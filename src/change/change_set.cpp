#include "change/change_set.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>

#include "change/change_set_layout.hpp"

namespace taiyen::change {
namespace {

using namespace layout;

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
}

EntryHead read_head(std::span<const std::byte> bytes, std::size_t at) { return {word_at(bytes, at), word_at(bytes, at + 8)}; }

EntryKind kind_in(const EntryHead& head) { return static_cast<EntryKind>(head.where_and_kind >> kind_shift & 0xffU); }

bool is_zero(std::span<const std::byte> bytes) {
    // Short ranges rarely are, and gain nothing.
    return bytes.size() >= 32 && bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

/// Bytes of the payload before padding; nothing: the head can't be right. `room` bounds what the head may claim.
std::optional<std::uint64_t> payload_bytes(const EntryHead& head, std::span<const std::byte> payload) {
    const std::uint64_t room = payload.size();
    if (head.length > room && kind_in(head) != EntryKind::zeroed_run && (head.where_and_kind & (before_zero | after_zero)) == 0) return std::nullopt;
    const std::uint64_t before = (head.where_and_kind & before_zero) != 0 ? 0 : head.length;
    const std::uint64_t after = (head.where_and_kind & after_zero) != 0 ? 0 : head.length;
    switch (kind_in(head)) {
        case EntryKind::bytes: return before + after;
        case EntryKind::zeroed_run: return 0;
        case EntryKind::pages_moved: return 8 + before;
        case EntryKind::procedure: {
            if (room < sizeof(ProcedureHead)) return std::nullopt;
            const std::uint64_t name = word_at(payload, offsetof(ProcedureHead, name_length));
            if (name == 0 || name > name_length_max) return std::nullopt;
            return sizeof(ProcedureHead) + name + head.length;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<ChangeSetView> ChangeSetView::checked(std::span<const std::byte> bytes, ByteCount capacity) {
    if (bytes.size() % 8 != 0) return std::nullopt;
    const auto inside = [capacity](std::uint64_t where, std::uint64_t length) { return where <= capacity && length <= capacity - where; };
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t room = bytes.size() - at;
        if (room < sizeof(EntryHead) + trailer_bytes) return std::nullopt;
        const EntryHead head = read_head(bytes, at);
        if ((head.where_and_kind >> 58U) != 0 || head.length > (std::uint64_t{1} << 47U)) return std::nullopt;
        const auto payload = bytes.subspan(at + sizeof(EntryHead), room - sizeof(EntryHead) - trailer_bytes);
        const auto wanted = payload_bytes(head, payload);
        if (!wanted || round_up(*wanted, 8) > payload.size()) return std::nullopt;
        const std::uint64_t size = sizeof(EntryHead) + round_up(*wanted, 8) + trailer_bytes;
        if (word_at(bytes, at + size - trailer_bytes) != size) return std::nullopt;
        const EntryKind kind = kind_in(head);
        const std::uint64_t where = head.where_and_kind & where_mask;
        if (kind != EntryKind::procedure && (head.length == 0 || !inside(where, head.length))) return std::nullopt;
        if (kind == EntryKind::pages_moved && !inside(word_at(payload, 0), head.length)) return std::nullopt;
        at += size;
    }
    return ChangeSetView(bytes);
}

std::size_t ChangeSetView::size_before(std::size_t end) const { return word_at(bytes_, end - trailer_bytes); }

std::size_t ChangeSetView::other_payload_bytes(std::size_t at) const {
    return *payload_bytes(read_head(bytes_, at),
                          bytes_.subspan(at + sizeof(EntryHead)));  // NOLINT(bugprone-unchecked-optional-access): a set is proven first
}

Entry ChangeSetView::other_entry_at(std::size_t at) const {
    const EntryHead head = read_head(bytes_, at);
    const auto payload = bytes_.subspan(at + sizeof(EntryHead));
    Entry entry;
    entry.kind = kind_of(head);
    entry.where = {head.where_and_kind & where_mask};
    entry.length = head.length;
    switch (entry.kind) {
        case EntryKind::bytes:
        case EntryKind::zeroed_run: break;
        case EntryKind::pages_moved:
            entry.source = {word_at(payload, 0)};
            entry.before = payload.subspan(8, before_bytes(head));
            break;
        case EntryKind::procedure: {
            const std::size_t name = word_at(payload, offsetof(ProcedureHead, name_length));
            entry.digest = word_at(payload, offsetof(ProcedureHead, digest));
            entry.name = {reinterpret_cast<const char*>(payload.data() + sizeof(ProcedureHead)), name};
            entry.arguments = payload.subspan(sizeof(ProcedureHead) + name, head.length);
            entry.where = {};
            entry.length = 0;
            break;
        }
    }
    return entry;
}

std::byte* ChangeSet::append_entry(std::uint64_t kind_and_flags, std::uint64_t where, std::uint64_t length, ByteCount payload) {
    TAIYEN_CHECK(where <= where_mask);
    const std::uint64_t size = sizeof(EntryHead) + round_up(payload, 8) + trailer_bytes;
    std::byte* const entry = bytes_.extend(size);
    const EntryHead head{kind_and_flags | where, length};
    std::memcpy(entry, &head, sizeof head);
    std::memset(entry + (size - trailer_bytes - 8), 0, payload == 0 ? 0 : 8);  // the padding
    std::memcpy(entry + (size - trailer_bytes), &size, sizeof size);
    return entry + sizeof head;
}

void ChangeSet::add_bytes(HeapOffset where, std::span<const std::byte> before, std::span<const std::byte> after) {
    TAIYEN_CHECK(before.size() == after.size());
    if (before.empty()) return;
    std::uint64_t flags = std::uint64_t{static_cast<std::uint8_t>(EntryKind::bytes)} << kind_shift;
    const bool from_zero = is_zero(before);
    const bool to_zero = is_zero(after);
    if (from_zero) flags |= before_zero;
    if (to_zero) flags |= after_zero;
    std::byte* payload = append_entry(flags, where.value, before.size(), (from_zero ? 0 : before.size()) + (to_zero ? 0 : after.size()));
    if (!from_zero) payload = std::copy(before.begin(), before.end(), payload);
    if (!to_zero) std::copy(after.begin(), after.end(), payload);
}

void ChangeSet::add_zeroed_run(HeapOffset where, ByteCount length) {
    if (length == 0) return;
    append_entry(std::uint64_t{static_cast<std::uint8_t>(EntryKind::zeroed_run)} << kind_shift, where.value, length, 0);
}

void ChangeSet::add_pages_moved(HeapOffset source, HeapOffset target, std::span<const std::byte> before) {
    if (before.empty()) return;
    std::uint64_t flags = std::uint64_t{static_cast<std::uint8_t>(EntryKind::pages_moved)} << kind_shift;
    const bool from_zero = is_zero(before);
    if (from_zero) flags |= before_zero;
    std::byte* payload = append_entry(flags, target.value, before.size(), 8 + (from_zero ? 0 : before.size()));
    std::memcpy(payload, &source.value, 8);
    if (!from_zero) std::copy(before.begin(), before.end(), payload + 8);
}

void ChangeSet::add_procedure(std::string_view name, std::span<const std::byte> arguments, std::uint64_t digest) {
    TAIYEN_CHECK(!name.empty() && name.size() <= name_length_max);
    const ProcedureHead head{digest, name.size()};
    std::byte* payload = append_entry(std::uint64_t{static_cast<std::uint8_t>(EntryKind::procedure)} << kind_shift, 0, arguments.size(),
                                      sizeof head + name.size() + arguments.size());
    std::memcpy(payload, &head, sizeof head);
    std::memcpy(payload + sizeof head, name.data(), name.size());
    std::copy(arguments.begin(), arguments.end(), payload + sizeof head + name.size());
}

void ChangeSet::append(const ChangeSetView& later) { bytes_.append(later.bytes()); }

}  // namespace taiyen::change
