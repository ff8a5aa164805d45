#include <taiyen/transfer/expand.hpp>

#include <algorithm>
#include <cstring>
#include <istream>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "store/heap_builder.hpp"
#include "transfer/codecs.hpp"
#include "transfer/heap_maker.hpp"
#include "transfer/pipeline.hpp"
#include "transfer/stream_marks.hpp"
#include "transfer/transfer.hpp"

namespace taiyen {
namespace transfer {
namespace {

namespace fs = std::filesystem;

/// The stream's bytes, counted.
class Incoming {
public:
    Incoming(const ByteSource& source, const fs::path& name) : source_(source), name_(name) {}

    /// Throws: Error{truncated}.
    void read(std::span<std::byte> bytes) {
        while (!bytes.empty()) {
            const std::size_t got = std::min(source_(bytes), bytes.size());
            if (got == 0) {
                throw Error(errc::truncated, name_, offset_, "the compressed heap ends here, before its end mark; get all of it");
            }
            offset_ += got;
            bytes = bytes.subspan(got);
        }
    }
    template <class Mark>
    Mark read_mark() {
        Mark mark;
        read(std::as_writable_bytes(std::span(&mark, 1)));
        return mark;
    }
    bool at_end() {
        std::byte one;
        return source_({&one, 1}) == 0;
    }
    std::uint64_t offset() const { return offset_; }
    const fs::path& name() const { return name_; }

private:
    const ByteSource& source_;
    const fs::path& name_;
    std::uint64_t offset_ = 0;
};

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
    if (body_checksum(stored, slot.number) != slot.head.body_checksum) {
        throw_damaged(name, slot, "a part of it does not match its checksum");
    }
    const ByteCount run_bytes = slot.head.runs * sizeof(layout::Run);
    std::byte* const content = slot.pages() + (slot.head.runs == 1 ? 0 : layout::content_bytes_max - slot.head.content_bytes);
    if (!slot.unpacker.unpack(slot.head.codec, stored, {content - run_bytes, run_bytes + slot.head.content_bytes})) {
        throw_damaged(name, slot, "a part of it does not expand to what its head says");
    }
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
        if (length == 0 || length > left || at > extent || length > extent - at) {
            throw_damaged(name, slot, "it has bytes for places that the heap doesn't have");
        }
        const std::uint64_t first = at / page_bytes;
        const std::uint64_t behind = (at + length + page_bytes - 1) / page_bytes;
        const std::uint64_t added = behind - (count != 0 ? std::max(first, next) : first);
        if (added > layout::chunk_pages_max - count) {
            throw_damaged(name, slot, "a part of it is spread over more pages than one may have");
        }
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
    if (left != 0) {
        throw_damaged(name, slot, "a part of it has more bytes than places for them");
    }
    fill_up(count * page_bytes);
}

void check_cancelled(const std::stop_token& cancel, const fs::path& name) {
    if (cancel.stop_requested()) {
        throw Error(errc::cancelled, name, "expanding was cancelled");
    }
}

layout::StreamHead read_head(Incoming& incoming) {
    const auto head = incoming.read_mark<layout::StreamHead>();
    prove(head, incoming.name());
    return head;
}

void read_chunks(Incoming& incoming, const layout::StreamHead& head, store::HeapBuilder& builder, const ExpandOptions& options,
                 const RewritePages& rewrite) {
    const unsigned threads = threads_for(options.threads);
    std::vector<UnpackedSlot> slots(threads == 1 ? 1 : std::min(threads + 1, 8U));
    std::uint64_t before = head.checksum;
    std::uint64_t next_page = 0;
    layout::StreamEnd counted{};
    run_pipeline(
        slots, threads,
        [&](UnpackedSlot& slot) {
            check_cancelled(options.cancel, incoming.name());
            slot.offset = incoming.offset();
            slot.head = incoming.read_mark<layout::ChunkHead>();
            if (slot.head.magic == layout::end_magic) {
                layout::StreamEnd end;
                std::memcpy(&end, &slot.head, sizeof end);
                counted.stream_bytes = incoming.offset();
                prove(end, before, counted, incoming.name(), slot.offset);
                return false;
            }
            prove(slot.head, before, next_page, head.extent / page_bytes, incoming.name(), slot.offset);
            before = slot.head.checksum;
            next_page = slot.head.first_page + 1;
            slot.number = counted.chunks++;
            counted.content_bytes += slot.head.content_bytes;
            incoming.read(slot.stored.first(slot.head.stored_bytes));
            return true;
        },
        [&](UnpackedSlot& slot) {
            unpack(slot, head.extent, incoming.name());
            slot.checksums.clear();
            for (const Piece& piece : slot.pieces) {
                const auto pages = slot.pages_of(piece);
                if (rewrite) rewrite(piece.first, pages);
                for (std::uint64_t i = 0; i < piece.count; ++i) {
                    slot.checksums.push_back(
                        store::page_checksum(pages.subspan(i * page_bytes, page_bytes), {piece.first.value + i}, builder.heap()));
                }
            }
        },
        [&](UnpackedSlot& slot) {
            for (const Piece& piece : slot.pieces) {
                if (piece.first < builder.next()) {
                    throw_damaged(incoming.name(), slot, "two parts of it are for the same page");
                }
                builder.write(piece.first, slot.pages_of(piece), std::span(slot.checksums).subspan(piece.at, piece.count));
            }
            if (options.progress) options.progress(offset_of(builder.next()).value, head.extent);
        });
}

}  // namespace

ByteSource source_of(const io::File& file) {
    return [&file, at = std::uint64_t{0}](std::span<std::byte> bytes) mutable {
        const std::size_t got = file.read(bytes, at);
        at += got;
        return got;
    };
}

Expanded expand_to(io::Storage& storage, const ByteSource& source, const fs::path& name, bool whole, const fs::path& path,
                   const ExpandOptions& options, const RewritePages& rewrite) {
    check_cancelled(options.cancel, name);
    Incoming incoming(source, name);
    const layout::StreamHead head = read_head(incoming);
    if (head.extent > options.expanded_bytes_max) {
        throw Error(errc::invalid_argument, name,
                    "the heap would take up to " + std::to_string(head.extent) + " bytes, and the limit is " +
                        std::to_string(options.expanded_bytes_max) + "; raise expanded_bytes_max if you trust where it comes from");
    }
    const HeapShape shape{static_cast<HeapKind>(head.kind),
                          head.base,
                          (head.incompatible_features & layout::feature_position_independent) != 0,
                          head.capacity,
                          head.extent,
                          {head.serial},
                          name};
    Expanded expanded{heap_of(head), {}};
    expanded.move = make_heap(storage, shape, path, options, [&](store::HeapBuilder& builder, const RewritePages& change) {
        const RewritePages both = [&](PageNumber first, std::span<std::byte> pages) {
            if (change) change(first, pages);
            if (rewrite) rewrite(first, pages);
        };
        read_chunks(incoming, head, builder, options, both);
        if (whole && !incoming.at_end()) {
            throw Error(errc::corrupt, name, incoming.offset(), "something follows the end of the compressed heap; get another copy of it");
        }
        check_cancelled(options.cancel, name);
    });
    return expanded;
}

Expanded expand_to(io::Storage& storage, const fs::path& file, const fs::path& path, const ExpandOptions& options) {
    const auto opened = storage.open(file, io::Access::read_only);
    return expand_to(storage, source_of(*opened), file, true, path, options);
}

}  // namespace transfer

Expanded expand(const ByteSource& source, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), source, {}, false, path, options);
}

Expanded expand(std::istream& stream, const std::filesystem::path& path, const ExpandOptions& options) {
    const auto source = [&](std::span<std::byte> bytes) {
        stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return static_cast<std::size_t>(stream.gcount());
    };
    return expand(ByteSource(source), path, options);
}

Expanded expand(std::span<const std::byte> stream, const std::filesystem::path& path, const ExpandOptions& options) {
    const auto source = [&](std::span<std::byte> bytes) {
        const std::size_t count = std::min(bytes.size(), stream.size());
        if (count != 0) std::memcpy(bytes.data(), stream.data(), count);
        stream = stream.subspan(count);
        return count;
    };
    return transfer::expand_to(io::posix_storage(), source, {}, true, path, options);
}

Expanded expand_file(const std::filesystem::path& file, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), file, path, options);
}

CompressedHeap read_compressed(const std::filesystem::path& file) {
    const auto opened = io::posix_storage().open(file, io::Access::read_only);
    const ByteSource source = transfer::source_of(*opened);
    transfer::Incoming incoming(source, file);
    return transfer::heap_of(transfer::read_head(incoming));
}

}  // namespace taiyen
