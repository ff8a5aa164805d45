// Whatever the bytes of a compressed heap are turned into: a typed error and nothing left behind, since a checksum covers each of them.
// A run takes a sample; TAIYEN_CORRUPTIONS=100000 asks for so many (`ctest -C campaign -L campaign`).

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <random>

#include "base/checksum.hpp"
#include "io/disks/simulated_storage.hpp"
#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "transfer/stream_marks.hpp"
#include "transfer/transfer.hpp"

namespace taiyen::transfer {
namespace {

using Stream = std::vector<std::byte>;
namespace fs = std::filesystem;

const fs::path target = "/disk/new.tyn";

struct SmallDisk {
    io::SimulatedStorage storage;
    SmallDisk() { storage.add_directory("/disk"); }
    operator io::SimulatedStorage&() { return storage; }
};

std::shared_ptr<store::HeapFile> open(io::Storage& disk, const fs::path& path, store::OpenMode mode, HeapKind kind = HeapKind::archive,
                                      ByteCount capacity = 1_MiB) {
    PersistentOptions options = probe::small_heap(capacity);
    options.log_capacity = 64_KiB;
    return store::HeapFile::open(disk, path, mode, kind, options, store::Tuning{32768});
}

Stream stream_of(store::HeapFile& heap, Codec codec) {
    Stream stream;
    CompressOptions options;
    options.codec = codec;
    options.threads = 1;
    compress_to(heap, [&](std::span<const std::byte> bytes) { stream.insert(stream.end(), bytes.begin(), bytes.end()); }, options);
    return stream;
}

/// `large`: bytes that take several chunks.
Stream small_stream(Codec codec, HeapKind kind = HeapKind::archive, bool large = false) {
    SmallDisk disk;
    const ByteCount capacity = large ? 8_MiB : 1_MiB;
    auto heap = HeapAccess::make<ArchiveHeap>(open(disk.storage, "/disk/a.tyn", store::OpenMode::create_only, HeapKind::archive, capacity));
    for (unsigned i = 0; i < 12; ++i) probe::put(heap, "n" + std::to_string(i), std::string(60 + 200 * i, static_cast<char>('a' + i)));
    heap.snapshot();
    heap.deallocate(probe::find(heap, "n3"));
    heap::remove_named(*heap.core(), "n3");
    if (large) {
        std::mt19937_64 random(3);
        std::string text(2'500'000, 'x');
        for (char& letter : text) letter = static_cast<char>('a' + random() % 13);
        probe::put(heap, "large", text);
    }
    heap.snapshot();
    if (kind == HeapKind::archive) return stream_of(HeapAccess::file(heap), codec);
    heap.close();
    open(disk.storage, "/disk/a.tyn", store::OpenMode::open_only, kind)->close();
    return stream_of(*open(disk.storage, "/disk/a.tyn", store::OpenMode::read_only), codec);
}

constexpr Codec codecs[] = {Codec::none, Codec::lz4, Codec::zstd};
constexpr HeapKind kinds[] = {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional};

std::uint64_t corruptions() {
    const char* const asked = std::getenv("TAIYEN_CORRUPTIONS");
    return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 2000;
}

CompressedHeap expand_here(io::Storage& disk, const Stream& stream, const ExpandOptions& options = {}) {
    const auto source = [rest = std::span(stream)](std::span<std::byte> bytes) mutable {
        const std::size_t count = std::min(bytes.size(), rest.size());
        std::copy_n(rest.begin(), count, bytes.begin());
        rest = rest.subspan(count);
        return count;
    };
    ExpandOptions alone = options;
    alone.threads = 1;
    return expand_to(disk, source, "/disk/a.tyz", true, target, alone);
}

/// The code that it is refused with; nothing may be left.
std::optional<errc> refusal(io::SimulatedStorage& disk, const Stream& stream, const ExpandOptions& options = {}) {
    const auto code = probe::code_of([&] { expand_here(disk, stream, options); });
    if (code) BOOST_TEST(disk.files().empty());
    return code;
}

template <class Mark>
Mark mark_at(const Stream& stream, std::size_t at) {
    Mark mark;
    std::memcpy(&mark, stream.data() + at, sizeof mark);
    return mark;
}

/// Streams with right checksums and wrong contents.
struct Forgery {
    layout::StreamHead head{};
    std::uint64_t chunks = 0;
    std::uint64_t content = 0;
    Stream bytes;
    std::uint64_t before = 0;

    explicit Forgery(const layout::StreamHead& like) : head(like) {
        seal(head);
        put(head);
        before = head.checksum;
    }
    template <class Mark>
    void put(const Mark& mark) {
        const auto added = std::as_bytes(std::span(&mark, 1));
        bytes.insert(bytes.end(), added.begin(), added.end());
    }
    void chunk(std::uint64_t first_page, const std::vector<layout::Run>& runs, const Stream& body,
               layout::StoredCodec codec = layout::StoredCodec::none, std::uint32_t content_bytes = 0) {
        Stream stored;
        if (codec == layout::StoredCodec::none) {
            stored.resize(runs.size() * sizeof(layout::Run));
            std::memcpy(stored.data(), runs.data(), stored.size());
        }
        stored.insert(stored.end(), body.begin(), body.end());
        layout::ChunkHead mark{};
        mark.magic = layout::chunk_magic;
        mark.codec = codec;
        mark.first_page = first_page;
        mark.runs = static_cast<std::uint32_t>(runs.size());
        mark.content_bytes = content_bytes != 0 ? content_bytes : static_cast<std::uint32_t>(body.size());
        mark.stored_bytes = static_cast<std::uint32_t>(stored.size());
        mark.body_checksum = body_checksum(stored, chunks++);
        content += mark.content_bytes;
        seal(mark, before);
        before = mark.checksum;
        put(mark);
        bytes.insert(bytes.end(), stored.begin(), stored.end());
    }
    const Stream& end() {
        layout::StreamEnd mark{};
        mark.magic = layout::end_magic;
        mark.chunks = chunks;
        mark.content_bytes = content;
        mark.stream_bytes = bytes.size() + sizeof mark;
        seal(mark, before);
        put(mark);
        return bytes;
    }
};

BOOST_AUTO_TEST_SUITE(damaged_streams)

/// The disk, when a sound stream was expanded there and taken away again.
void expect_sound(SmallDisk& disk, const Stream& stream, HeapKind kind) {
    BOOST_TEST_REQUIRE(!refusal(disk, stream).has_value());
    BOOST_CHECK(static_cast<HeapKind>(mark_at<layout::StreamHead>(stream, 0).kind) == kind);
    for (const auto& [path, node] : disk.storage.files()) disk.storage.take_away(path);
}

Stream cut(const Stream& stream, std::size_t size) { return Stream(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size)); }

BOOST_AUTO_TEST_CASE(every_truncation_is_noticed) {
    const bool campaign = corruptions() > 2000;
    for (const Codec codec : codecs) {
        for (const HeapKind kind : kinds) {
            Stream stream = small_stream(codec, kind);
            SmallDisk disk;
            expect_sound(disk, stream, kind);
            const std::size_t step = campaign || kind == HeapKind::archive ? (campaign || codec != Codec::none ? 1 : 17) : 29;
            for (std::size_t size = 0; size < stream.size(); size += step) {
                const auto code = refusal(disk, cut(stream, size));
                BOOST_TEST_REQUIRE(code.has_value());
                BOOST_CHECK(*code == errc::truncated);
            }
            stream.push_back(std::byte{0});
            BOOST_CHECK(refusal(disk, stream) == errc::corrupt);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_stream_of_several_chunks_is_noticed_to_end_at_and_around_each_of_them) {
    for (const Codec codec : codecs) {
        const Stream stream = small_stream(codec, HeapKind::archive, true);
        SmallDisk disk;
        expect_sound(disk, stream, HeapKind::archive);
        std::size_t chunks = 0;
        for (std::size_t at = sizeof(layout::StreamHead); at < stream.size();) {
            const auto mark = mark_at<layout::ChunkHead>(stream, at);
            for (const std::size_t size : {at - 1, at, at + 1, at + sizeof mark - 1, at + sizeof mark, at + sizeof mark + 1})
                if (size < stream.size()) BOOST_CHECK(refusal(disk, cut(stream, size)) == errc::truncated);
            if (mark.magic == layout::end_magic) break;
            at += sizeof mark + mark.stored_bytes;
            ++chunks;
        }
        BOOST_TEST(chunks >= 3U);
    }
}

BOOST_AUTO_TEST_CASE(random_corruptions_end_in_a_typed_error_and_leave_nothing) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const std::uint64_t rounds = corruptions();
    std::vector<Stream> streams;
    for (const Codec codec : codecs)
        for (const HeapKind kind : kinds) streams.push_back(small_stream(codec, kind));
    std::vector<Stream> large;
    for (const Codec codec : codecs) large.push_back(small_stream(codec, kinds[static_cast<std::size_t>(codec)], true));
    SmallDisk disk;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const Stream& whole = round % 16 == 15 ? large[round / 16 % large.size()] : streams[round % streams.size()];
        Stream stream = whole;
        for (std::uint64_t places = 1 + (random() % 8 == 0 ? random() % 20 : 0); places > 0; --places) {
            const std::size_t at = random() % 4 == 0 ? random() % std::min<std::size_t>(stream.size(), 256) : random() % stream.size();
            const std::size_t length = std::min<std::size_t>(stream.size() - at, 1 + random() % 100);
            const auto place = stream.begin() + static_cast<std::ptrdiff_t>(at);
            switch (random() % 6) {
                case 0: *place ^= static_cast<std::byte>(1U << random() % 8); break;
                case 1: *place = static_cast<std::byte>(random()); break;
                case 2: std::fill_n(place, length, std::byte{0}); break;
                case 3: std::generate_n(place, length, [&] { return static_cast<std::byte>(random()); }); break;
                case 4: stream.erase(place, place + static_cast<std::ptrdiff_t>(std::min(length, stream.size() - 1))); break;
                default: {
                    const Stream copy(place, place + static_cast<std::ptrdiff_t>(length));
                    stream.insert(place, copy.begin(), copy.end());
                }
            }
        }
        if (stream == whole) continue;
        BOOST_TEST_REQUIRE(refusal(disk, stream).has_value());
    }
}

BOOST_AUTO_TEST_CASE(forged_chunks_with_right_checksums_are_refused) {
    const Stream whole = small_stream(Codec::none);
    const auto head = mark_at<layout::StreamHead>(whole, 0);
    const auto page_end = head.extent / page_bytes;
    const Stream page(page_bytes, std::byte{1});
    const auto try_chunk = [&](auto&& make) {
        SmallDisk disk;
        Forgery forged(head);
        make(forged);
        return refusal(disk, forged.end());
    };
    // No heap at all, though every checksum is right.
    BOOST_CHECK(try_chunk([&](Forgery&) {}) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(0, {{0, 512}}, page); }) == errc::corrupt);
    // Places beyond the heap, before the chunk, twice; lengths that are none.
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(page_end, {{0, 512}}, page); }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(page_end - 1, {{1, 512}}, page); }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(0, {{0xFFFF'FFFFU, 512}}, page); }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(0, {{0, 0xFFFF'FFFFU}}, page); }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(0, {{0, 0}, {0, 512}}, page); }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(0, {{0, 511}}, page); }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) {
                    f.chunk(1, {{0, 512}}, page);
                    f.chunk(0, {{0, 512}}, page);
                }) == errc::corrupt);
    BOOST_CHECK(try_chunk([&](Forgery& f) {
                    f.chunk(0, {{0, 1024}}, Stream(2 * page_bytes, std::byte{1}));
                    f.chunk(1, {{0, 512}}, page);
                }) == errc::corrupt);
    // Codecs that don't exist, and bodies that aren't what their codec makes.
    for (const unsigned codec : {1U, 2U, 3U, 77U}) {
        BOOST_CHECK(try_chunk([&](Forgery& f) { f.chunk(0, {{0, 512}}, Stream(100, std::byte{9}), layout::StoredCodec{codec}, 4096); }) ==
                    errc::corrupt);
    }
    // A true heap, whose first page says another size than the head.
    Forgery grown([&] {
        layout::StreamHead other = head;
        other.extent = other.capacity;
        return other;
    }());
    grown.bytes.insert(grown.bytes.end(), whole.begin() + sizeof head, whole.end());
    SmallDisk disk;
    BOOST_CHECK(refusal(disk, grown.bytes) == errc::corrupt);
}

BOOST_AUTO_TEST_CASE(heads_that_can_not_be_are_refused) {
    const Stream whole = small_stream(Codec::none);
    const auto head = mark_at<layout::StreamHead>(whole, 0);
    const auto try_head = [&](auto&& change) {
        SmallDisk disk;
        layout::StreamHead other = head;
        change(other);
        Forgery forged(other);
        return refusal(disk, forged.end());
    };
    BOOST_CHECK(try_head([](auto& h) { h.magic ^= 1; }) == errc::not_a_heap);
    BOOST_CHECK(try_head([](auto& h) { h.version = 2; }) == errc::unsupported_version);
    BOOST_CHECK(try_head([](auto& h) { h.incompatible_features = 2; }) == errc::unsupported_version);
    BOOST_CHECK(try_head([](auto& h) { h.kind = 0; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.kind = 4; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.base = 4096; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.base = 0; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.base = ~std::uint64_t{0} << 32U; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.capacity += 1; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.capacity = ~std::uint64_t{4095}; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.capacity = 4096; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.extent = h.capacity + page_bytes; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.extent = 0; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.extent += 8; }) == errc::corrupt);
    BOOST_CHECK(try_head([](auto& h) { h.serial = ~std::uint64_t{0}; }) == errc::corrupt);
    // What a later version may add.
    SmallDisk disk;
    layout::StreamHead other = head;
    other.compatible_features = 5;
    Forgery forged(other);
    BOOST_CHECK(refusal(disk, forged.end()) == errc::corrupt);  // the empty heap, not the feature
}

BOOST_AUTO_TEST_CASE(a_bomb_is_refused_before_anything_is_made) {
    layout::StreamHead head = mark_at<layout::StreamHead>(small_stream(Codec::zstd), 0);
    head.capacity = std::uint64_t{4} << 40U;
    head.extent = std::uint64_t{1} << 40U;
    SmallDisk disk;
    Forgery forged(head);
    BOOST_CHECK(refusal(disk, forged.end()) == errc::invalid_argument);
    BOOST_TEST(disk.storage.used_bytes() == 0U);
    // A limit of one's own.
    ExpandOptions options;
    options.expanded_bytes_max = 1000;
    BOOST_CHECK(refusal(disk, small_stream(Codec::zstd), options) == errc::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer
