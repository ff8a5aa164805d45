#include "transfer/stream_reader.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/codecs.hpp"
#include "transfer/pipeline.hpp"
#include "transfer/stream_marks.hpp"

namespace taiyen::transfer {
namespace {

namespace fs = std::filesystem;

/// Pages [first, first + count), which lie at `at` among a chunk's.
struct Piece {
    PageNumber first;
    std::uint64_t count;
    std::uint64_t at;
};

/// A chunk on its way, with memory that is used again.
struct UnpackedSlot {
    /// Pages begin here in `expanded`; in front of them is room for the runs of a body whose content is where it belongs as soon as it is expanded.
    static constexpr ByteCount pages_at = layout::chunk_runs_max * sizeof(layout::Run);

    UnpackedSlot() : stored(pages_at + layout::content_bytes_max), expanded(pages_at + layout::chunk_pages_max * page_bytes) {
        runs.reserve(layout::chunk_runs_max);
    }
    std::byte* pages() const { return expanded.data() + pages_at; }
    std::span<std::byte> pages_of(const Piece& piece) const { return {pages() + piece.at * page_bytes, piece.count * page_bytes}; }

    layout::ChunkHead head{};
    std::uint64_t number = 0;
    std::uint64_t offset = 0;  ///< of the head in the stream
    AlignedBuffer stored;
    AlignedBuffer expanded;
    Unpacker unpacker;
    std::vector<layout::Run> runs;
    std::vector<Piece> pieces;
    std::vector<std::uint64_t> checksums;
};

[[noreturn]] void throw_damaged(const fs::path& name, const UnpackedSlot& slot, const char* what) {
    throw Error(errc::corrupt, name, slot.offset, std::string("the compressed heap is damaged: ") + what + "; get another copy of it");
}

/// The codec's part: the runs, and where their content begins.
///
/// Of one run it lies where pages begin, which mostly is where it belongs. Of several it ends where the room for pages does: laid out from the front, no byte of it comes to lie behind where it was.
std::byte* expand_body(UnpackedSlot& slot, const fs::path& name) {
    const auto stored = slot.stored.first(slot.head.stored_bytes);
    if (body_checksum(stored, slot.number) != slot.head.body_checksum) throw_damaged(name, slot, "a part of it does not match its checksum");
    const ByteCount run_bytes = slot.head.runs * sizeof(layout::Run);
    std::byte* const content = slot.pages() + (slot.head.runs == 1 ? 0 : layout::content_bytes_max - slot.head.content_bytes);
    if (!slot.unpacker.unpack(static_cast<Codec>(slot.head.codec), stored, {content - run_bytes, run_bytes + slot.head.content_bytes}))
        throw_damaged(name, slot, "a part of it does not expand to what its head says");
    slot.runs.resize(slot.head.runs);
    std::memcpy(slot.runs.data(), content - run_bytes, run_bytes);
    return content;
}

/// Stored bytes become pages. Throws: Error{corrupt}.
void unpack(UnpackedSlot& slot, std::uint64_t extent, const fs::path& name) {
    const std::byte* content = expand_body(slot, name);
    std::uint64_t left = slot.head.content_bytes;
    std::byte* const pages = slot.pages();
    std::uint64_t at = slot.head.first_page * page_bytes;
    std::uint64_t next = slot.head.first_page;  // the page behind the newest one
    std::uint64_t count = 0;                    // of pages
    ByteCount filled = 0;                       // of their bytes
    const auto fill_up = [&](ByteCount to) {
        std::memset(pages + filled, 0, to - filled);
        filled = to;
    };
    slot.pieces.clear();
    for (const layout::Run& run : slot.runs) {
        at += run.gap * layout::unit_bytes;
        const std::uint64_t length = run.length * layout::unit_bytes;
        if (length == 0 || length > left || at > extent || length > extent - at)
            throw_damaged(name, slot, "it has bytes for places that the heap doesn't have");
        const std::uint64_t first = at / page_bytes;
        const std::uint64_t behind = (at + length + page_bytes - 1) / page_bytes;
        const std::uint64_t added = behind - (count != 0 ? std::max(first, next) : first);
        if (added > layout::chunk_pages_max - count) throw_damaged(name, slot, "a part of it is spread over more pages than one may have");
        if (count == 0 || first > next) {
            fill_up(count * page_bytes);
            slot.pieces.push_back({{first}, 0, count});
        }
        slot.pieces.back().count += added;
        count += added;
        next = behind;
        const ByteCount to = (count - (behind - first)) * page_bytes + at % page_bytes;
        if (slot.runs.size() == 1) {
            std::memmove(pages + to, content, length);  // nowhere, if it begins with its page
            fill_up(to);
        } else {
            fill_up(to);
            std::memmove(pages + to, content, length);
        }
        filled = to + length;
        content += length;
        left -= length;
        at += length;
    }
    if (left != 0) throw_damaged(name, slot, "a part of it has more bytes than places for them");
    fill_up(count * page_bytes);
}

void check_cancelled(const std::stop_token& cancel, const fs::path& name) {
    if (cancel.stop_requested()) throw Error(errc::cancelled, name, "expanding was cancelled");
}

}  // namespace

void Incoming::read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t got = std::min(source_(bytes), bytes.size());
        if (got == 0) throw Error(errc::truncated, name_, offset_, "the compressed heap ends here, before its end mark; get all of it");
        offset_ += got;
        bytes = bytes.subspan(got);
    }
}

StreamReader::StreamReader(const ByteSource& source, const fs::path& name, const ReadOptions& options) : incoming_(source, name), options_(options) {
    check_cancelled(options.cancel, name);
    head_ = incoming_.read_mark<layout::StreamHead>();
    prove(head_, name);
    if (head_.extent > options.expanded_bytes_max) {
        throw Error(errc::invalid_argument, name,
                    "the heap would take up to " + std::to_string(head_.extent) + " bytes, and the limit is " +
                        std::to_string(options.expanded_bytes_max) + "; raise expanded_bytes_max if you trust where it comes from");
    }
}

CompressedHeap StreamReader::heap() const { return heap_of(head_); }

HeapShape StreamReader::shape() const {
    return {static_cast<HeapKind>(head_.kind),
            head_.base,
            (head_.incompatible_features & layout::feature_position_independent) != 0,
            head_.capacity,
            head_.extent,
            {head_.serial},
            incoming_.name(),
            (head_.compatible_features & layout::compatible_volatile) != 0};
}

void StreamReader::read(PageTarget& target, const RewritePages& rewrite) {
    read_chunks(target, rewrite);
    if (options_.whole && !incoming_.at_end())
        throw Error(errc::corrupt, incoming_.name(), incoming_.offset(), "something follows the end of the compressed heap; get another copy of it");
    check_cancelled(options_.cancel, incoming_.name());
}

void StreamReader::read_chunks(PageTarget& target, const RewritePages& rewrite) {
    const unsigned threads = threads_for(options_.threads);
    std::vector<UnpackedSlot> slots(threads == 1 ? 1 : std::min(2 * threads, 8U));
    std::uint64_t before = head_.checksum;
    std::uint64_t next_page = 0;
    layout::StreamEnd counted{};
    run_pipeline(
        slots, threads,
        [&](UnpackedSlot& slot) {
            check_cancelled(options_.cancel, incoming_.name());
            slot.offset = incoming_.offset();
            slot.head = incoming_.read_mark<layout::ChunkHead>();
            if (slot.head.magic == layout::end_magic) {
                layout::StreamEnd end;
                std::memcpy(&end, &slot.head, sizeof end);
                counted.stream_bytes = incoming_.offset();
                prove(end, before, counted, incoming_.name(), slot.offset);
                return false;
            }
            prove(slot.head, before, next_page, head_.extent / page_bytes, incoming_.name(), slot.offset);
            before = slot.head.checksum;
            next_page = slot.head.first_page + 1;
            slot.number = counted.chunks++;
            counted.content_bytes += slot.head.content_bytes;
            incoming_.read(slot.stored.first(slot.head.stored_bytes));
            return true;
        },
        [&](UnpackedSlot& slot) {
            unpack(slot, head_.extent, incoming_.name());
            slot.checksums.clear();
            for (const Piece& piece : slot.pieces) {
                const auto pages = slot.pages_of(piece);
                if (rewrite) rewrite(piece.first, pages);
                for (std::uint64_t i = 0; i < piece.count; ++i)
                    slot.checksums.push_back(target.checksum_of({piece.first.value + i}, pages.subspan(i * page_bytes, page_bytes)));
            }
        },
        [&](UnpackedSlot& slot) {
            for (const Piece& piece : slot.pieces) {
                if (piece.first < target.next()) throw_damaged(incoming_.name(), slot, "two parts of it are for the same page");
                target.write(piece.first, slot.pages_of(piece), std::span(slot.checksums).subspan(piece.at, piece.count));
            }
            if (options_.progress) options_.progress(offset_of(target.next()).value, head_.extent);
        });
}

}  // namespace taiyen::transfer
