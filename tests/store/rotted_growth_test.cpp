// A heap grows, crashes, and what its files have behind the extents of their headers rots before it is recovered: none of that may get into the heap, whatever recovery has to do.

#include <cstring>
#include <random>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "campaign_factor.hpp"
#include "heap_probe.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "seed.hpp"
#include "store/byte_log.hpp"
#include "store/page_copies.hpp"
#include "store/page_file.hpp"
#include "store/rot_behind.hpp"

BOOST_AUTO_TEST_SUITE(rotted_growth)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;
using store::PageFile;

const std::filesystem::path path = "/disk/a.tyn";
constexpr ByteCount annex_capacity = 4_MiB;

struct Sort {
    HeapKind kind;
    bool data_file;
    bool annex;
};
constexpr Sort sorts[] = {{HeapKind::archive, false, false}, {HeapKind::archive, false, true},        {HeapKind::snapshot, true, false},
                          {HeapKind::snapshot, true, true},  {HeapKind::transactional, false, false}, {HeapKind::transactional, true, false}};

/// What must be there: span and annex, byte for byte; what is missing at the end is zero.
struct Content {
    std::vector<std::byte> span;
    std::vector<std::byte> annex;
};

bool begins_with(std::span<const std::byte> whole, std::span<const std::byte> begin) {
    const auto common = std::min(whole.size(), begin.size());
    return (common == 0 || std::memcmp(begin.data(), whole.data(), common) == 0) && is_zero(whole.subspan(common)) && is_zero(begin.subspan(common));
}

struct Opened {
    std::shared_ptr<HeapFile> file;
    std::shared_ptr<store::test::ByteLog> log;
    ArchiveHeap heap;

    Opened(io::Storage& disk, OpenMode mode, const Sort& sort) : file(open(disk, mode, sort)), heap(HeapAccess::make<ArchiveHeap>(file)) {
        if (sort.kind == HeapKind::transactional && mode != OpenMode::read_only) {
            log = std::make_shared<store::test::ByteLog>(*file);
            file->join(log);
        }
    }
    static std::shared_ptr<HeapFile> open(io::Storage& disk, OpenMode mode, const Sort& sort) {
        PersistentOptions options = small_heap();
        options.log_capacity = 256_KiB;
        if (sort.kind == HeapKind::transactional && sort.data_file) options.data_file = path.string() + ".data";
        store::Tuning tuning;
        tuning.journal_bytes = 128_KiB;
        tuning.log_replay = store::test::make_byte_replay;
        return HeapFile::open(disk, path, mode, sort.kind, options, tuning);
    }
    void save() { log ? static_cast<void>(log->commit()) : heap.snapshot(); }
    std::span<const std::byte> span() const { return {reinterpret_cast<const std::byte*>(file->ranges().durable), file->image().mapped()}; }
    Content content() const {
        const store::Annex::View annex = file->view_annex();
        return {{span().begin(), span().end()}, {annex.bytes.begin(), annex.bytes.end()}};
    }
    bool holds(const Content& expected) const {
        const store::Annex::View annex = file->view_annex();
        return begins_with(span(), expected.span) && begins_with(annex.bytes, expected.annex);
    }
};

/// A block of zeros with a byte here and there.
void put_sparse(ArchiveHeap& heap, const std::string& name, std::size_t bytes) {
    char* const block = put(heap, name, std::string(bytes, '\0'));
    for (std::size_t at = 100; at < bytes; at += 150'000) block[at] = 'x';
}

/// Saves that grow the heap in several steps, small ones and large ones, over the ends of chunks. Each adds to `states` what it is about to make durable.
struct Life {
    io::SimulatedStorage& below;
    io::Storage& disk;
    const Sort& sort;
    std::vector<Content> states;
    std::size_t acknowledged = 0;

    void save(Opened& opened) {
        states.push_back(opened.content());
        opened.save();
        acknowledged = states.size();
    }
    void begin() {
        Opened opened(disk, OpenMode::create_only, sort);
        if (sort.annex) write_annex(opened, 0, 64_KiB, 9000);
        put(opened.heap, "first", std::string(100'000, 'a'));
        save(opened);
        opened.heap.close();
    }
    void grow() {
        Opened opened(disk, OpenMode::open_only, sort);
        if (sort.annex) opened.file->open_annex(annex_capacity);
        put_sparse(opened.heap, "sparse", 400'000);
        save(opened);
        if (sort.annex) write_annex(opened, 100'000, 256_KiB, 100);
        put_sparse(opened.heap, "wide", 900'000);  // into the second chunk
        save(opened);
        if (opened.log) opened.log->snapshot();
        put(opened.heap, "large", std::string(90'000, 'b'));
        put_sparse(opened.heap, "sparse 2", 300'000);
        if (sort.annex) write_annex(opened, 700'000, 1_MiB + 64_KiB, 500);
        save(opened);
        if (opened.log) opened.log->save_quiesced();
        put(opened.heap, "large 2", std::string(90'000, 'c'));
        put(opened.heap, "last", std::string(2'500'000, '\0'))[2'499'999] = 'x';  // into the fourth chunk, and of the third no page is written
        save(opened);
        opened.file->saves().checkpoint();
        below.disconnect();
    }
    void write_annex(Opened& opened, std::size_t at, ByteCount extent, std::size_t bytes) const {
        std::byte* const annex = opened.file->open_annex(annex_capacity);
        opened.file->extend_annex(extent);
        std::fill_n(annex + at, bytes, std::byte{7});
    }
};

/// Every page within the extents is what its checksum stands for, and the table what the header stands for.
bool is_sound(const PageFile& file) {
    const store::Extents extents = file.header.extents();
    store::TablePage table;
    std::vector<std::byte> page(page_bytes);
    bool sound = store::table_root_of(file, extents, store::Via::cache) == file.header.table_root;
    store::for_each_table_page(extents, [&](std::uint64_t index) {
        file.read_table_page(index, table, store::Via::cache);
        sound = sound && store::is_sound(table, index, file.header.heap);
        const store::TableCover cover = store::cover_of(index);
        for (std::uint64_t i = 0; i < cover.count && extents.hold({cover.first.value + i}); ++i) {
            file.read_pages({cover.first.value + i}, page, store::Via::cache);
            sound = sound && store::page_checksum(page, {cover.first.value + i}, file.header.heap) == table.entries[i];
        }
    });
    return sound;
}

bool all_sound(const HeapFile& heap) {
    return is_sound(heap.files().backing()) && (heap.files().data() == nullptr || is_sound(*heap.files().data()));
}

void look_at(io::SimulatedStorage& disk, const Life& life, const Sort& sort) {
    const Content& before = life.states.at(life.acknowledged - 1);
    const Content& after = life.states.back();
    bool found_after = false;
    {
        const Opened reader(disk, OpenMode::read_only, sort);
        found_after = reader.holds(after);
        BOOST_TEST((found_after || reader.holds(before)), "a reader sees something else");
    }
    Opened writer(disk, OpenMode::open_only, sort);
    BOOST_TEST(writer.holds(found_after ? after : before), "a writer finds something else");
    writer.file->saves().checkpoint();
    BOOST_TEST(all_sound(*writer.file), "the files aren't sound");
    BOOST_TEST(writer.file->engine().check(1).empty());
    const auto* const fresh = static_cast<const std::byte*>(writer.heap.allocate(300'000));
    BOOST_TEST(is_zero({fresh, 300'000}));
}
}  // namespace

BOOST_AUTO_TEST_CASE(recovery_shows_nothing_of_it_wherever_the_crash_was) {
    constexpr io::Call changes = io::Call::write | io::Call::write_durable | io::Call::sync | io::Call::allocate | io::Call::punch | io::Call::resize;
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});  // of the closes that fail
    // Under a sanitizer every fourth step, and not always the same: what it adds is bad memory, and each takes five times as long.
    const std::uint64_t stride = taiyen::test::under_sanitizer ? 4 : 1;
    std::mt19937_64 seeds(taiyen::test::seed_of_run());
    for (const Sort& sort : sorts) {
        bool fired = true;
        for (std::uint64_t step = 1 + seeds() % stride; fired; step += stride) {
            BOOST_TEST_CONTEXT(name_of(sort.kind) << (sort.data_file ? ", data file" : "") << (sort.annex ? ", annex" : "") << ", step " << step) {
                io::SimulatedStorage disk;
                disk.add_directory("/disk");
                io::FaultyStorage failing(disk);
                Life life{disk, failing, sort, {}, 0};
                life.begin();
                failing.arm({.at = step, .sticky = true, .calls = changes});
                try {
                    life.grow();
                } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the step that fails
                }
                fired = failing.fired() != 0;
                disk.disconnect();
                for (const char* suffix : {"", ".data"}) store::test::rot_behind(disk, path.string() + suffix, step);
                look_at(disk, life, sort);
            }
        }
    }
    set_report_handler(handler);
}

BOOST_AUTO_TEST_SUITE_END()
