#include "change/redo.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "change/change_set_layout.hpp"

namespace taiyen::change {
namespace {

using namespace layout;

std::uint64_t word_at(const std::byte* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

/// Not 0 if one of the eight bytes is zero; the lowest bit set lies in the first of them. (Bits behind that one may be wrong.)
constexpr std::uint64_t zero_byte_marks(std::uint64_t word) { return (word - 0x0101'0101'0101'0101U) & ~word & 0x8080'8080'8080'8080U; }
constexpr std::size_t first_byte(std::uint64_t marks) { return static_cast<unsigned>(std::countr_zero(marks)) / 8; }

/// The first byte from `at` on that is zero, or equal to that of `before` (null: nothing is); the last few may be passed over unseen: then an index among them.
std::size_t next_of_interest(const std::byte* before, std::span<const std::byte> after, std::size_t at) {
#if defined(__SSE2__)
    const auto load = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
    for (; at + 16 <= after.size(); at += 16) {
        const __m128i bytes = load(after.data() + at);
        __m128i marks = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
        if (before != nullptr) marks = _mm_or_si128(marks, _mm_cmpeq_epi8(bytes, load(before + at)));
        if (const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(marks)); mask != 0)
            return at + static_cast<unsigned>(std::countr_zero(mask));
    }
    if (at < after.size() && after.size() >= 16) {  // the last 16 bytes, without those that were looked at
        const std::size_t last = after.size() - 16;
        const __m128i bytes = load(after.data() + last);
        __m128i marks = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
        if (before != nullptr) marks = _mm_or_si128(marks, _mm_cmpeq_epi8(bytes, load(before + last)));
        const std::uint32_t mask = static_cast<std::uint32_t>(_mm_movemask_epi8(marks)) >> (at - last);
        return mask != 0 ? at + static_cast<unsigned>(std::countr_zero(mask)) : after.size();
    }
#endif
    for (; at + 8 <= after.size(); at += 8) {
        const std::uint64_t word = word_at(after.data() + at);
        const std::uint64_t zero = zero_byte_marks(word);
        const std::uint64_t equal = before != nullptr ? zero_byte_marks(word ^ word_at(before + at)) : 0;
        if ((zero | equal) != 0) return at + std::min(zero != 0 ? first_byte(zero) : 8, equal != 0 ? first_byte(equal) : 8);
    }
    return at;
}

/// Bytes at the beginning that are zero. The same for two ranges: how far they are equal.
std::size_t zero_bytes(std::span<const std::byte> bytes) {
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8)
        if (const std::uint64_t word = word_at(bytes.data() + at); word != 0) return at + static_cast<unsigned>(std::countr_zero(word)) / 8;
    while (at < bytes.size() && bytes[at] == std::byte{0}) ++at;
    return at;
}
std::size_t equal_bytes(const std::byte* before, std::span<const std::byte> after) {
    std::size_t at = 0;
    for (; at + 8 <= after.size(); at += 8)
        if (const std::uint64_t word = word_at(before + at) ^ word_at(after.data() + at); word != 0)
            return at + static_cast<unsigned>(std::countr_zero(word)) / 8;
    while (at < after.size() && before[at] == after[at]) ++at;
    return at;
}

std::byte* put_number(std::byte* at, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7U) *at++ = static_cast<std::byte>(number | 0x80U);
    *at++ = static_cast<std::byte>(number);
    return at;
}

/// Takes numbers and bytes off the front; nothing is taken that isn't there.
class Source {
public:
    explicit Source(std::span<const std::byte> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
    bool take(std::uint64_t& number) {
        if (at_ != end_ && *at_ < std::byte{0x80}) {
            number = static_cast<std::uint64_t>(*at_++);
            return true;
        }
        return take_long(number);
    }
    bool take(std::span<const std::byte>& bytes, std::uint64_t count) {
        if (count > left()) return false;
        bytes = {at_, static_cast<std::size_t>(count)};
        at_ += count;
        return true;
    }
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

private:
    bool take_long(std::uint64_t& number) {
        number = 0;
        for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
            const auto byte = static_cast<std::uint64_t>(*at_++);
            if (shift == 63 && byte > 1) return false;
            number |= (byte & 0x7fU) << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }

    const std::byte* at_;
    const std::byte* end_;
};

bool take_entry(Source& source, std::uint64_t& end, Entry& entry) {
    std::uint64_t tag = 0;
    if (!source.take(tag)) return false;
    const std::uint64_t length = tag >> redo_kind_bits;
    const auto kind = static_cast<RedoKind>(tag & ((1U << redo_kind_bits) - 1));
    entry = Entry{};
    if (kind == RedoKind::procedure) {
        std::uint64_t name = 0;
        std::span<const std::byte> bytes;
        if (!source.take(name) || name == 0 || name > name_length_max || !source.take(bytes, name)) return false;
        entry.kind = EntryKind::procedure;
        entry.name = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        if (!source.take(entry.arguments, length) || !source.take(bytes, sizeof entry.digest)) return false;
        entry.digest = word_at(bytes.data());
        return true;
    }
    std::uint64_t where = 0;
    if (length == 0 || !source.take(where)) return false;
    entry.where = {end + unzigzag(where)};
    entry.length = length;
    end = entry.where.value + length;
    switch (kind) {
        case RedoKind::bytes: return source.take(entry.after, length);
        case RedoKind::zeros: return true;
        case RedoKind::zeroed_run: entry.kind = EntryKind::zeroed_run; return true;
        case RedoKind::pages_moved: {
            std::uint64_t distance = 0;
            if (!source.take(distance)) return false;
            entry.kind = EntryKind::pages_moved;
            entry.source = {entry.where.value + unzigzag(distance)};
            return true;
        }
        default: return false;
    }
}

}  // namespace

void RedoWriter::add(const Entry& entry) {
    switch (entry.kind) {
        case EntryKind::bytes:
            if (entry.after.empty())
                put(RedoKind::zeros, entry.where.value, entry.length, {});
            else
                add_bytes(entry);
            break;
        case EntryKind::zeroed_run: put(RedoKind::zeroed_run, entry.where.value, entry.length, {}); break;
        case EntryKind::pages_moved:
            put(RedoKind::pages_moved, entry.where.value, entry.length, {});
            put(zigzag(entry.source.value - entry.where.value));
            break;
        case EntryKind::procedure:
            put(entry.arguments.size() << redo_kind_bits | static_cast<std::uint64_t>(RedoKind::procedure));
            put(entry.name.size());
            out_.append(std::as_bytes(std::span(entry.name)));
            out_.append(entry.arguments);
            out_.append(std::as_bytes(std::span(&entry.digest, 1)));
            break;
    }
}

/// What changed of the entry: its equal bytes are skipped, its runs of zeros have no bytes.
void RedoWriter::add_bytes(const Entry& entry) {
    const std::span<const std::byte> after = entry.after;
    const std::byte* const before = entry.before.empty() ? nullptr : entry.before.data();
    std::size_t from = 0;  // of the bytes that are not stored yet
    const auto put_literal = [&](std::size_t to) {
        if (to != from) put(RedoKind::bytes, entry.where.value + from, to - from, after.subspan(from, to - from));
    };
    for (std::size_t at = 0; at < after.size();) {
        at = next_of_interest(before, after, at);
        if (at == after.size()) break;
        const std::size_t equal = before != nullptr ? equal_bytes(before + at, after.subspan(at)) : zero_bytes(after.subspan(at));
        // At the entry's ends there is no second piece that would need a beginning of its own.
        if (equal >= equal_run_min || (equal > 0 && (at + equal == after.size() || at == from))) {
            put_literal(at);
            at += equal;
            from = at;
            continue;
        }
        if (before != nullptr && after[at] == std::byte{0}) {
            if (const std::size_t zeros = zero_bytes(after.subspan(at)); zeros >= zero_run_min) {
                put_literal(at);
                put(RedoKind::zeros, entry.where.value + at, zeros, {});
                at += zeros;
                from = at;
                continue;
            }
        }
        at += std::max<std::size_t>(equal, 1);
    }
    put_literal(after.size());
}

void RedoWriter::put(RedoKind kind, std::uint64_t where, std::uint64_t length, std::span<const std::byte> bytes) {
    const std::size_t room = 2 * varint_bytes_max + bytes.size();
    std::byte* const first = out_.extend(room);
    std::byte* at = put_number(first, length << redo_kind_bits | static_cast<std::uint64_t>(kind));
    at = put_number(at, zigzag(where - end_));
    at = std::copy(bytes.begin(), bytes.end(), at);
    out_.truncate(out_.size() - room + static_cast<std::size_t>(at - first));
    end_ = where + length;
}

void RedoWriter::put(std::uint64_t number) {
    std::byte* const first = out_.extend(varint_bytes_max);
    out_.truncate(out_.size() - varint_bytes_max + static_cast<std::size_t>(put_number(first, number) - first));
}

void append_redo(const ChangeSetView& changes, ByteBuffer& out) {
    const ByteCount size = out.size();
    try {
        RedoWriter writer(out);
        changes.for_each(Direction::forward, [&](const Entry& entry) { writer.add(entry); });
    } catch (...) {
        out.truncate(size);
        throw;
    }
}

std::optional<RedoView> RedoView::checked(std::span<const std::byte> bytes, ByteCount capacity) {
    if (!check_and_visit(bytes, capacity, [](const Entry&) {})) return std::nullopt;
    return RedoView(bytes);
}

bool RedoView::next_of_any_kind(Cursor& cursor, Entry& entry) {
    Source source({cursor.at, cursor.stop});
    cursor.failed = !take_entry(source, cursor.end, entry);
    cursor.at = cursor.stop - source.left();
    return !cursor.failed;
}

}  // namespace taiyen::change
