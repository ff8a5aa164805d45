#include <taiyen/transfer/expand.hpp>

#include <algorithm>
#include <cstring>
#include <istream>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "heap/geometry.hpp"
#include "store/heap_builder.hpp"
#include "transfer/codecs.hpp"
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
struct Slot {
    Slot()
        : stored(layout::chunk_runs_max * sizeof(layout::Run) + layout::content_bytes_max), body(stored.size()),
          pages(layout::chunk_pages_max * page_bytes) {}

    layout::ChunkHead head{};
    std::uint64_t number = 0;
    std::uint64_t offset = 0;  ///< of the head in the stream
    AlignedBuffer stored;
    AlignedBuffer body;
    AlignedBuffer pages;
    Unpacker unpacker;
    std::vector<Piece> pieces;
    std::vector<std::uint64_t> checksums;
};

[[noreturn]] void throw_damaged(const fs::path& name, const Slot& slot, const char* what) {
    throw Error(errc::corrupt, name, slot.offset, std::string("the compressed heap is damaged: ") + what + "; get another copy of it");
}

/// Stored bytes become pages. Throws: Error{corrupt}.
void unpack(Slot& slot, std::uint64_t extent, const fs::path& name) {
    const auto stored = slot.stored.first(slot.head.stored_bytes);
    if (body_checksum(stored, slot.number) != slot.head.body_checksum) {
        throw_damaged(name, slot, "a part of it does not match its checksum");
    }
    const ByteCount run_bytes = slot.head.runs * sizeof(layout::Run);
    const auto body = slot.body.first(run_bytes + slot.head.content_bytes);
    if (!slot.unpacker.unpack(slot.head.codec, stored, body)) {
        throw_damaged(name, slot, "a part of it does not expand to what its head says");
    }
    slot.pieces.clear();
    std::span<const std::byte> content = body.subspan(run_bytes);
    std::uint64_t at = slot.head.first_page * page_bytes;
    std::uint64_t count = 0;  // of pages
    std::uint64_t newest = 0;
    for (std::uint32_t i = 0; i < slot.head.runs; ++i) {
        layout::Run run;
        std::memcpy(&run, body.data() + i * sizeof run, sizeof run);
        at += run.gap * layout::unit_bytes;
        std::uint64_t left = run.length * layout::unit_bytes;
        if (left == 0 || left > content.size() || at > extent || left > extent - at) {
            throw_damaged(name, slot, "it has bytes for places that the heap doesn't have");
        }
        while (left != 0) {
            const std::uint64_t page = at / page_bytes;
            if (count == 0 || page != newest) {
                if (count == layout::chunk_pages_max) {
                    throw_damaged(name, slot, "a part of it is spread over more pages than one may have");
                }
                if (count == 0 || page != newest + 1) {
                    slot.pieces.push_back({{page}, 0, count});
                }
                ++slot.pieces.back().count;
                std::memset(slot.pages.data() + count * page_bytes, 0, page_bytes);
                ++count;
                newest = page;
            }
            const std::uint64_t part = std::min(left, page_bytes - at % page_bytes);
            std::memcpy(slot.pages.data() + (count - 1) * page_bytes + at % page_bytes, content.data(), part);
            content = content.subspan(part);
            at += part;
            left -= part;
        }
    }
    if (!content.empty()) {
        throw_damaged(name, slot, "a part of it has more bytes than places for them");
    }
}

void check_cancelled(const std::stop_token& cancel, const fs::path& name) {
    if (cancel.stop_requested()) {
        throw Error(errc::cancelled, name, "expanding was cancelled");
    }
}

/// Whether the regions that are in use begin and end where they did.
ByteCount new_capacity(const layout::StreamHead& head, ByteCount wanted, const fs::path& name) {
    const ByteCount capacity = wanted == 0 ? head.capacity : round_up(wanted, page_bytes);
    const heap::Geometry before(head.capacity);
    ByteCount least = heap::Engine::capacity_min;
    bool fits = capacity >= least && capacity <= heap::layout::capacity_max;
    const std::optional<heap::Geometry> after = fits ? std::optional<heap::Geometry>(capacity) : std::nullopt;
    for (unsigned index = 0; index < before.count() && before.region(index).first * page_bytes < head.extent; ++index) {
        least = before.region(index).end * page_bytes;
        fits = fits && index < after->count() && after->region(index).end == before.region(index).end;
    }
    if (!fits) {
        throw Error(errc::invalid_argument, name,
                    "a heap whose pages in use reach to " + std::to_string(head.extent) + " can't get the capacity " + std::to_string(wanted) +
                        " without moving blocks; what it had (" + std::to_string(head.capacity) + "), or a power of two from " +
                        std::to_string(least) + " on if that is one, can be had");
    }
    return capacity;
}

struct Paths {
    fs::path heap;
    fs::path data;
    fs::path journal;
    fs::path log;
};

Paths paths_of(const fs::path& path, const ExpandOptions& options) {
    const auto beside = [&](const char* suffix) { return fs::path(path.string() + suffix); };
    return {path, options.data_file.empty() ? beside(".data") : options.data_file, beside(".journal"),
            options.log_file.empty() ? beside(".log") : options.log_file};
}

void check_free(io::Storage& storage, const Paths& paths) {
    if (storage.find(paths.heap)) {
        throw Error(errc::already_exists, paths.heap, "something of that name exists; expand to another name");
    }
    for (const fs::path* path : {&paths.data, &paths.journal, &paths.log}) {
        if (storage.find(*path)) {
            throw Error(errc::already_exists, *path, "it would be taken for a part of the new heap; move it away or expand to another name");
        }
    }
}

/// An archive becomes a heap of another kind as it always does, by being opened as one.
void convert(io::Storage& storage, const Paths& paths, HeapKind kind, const ExpandOptions& options) {
    PersistentOptions as;
    as.data_file = options.data_file;
    as.log_file = options.log_file;
    as.log_capacity = options.log_capacity;
    try {
        store::HeapFile::open(storage, paths.heap, store::OpenMode::open_only, kind, as)->close();
    } catch (...) {
        for (const fs::path* path : {&paths.heap, &paths.data, &paths.journal, &paths.log}) {
            if (storage.remove(*path)) storage.sync_directory(io::directory_of(*path));
        }
        throw;
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
    std::vector<Slot> slots(threads == 1 ? 1 : std::min(threads + 1, 8U));
    std::uint64_t before = head.checksum;
    std::uint64_t next_page = 0;
    layout::StreamEnd counted{};
    run_pipeline(
        slots, threads,
        [&](Slot& slot) {
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
        [&](Slot& slot) {
            unpack(slot, head.extent, incoming.name());
            slot.checksums.clear();
            for (const Piece& piece : slot.pieces) {
                const auto pages = slot.pages.span().subspan(piece.at * page_bytes, piece.count * page_bytes);
                if (rewrite) rewrite(piece.first, pages);
                for (std::uint64_t i = 0; i < piece.count; ++i) {
                    slot.checksums.push_back(
                        store::page_checksum(pages.subspan(i * page_bytes, page_bytes), {piece.first.value + i}, builder.heap()));
                }
            }
        },
        [&](Slot& slot) {
            for (const Piece& piece : slot.pieces) {
                if (piece.first < builder.next()) {
                    throw_damaged(incoming.name(), slot, "two parts of it are for the same page");
                }
                builder.write(piece.first, slot.pages.span().subspan(piece.at * page_bytes, piece.count * page_bytes),
                              std::span(slot.checksums).subspan(piece.at, piece.count));
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

CompressedHeap expand_to(io::Storage& storage, const ByteSource& source, const fs::path& name, bool whole, const fs::path& path,
                         const ExpandOptions& options, const RewritePages& rewrite) {
    check_cancelled(options.cancel, name);
    Incoming incoming(source, name);
    const layout::StreamHead head = read_head(incoming);
    if (head.extent > options.expanded_bytes_max) {
        throw Error(errc::invalid_argument, name,
                    "the heap would take up to " + std::to_string(head.extent) + " bytes, and the limit is " +
                        std::to_string(options.expanded_bytes_max) + "; raise expanded_bytes_max if you trust where it comes from");
    }
    const ByteCount capacity = new_capacity(head, options.capacity, name);
    const HeapKind kind = options.kind.value_or(static_cast<HeapKind>(head.kind));
    if (kind == HeapKind::volatile_heap) {
        throw Error(errc::invalid_argument, name, "a heap's file can't be volatile; expand it as an archive, snapshot or transactional heap");
    }
    if (heap::CoreRanges::total_bytes(capacity) > store::address_end - head.base) {
        throw Error(errc::invalid_argument, name, "with that capacity the heap would end behind 128 TiB; ask for less");
    }
    const Paths paths = paths_of(path, options);
    check_free(storage, paths);
    if (kind != HeapKind::archive) {
        try {
            const vm::Reservation probe(head.base, heap::CoreRanges::total_bytes(capacity));
        } catch (const Error& error) {
            throw Error(static_cast<errc>(error.code().value()), path,
                        "the heap's address is taken: " + std::string(error.what()) +
                            "; close what is mapped there, or expand it as an archive, which becomes another kind when it is opened as one");
        }
    }
    store::HeapBuilder builder(storage, path, {random_uuid(), head.base, capacity, head.extent, {head.serial}});
    const auto rewritten = [&](PageNumber first, std::span<std::byte> pages) {
        if (first.value == 0 && capacity != head.capacity) {
            std::memcpy(pages.data() + offsetof(heap::layout::SuperBlock, capacity), &capacity, sizeof capacity);
        }
        if (rewrite) rewrite(first, pages);
    };
    read_chunks(incoming, head, builder, options, rewritten);
    if (whole && !incoming.at_end()) {
        throw Error(errc::corrupt, name, incoming.offset(), "something follows the end of the compressed heap; get another copy of it");
    }
    check_cancelled(options.cancel, name);
    builder.publish();
    if (kind != HeapKind::archive) {
        convert(storage, paths, kind, options);
    }
    return heap_of(head);
}

CompressedHeap expand_to(io::Storage& storage, const fs::path& file, const fs::path& path, const ExpandOptions& options) {
    const auto opened = storage.open(file, io::Access::read_only);
    return expand_to(storage, source_of(*opened), file, true, path, options);
}

}  // namespace transfer

CompressedHeap expand(const ByteSource& source, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), source, {}, false, path, options);
}

CompressedHeap expand(std::istream& stream, const std::filesystem::path& path, const ExpandOptions& options) {
    const auto source = [&](std::span<std::byte> bytes) {
        stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return static_cast<std::size_t>(stream.gcount());
    };
    return expand(ByteSource(source), path, options);
}

CompressedHeap expand(std::span<const std::byte> stream, const std::filesystem::path& path, const ExpandOptions& options) {
    const auto source = [&](std::span<std::byte> bytes) {
        const std::size_t count = std::min(bytes.size(), stream.size());
        if (count != 0) std::memcpy(bytes.data(), stream.data(), count);
        stream = stream.subspan(count);
        return count;
    };
    return transfer::expand_to(io::posix_storage(), source, {}, true, path, options);
}

CompressedHeap expand_file(const std::filesystem::path& file, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), file, path, options);
}

CompressedHeap read_compressed(const std::filesystem::path& file) {
    const auto opened = io::posix_storage().open(file, io::Access::read_only);
    const ByteSource source = transfer::source_of(*opened);
    transfer::Incoming incoming(source, file);
    return transfer::heap_of(transfer::read_head(incoming));
}

}  // namespace taiyen
