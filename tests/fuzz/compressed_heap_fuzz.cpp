// Compressed heaps as nobody makes them: expanding must end with a heap or a typed error. An error leaves nothing on the disk. What becomes a heap passes the engine's check, opens, is worked with, saved, and can be compressed
// again; and a stream that nobody changed gives the names and bytes that were compressed.
//
// An input is either a whole stream (first byte odd), or a recipe: which stream, edits of its marks, of its chunks as they are stored and of what they expand to, and which checksums are made right again afterwards; then
// what it is to become.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/codecs.hpp"
#include "fuzz/input.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/heap_access.hpp"
#include "store/heap_file.hpp"
#include "transfer/stream_marks.hpp"
#include "transfer/transfer.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::transfer;
using layout::ChunkHead;
using layout::StoredCodec;
using layout::StreamEnd;
using layout::StreamHead;
using taiyen::fuzz::Input;
using Bytes = std::vector<std::byte>;
using Named = std::map<std::string, std::string>;

const std::filesystem::path heap_path = "/disk/a.tyn";
const std::filesystem::path stream_path = "/disk/a.tyz";
constexpr ByteCount expanded_max = 16_MiB;

std::shared_ptr<store::HeapFile> open(io::Storage& disk, store::OpenMode mode, HeapKind kind) {
    PersistentOptions options;
    options.capacity = 4_MiB;
    options.address = 0x2b00'0000'0000;
    return store::HeapFile::open(disk, heap_path, mode, kind, options, store::Tuning{32768});
}

void put(store::HeapFile& heap, const std::string& name, ByteCount bytes, char first) {
    auto* const block = static_cast<char*>(heap.allocate_durable(bytes, 16));
    for (ByteCount i = 0; i < bytes; ++i) block[i] = static_cast<char>(first + static_cast<char>(i / 7 % 5));
    heap::add_named(heap, name, {block, bytes, 1, "text"});
}

Named content_of(const store::HeapFile& heap) {
    Named found;
    for (const heap::Root& root : heap.engine().roots()) {
        const ByteCount bytes = std::min<ByteCount>(root.bytes, heap.engine().extent() - std::min(heap.engine().extent(), root.object.value));
        found[root.name].assign(reinterpret_cast<const char*>(heap.ranges().durable + root.object.value), bytes);
    }
    return found;
}

Bytes stream_of(store::HeapFile& heap, Codec codec) {
    Bytes stream;
    CompressOptions options;
    options.codec = codec;
    options.threads = 1;
    compress_to(heap, [&](std::span<const std::byte> bytes) { stream.insert(stream.end(), bytes.begin(), bytes.end()); }, options);
    return stream;
}

struct Whole {
    Bytes stream;
    Named content;
};

/// `large`: of two chunks.
Whole make_whole(Codec codec, HeapKind kind, bool large) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const auto heap = open(disk, store::OpenMode::create_only, kind);
    for (unsigned i = 0; i < 12; ++i) put(*heap, "n" + std::to_string(i), 60 + 200 * i, static_cast<char>('a' + i));
    put(*heap, "run", 30'000, 'A');
    if (large) put(*heap, "large", 1'500'000, 'B');
    heap->save();
    for (const char* const gone : {"n3", "n7"}) {
        const auto root = heap->engine().find_root(gone);
        heap->engine().remove_root(gone);
        heap->engine().deallocate(reinterpret_cast<void*>(heap->ranges().durable + root->object.value));
    }
    heap->save();
    Whole whole{stream_of(*heap, codec), content_of(*heap)};
    heap->close();
    return whole;
}

const std::vector<Whole>& wholes() {
    static const std::vector<Whole> all{
        make_whole(Codec::none, HeapKind::archive, false),  make_whole(Codec::lz4, HeapKind::archive, false),
        make_whole(Codec::zstd, HeapKind::snapshot, false), make_whole(Codec::lz4, HeapKind::snapshot, true),
        make_whole(Codec::zstd, HeapKind::archive, true),
    };
    return all;
}

/// A stream, taken apart.
struct Chunk {
    ChunkHead head{};
    Bytes stored;
    Bytes body;  ///< as it expands
};
struct Parts {
    StreamHead head{};
    std::vector<Chunk> chunks;
    StreamEnd end{};
};

template <class Mark>
Mark mark_at(const Bytes& stream, std::size_t at) {
    Mark mark;
    std::memcpy(&mark, stream.data() + at, sizeof mark);
    return mark;
}

Parts parts_of(const Bytes& stream) {
    Parts parts;
    parts.head = mark_at<StreamHead>(stream, 0);
    std::size_t at = sizeof(StreamHead);
    Unpacker unpacker;
    for (; at + sizeof(StreamEnd) < stream.size();) {
        Chunk chunk;
        chunk.head = mark_at<ChunkHead>(stream, at);
        at += sizeof(ChunkHead);
        const auto stored = std::span(stream).subspan(at, chunk.head.stored_bytes);
        chunk.stored.assign(stored.begin(), stored.end());
        chunk.body.resize(chunk.head.runs * sizeof(layout::Run) + chunk.head.content_bytes);
        TAIYEN_CHECK(unpacker.unpack(static_cast<Codec>(chunk.head.codec), stored, chunk.body));
        at += stored.size();
        parts.chunks.push_back(std::move(chunk));
    }
    parts.end = mark_at<StreamEnd>(stream, at);
    return parts;
}

class Forger {
public:
    explicit Forger(Input& input) : input_(input) {}

    Bytes recipe() {
        whole_ = &wholes()[input_.number(1) % wholes().size()];
        Parts parts = parts_of(whole_->stream);
        const std::uint64_t right = input_.number(1);
        const std::uint64_t edits = input_.number(1) % 8;
        for (std::uint64_t i = 0; i < edits; ++i) edit(parts);
        Bytes stream = together(parts, right);
        for (; raw_edits_ != 0; --raw_edits_) edit_raw(stream);
        untouched_ = stream == whole_->stream;
        return stream;
    }
    Bytes given() {
        const std::uint64_t right = input_.number(1);
        const auto rest = input_.bytes(1_MiB);
        Bytes stream(rest.begin(), rest.end());
        seal_in_place(stream, right);
        return stream;
    }
    /// The content that must come out; null: the stream was changed.
    const Named* expected() const { return untouched_ ? &whole_->content : nullptr; }

private:
    /// A field of a mark.
    template <class Mark>
    void change(Mark& mark, std::initializer_list<std::pair<std::size_t, unsigned>> fields) {
        struct View {
            std::byte* at;
            std::byte* data() const { return at; }
            std::size_t size() const { return sizeof(Mark); }
        } bytes{reinterpret_cast<std::byte*>(&mark)};
        const auto field = fields.begin()[input_.number(1) % fields.size()];
        input_.change(bytes, field.first, field.second);
    }

    void edit(Parts& parts) {
        const std::uint64_t what = input_.number(1) % 16;
        if (what == 0) {
            change(parts.head, {{0, 8}, {8, 4}, {12, 4}, {16, 8}, {24, 8}, {32, 8}, {48, 8}, {56, 8}, {64, 8}, {72, 8}, {80, 8}, {120, 8}});
            return;
        }
        if (what == 1) {
            change(parts.end, {{0, 4}, {8, 8}, {16, 8}, {24, 8}, {40, 8}});
            return;
        }
        if (what == 2) {
            ++raw_edits_;
            return;
        }
        if (parts.chunks.empty()) return;
        const std::size_t index = input_.number(1) % parts.chunks.size();
        Chunk& chunk = parts.chunks[index];
        switch (what) {
            case 3:
            case 4: change(chunk.head, {{0, 4}, {4, 4}, {8, 8}, {16, 4}, {20, 4}, {24, 4}, {28, 4}, {32, 8}, {40, 8}}); break;
            case 5:
            case 6:  // a run
                if (chunk.head.runs == 0) break;
                input_.change(chunk.body, input_.number(2) % (2 * chunk.head.runs) * 4, 4);
                pack(chunk);
                break;
            case 7:
            case 8:
            case 9:  // what the pages have: most of what decides anything is metadata, which lies in front
                input_.change(chunk.body, chunk.head.runs * sizeof(layout::Run) + input_.number(3) % (1U << 17U) * 4, 8);
                pack(chunk);
                break;
            case 10: input_.change(chunk.stored, input_.number(3) % std::max<std::size_t>(1, chunk.stored.size()), 4); break;
            case 11: {  // another end
                const std::size_t bytes = input_.number(2) * 8;
                chunk.body.resize(input_.number(1) % 2 == 0 ? std::min(chunk.body.size(), bytes)
                                                            : std::min<std::size_t>(chunk.body.size() + bytes, 1_MiB));
                const std::size_t runs = std::min<std::size_t>(chunk.body.size() / sizeof(layout::Run), chunk.head.runs);
                chunk.head.runs = static_cast<std::uint32_t>(runs);
                chunk.head.content_bytes = static_cast<std::uint32_t>(chunk.body.size() - runs * sizeof(layout::Run));
                pack(chunk);
                break;
            }
            case 12: parts.chunks.erase(parts.chunks.begin() + static_cast<std::ptrdiff_t>(index)); break;
            case 13:
                if (parts.chunks.size() < 8) parts.chunks.push_back(Chunk(chunk));
                break;
            case 14: std::swap(chunk, parts.chunks.back()); break;
            default:  // stored with another codec
                codec_ = static_cast<Codec>(input_.number(1) % 3);
                pack(chunk);
                break;
        }
    }

    void pack(Chunk& chunk) const {
        Packer packer(codec_, 0);
        chunk.stored.resize(Packer::bound(codec_, chunk.body.size()));
        const ByteCount used = codec_ == Codec::none ? 0 : packer.pack(chunk.body, chunk.stored);
        if (used == 0)
            chunk.stored = chunk.body;
        else
            chunk.stored.resize(used);
        chunk.head.codec = used == 0 ? StoredCodec::none : static_cast<StoredCodec>(codec_);
        chunk.head.stored_bytes = static_cast<std::uint32_t>(chunk.stored.size());
    }

    void edit_raw(Bytes& stream) {
        const std::uint64_t what = input_.number(1);
        const std::size_t at = input_.number(3) % (stream.size() + 1);
        switch (what % 4) {
            case 0: stream.resize(at); break;
            case 1:
                stream.erase(stream.begin() + static_cast<std::ptrdiff_t>(at),
                             stream.begin() + static_cast<std::ptrdiff_t>(std::min(stream.size(), at + what)));
                break;
            case 2: stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(at), what, std::byte{0}); break;
            default: input_.change(stream, at, 8);
        }
    }

    /// `right`: which checksums and totals are made right: 1 the head's, 2 those of the chunks' heads, 4 those of the bodies, 8 the end's.
    static Bytes together(Parts& parts, std::uint64_t right) {
        Bytes stream;
        const auto put = [&](const auto& mark) {
            const auto bytes = std::as_bytes(std::span(&mark, 1));
            stream.insert(stream.end(), bytes.begin(), bytes.end());
        };
        if ((right & 1U) == 0) seal(parts.head);
        put(parts.head);
        std::uint64_t before = parts.head.checksum;
        std::uint64_t content = 0;
        for (std::size_t i = 0; i < parts.chunks.size(); ++i) {
            Chunk& chunk = parts.chunks[i];
            if ((right & 4U) == 0) chunk.head.body_checksum = body_checksum(chunk.stored, i);
            if ((right & 2U) == 0) seal(chunk.head, before);
            before = chunk.head.checksum;
            content += chunk.head.content_bytes;
            put(chunk.head);
            stream.insert(stream.end(), chunk.stored.begin(), chunk.stored.end());
        }
        if ((right & 8U) == 0) {
            parts.end.chunks = parts.chunks.size();
            parts.end.content_bytes = content;
            parts.end.stream_bytes = stream.size() + sizeof parts.end;
            seal(parts.end, before);
        }
        put(parts.end);
        return stream;
    }

    /// The same in bytes that lead from mark to mark only as far as they do.
    static void seal_in_place(Bytes& stream, std::uint64_t right) {
        if (stream.size() < sizeof(StreamHead)) return;
        const auto write = [&](std::size_t at, const auto& mark) { std::memcpy(stream.data() + at, &mark, sizeof mark); };
        auto head = mark_at<StreamHead>(stream, 0);
        if ((right & 1U) == 0) seal(head);
        write(0, head);
        std::uint64_t before = head.checksum;
        std::size_t at = sizeof head;
        for (std::uint64_t number = 0; at + sizeof(ChunkHead) <= stream.size(); ++number) {
            auto chunk = mark_at<ChunkHead>(stream, at);
            if (chunk.magic == layout::end_magic) {
                auto end = mark_at<StreamEnd>(stream, at);
                if ((right & 8U) == 0) seal(end, before);
                write(at, end);
                return;
            }
            const std::size_t body = std::min<std::size_t>(chunk.stored_bytes, stream.size() - at - sizeof chunk);
            if ((right & 4U) == 0) chunk.body_checksum = body_checksum(std::span(stream).subspan(at + sizeof chunk, body), number);
            if ((right & 2U) == 0) seal(chunk, before);
            before = chunk.checksum;
            write(at, chunk);
            at += sizeof chunk + body;
        }
    }

    Input& input_;
    const Whole* whole_ = nullptr;
    Codec codec_ = Codec::none;
    std::uint64_t raw_edits_ = 0;
    bool untouched_ = false;
};

/// Whether a heap was made. Nothing may be left of one that was refused.
bool expanded(io::SimulatedStorage& disk, const Bytes& stream, const ExpandOptions& options, ByteCount piece, bool whole, bool must) {
    const auto source = [&, rest = std::span(stream)](std::span<std::byte> bytes) mutable {
        const std::size_t count = std::min({bytes.size(), rest.size(), piece});
        std::copy_n(rest.begin(), count, bytes.begin());
        rest = rest.subspan(count);
        return count;
    };
    try {
        expand_to(disk, source, stream_path, whole, heap_path, options);
        return true;
    } catch (const Error& error) {
        const auto code = static_cast<errc>(error.code().value());
        const bool fine = code == errc::truncated || code == errc::corrupt || code == errc::not_a_heap || code == errc::unsupported_version ||
                          code == errc::invalid_argument || code == errc::no_space || code == errc::address_in_use;
        if (must || !fine) std::fprintf(stderr, "%s\n", error.what());
        TAIYEN_CHECK(!must && fine);
    } catch (const std::bad_alloc&) {
        TAIYEN_CHECK(!must);
    }
    TAIYEN_CHECK(disk.files().empty() && disk.used_bytes() == 0);
    return false;
}

/// It may lie where nothing can be mapped: then it isn't opened.
void use(io::SimulatedStorage& disk, const Named* expected, bool elsewhere) {
    std::shared_ptr<store::HeapFile> heap;
    try {
        heap = open(disk, store::OpenMode::open_only, HeapKind::archive);
    } catch (const Error& error) {
        if (!elsewhere) std::fprintf(stderr, "%s\n", error.what());
        TAIYEN_CHECK(elsewhere);
        return;
    } catch (const std::bad_alloc&) {
        return;
    }
    TAIYEN_CHECK(heap->engine().check(1).empty());
    const Named content = content_of(*heap);
    TAIYEN_CHECK(expected == nullptr || content == *expected);
    try {
        put(*heap, "more", 5000, 'z');
        heap->save();
    } catch (const Error& error) {
        TAIYEN_CHECK(expected == nullptr && error.code() == errc::already_exists);
    } catch (const std::bad_alloc&) {}
    TAIYEN_CHECK(heap->engine().check(1).empty());
    const Bytes again = stream_of(*heap, Codec::lz4);
    TAIYEN_CHECK(!again.empty());
    heap->close();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    set_report_handler([](const Incident&) noexcept {});
    Input input(bytes, size);
    Forger forger(input);
    const bool given = (input.number(1) & 1U) != 0;
    const Bytes stream = given ? forger.given() : forger.recipe();
    const std::uint64_t how = input.number(1);
    ExpandOptions options;
    options.threads = 1;
    options.expanded_bytes_max = expanded_max;
    if (how % 4 == 1) options.kind = HeapKind::archive;
    if (how % 4 == 2) options.kind = HeapKind::snapshot;
    if (how / 4 % 8 == 1) options.capacity = ByteCount{1} << (15U + how / 32 * 3);
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    disk.set_space(64_MiB);
    const Named* const expected = options.capacity == 0 ? forger.expected() : nullptr;
    const ByteCount piece = how % 3 == 0 ? 1 + how * 97 : ByteCount{1} << 30U;
    if (!expanded(disk, stream, options, piece, how % 2 == 0, expected != nullptr)) return 0;
    use(disk, expected,
        stream.size() < sizeof(StreamHead) || mark_at<StreamHead>(stream, 0).base != mark_at<StreamHead>(wholes().front().stream, 0).base);
    return 0;
}
