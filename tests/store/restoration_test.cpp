// What an opening says that it found and did; and what the files say of it afterwards.

#include <taiyen/store/restoration.hpp>

#include <boost/test/unit_test.hpp>

#include <taiyen/store/parameters.hpp>

#include "heap_probe.hpp"
#include "store/header.hpp"
#include "store/opening_record.hpp"

namespace {
using namespace probe;
using std::chrono::system_clock;

/// What the file says of the last opening that had something to do.
std::optional<Restoration> noted(const std::filesystem::path& path) { return read_parameters(path).last_restoration; }

/// A heap as a crash leaves it: one save is in the journal alone.
template <class Heap>
void make_crashed(const ScratchDirectory& dir, const std::filesystem::path& path) {
    Heap heap(create_only, dir / "living.tyn", small_heap());
    put(heap, "text", std::string(5000, 'a'));
    heap.snapshot();
    find(heap, "text")[0] = 'b';
    heap.snapshot();
    crash_copy(dir / "living.tyn", path);
}

void make_closed(const std::filesystem::path& path) {
    SnapshotHeap heap(create_only, path, small_heap());
    put(heap, "text", "kept");
    heap.snapshot();
    heap.close();
}

/// Of an opening for writing, which is closed again.
Restoration opened(const std::filesystem::path& path) {
    SnapshotHeap heap(open_only, path);
    const Restoration found = heap.restoration();
    heap.close();
    return found;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(restorations)

BOOST_AUTO_TEST_CASE(a_heap_that_was_closed_says_when_and_that_there_was_nothing_to_do) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const auto before = system_clock::now() - std::chrono::milliseconds(1);
    {
        SnapshotHeap heap(create_only, path, small_heap());
        BOOST_TEST((heap.restoration().cause == OpeningCause::created));
        BOOST_TEST(!heap.restoration().needed());
        BOOST_TEST(!heap.restoration().last_written.has_value());
        BOOST_TEST((heap.restoration().opened_at >= before));
    }
    const HeapParameters parameters = read_parameters(path);
    BOOST_TEST_REQUIRE(parameters.written_at.has_value());
    BOOST_TEST((*parameters.written_at >= before && *parameters.written_at <= system_clock::now()));
    BOOST_TEST(!parameters.last_restoration.has_value());
    const Restoration found = opened(path);
    BOOST_TEST((found.cause == OpeningCause::closed));
    BOOST_TEST((found.clean && !found.needed()));
    BOOST_TEST((found.last_written == parameters.written_at));
    BOOST_TEST(found.done().empty());
    BOOST_TEST((found.sentences() == std::vector<std::string>{"its last user closed it"}));
    BOOST_TEST(!noted(path).has_value());
}

BOOST_AUTO_TEST_CASE(what_a_crash_left_to_do_is_told_and_stands_in_the_files_until_another_opening_has_something_to_do) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_crashed<ArchiveHeap>(dir, path);
    const auto written = read_parameters(path).written_at;
    {
        const ArchiveHeap reader(open_read_only, path);
        const Restoration found = reader.restoration();
        BOOST_TEST((found.cause == OpeningCause::crash && found.read_only));
        BOOST_TEST((found.done() == std::vector<std::string>{"2 saves of the journal shown, not brought into the files"}));
    }
    BOOST_TEST(!noted(path).has_value());
    {
        ArchiveHeap heap(open_only, path);
        const Restoration found = heap.restoration();
        BOOST_TEST((found.cause == OpeningCause::crash && !found.clean && !found.read_only));
        BOOST_TEST(found.snapshots_replayed == 2U);
        BOOST_TEST((found.last_written == written));
        BOOST_TEST(found.took.count() > 0);
        const std::vector<std::string> sentences{"its last user, or the system, ended without closing it",
                                                 "2 saves of the journal brought into the files"};
        BOOST_TEST((found.sentences() == sentences));
        // By the header that recovery writes anyway: a program that is killed now leaves it, too.
        const auto left = noted(path);
        BOOST_TEST_REQUIRE(left.has_value());
        BOOST_TEST((left->sentences() == sentences));
        BOOST_TEST(left->took.count() == 0);
    }
    const auto after = noted(path);
    BOOST_TEST_REQUIRE(after.has_value());
    BOOST_TEST((after->cause == OpeningCause::crash && !after->clean));
    BOOST_TEST(after->snapshots_replayed == 2U);
    BOOST_TEST((after->last_written == written));
    BOOST_TEST(after->took.count() > 0);
    {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST((heap.restoration().cause == OpeningCause::closed));
    }
    BOOST_TEST((noted(path)->opened_at == after->opened_at));
    {
        ArchiveHeap heap(open_only, path);
        heap::HeapCore& core = *heap.core();
        static_cast<store::HeapFile&>(core).companions().write_copy(dir / "copy.tyn");
    }
    BOOST_TEST(!noted(dir / "copy.tyn").has_value());
    // Both files of a heap with two of them say it.
    const auto twin = dir / "twin.tyn";
    std::filesystem::remove(dir / "living.tyn");
    make_crashed<SnapshotHeap>(dir, twin);
    BOOST_TEST((opened(twin).cause == OpeningCause::crash));
    BOOST_TEST((noted(twin)->cause == OpeningCause::crash));
    BOOST_TEST((noted(dir / "twin.tyn.data")->opened_at == noted(twin)->opened_at));
}

BOOST_AUTO_TEST_CASE(the_bytes_of_a_torn_end_are_told_as_far_as_they_are_known) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_crashed<ArchiveHeap>(dir, path);
    const auto journal = dir / "a.tyn.journal";
    const auto zero = [&](std::uint64_t offset) {
        const std::vector<std::byte> zeros(4096);
        io::posix_storage().open(journal, io::Access::read_write)->write(zeros, offset);
    };
    ByteCount last = 0;  // where the last record begins; it is longer than a page
    {
        const auto file = io::posix_storage().open(journal, io::Access::read_only);
        const store::Header header = *store::read_slots(*io::posix_storage().open(path, io::Access::read_only)).newest();
        (void)log::Ring::scan(*file, header.ring_identity(), header.ring_start, [&](const log::Record& record) {
            last = record.file_offset;
            return true;
        });
    }
    zero(last + 4096);
    const Restoration cut = opened(path);
    BOOST_TEST(cut.records_cut == 1U);
    BOOST_TEST(cut.snapshots_replayed == 1U);
    BOOST_TEST((cut.bytes_cut >= 8192 && cut.bytes_cut % 4096 == 0));
    BOOST_TEST(cut.done().back() == "1 torn record cut off (" + std::to_string(cut.bytes_cut) + " bytes), which nobody was told of");
    BOOST_TEST(noted(path)->bytes_cut == cut.bytes_cut);
}

BOOST_AUTO_TEST_CASE(each_cause_is_told) {
    const ScratchDirectory dir;
    const auto heap_with = [&](const char* name, auto&& damage) {
        const auto path = dir / (std::string(name) + ".tyn");
        make_closed(path);
        damage(path, std::filesystem::path(path.string() + ".data"));
        const Restoration found = opened(path);
        const auto left = noted(path);
        BOOST_TEST_REQUIRE(left.has_value());
        BOOST_TEST((left->cause == found.cause));
        BOOST_TEST((left->done() == found.done()));
        BOOST_TEST((opened(path).cause == OpeningCause::closed));
        return found;
    };
    const Restoration header = heap_with("header", [](const auto& path, const auto&) { flip_bit(path, 60); });
    BOOST_TEST((header.cause == OpeningCause::damaged_header && header.clean));
    BOOST_TEST((header.done() == std::vector<std::string>{"1 header written again from the other one"}));

    const Restoration lost = heap_with("lost", [](const auto& path, const auto&) { std::filesystem::remove(path); });
    BOOST_TEST((lost.cause == OpeningCause::lost_file && lost.backing_rebuilt));
    BOOST_TEST((lost.done() == std::vector<std::string>{"the heap's file built again from its second copy"}));

    const Restoration second = heap_with("second", [](const auto&, const auto& data) { std::filesystem::remove(data); });
    BOOST_TEST((second.cause == OpeningCause::lost_file && second.data_rebuilt));

    const Restoration cut = heap_with("cut", [](const auto&, const auto& data) { std::filesystem::resize_file(data, 12'288); });
    BOOST_TEST((cut.cause == OpeningCause::damaged_file && cut.data_rebuilt));
    BOOST_TEST((cut.done() == std::vector<std::string>{"the second copy filled again from the heap's file"}));

    const Restoration both = heap_with("both", [](const auto& path, const auto&) {
        flip_bit(path, 60);
        flip_bit(path, store::header_slot_bytes + 60);
    });
    BOOST_TEST((both.cause == OpeningCause::damaged_file && both.backing_rebuilt));

    const Restoration old = heap_with("old", [&](const auto& path, const auto& data) {
        const auto kept = dir / "kept.data";
        std::filesystem::copy_file(data, kept);
        {
            SnapshotHeap heap(open_only, path);
            find(heap, "text")[0] = 'K';
            heap.snapshot();
        }
        std::filesystem::copy_file(kept, data, std::filesystem::copy_options::overwrite_existing);
    });
    BOOST_TEST((old.cause == OpeningCause::damaged_file && old.copies_levelled));

    const Restoration rotten = heap_with("rotten", [](const auto& path, const auto&) { flip_bit(path, 12'288); });
    BOOST_TEST((rotten.cause == OpeningCause::closed && rotten.needed()));
    BOOST_TEST((rotten.done() == std::vector<std::string>{"1 page restored from the copy that has it whole"}));
}

BOOST_AUTO_TEST_CASE(a_save_that_was_cut_short_between_the_two_files_is_told) {
    const ScratchDirectory dir;
    const auto path = dir / "c.tyn";
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        char* block = put(heap, "big", std::string(2U << 20U, 'a'));
        heap.snapshot();
        std::filesystem::copy_file(dir / "a.tyn", path);
        std::memset(block, 'b', 2U << 20U);
        heap.snapshot();
        std::filesystem::copy_file(dir / "a.tyn.data", dir / "c.tyn.data");
        std::filesystem::copy_file(dir / "a.tyn.journal", dir / "c.tyn.journal");
    }
    const Restoration found = opened(path);
    BOOST_TEST((found.cause == OpeningCause::interrupted_save && found.copies_levelled));
    BOOST_TEST((found.done() == std::vector<std::string>{"what one of the two files lacked copied from the other"}));
    BOOST_TEST((noted(path)->cause == OpeningCause::interrupted_save));
}

BOOST_AUTO_TEST_CASE(what_a_file_says_that_nobody_can_have_meant_is_unknown) {
    BOOST_TEST(!store::restoration_of({}).has_value());
    store::OpeningRecord record;
    std::memset(&record, 0xff, sizeof record);
    const auto found = store::restoration_of(record);
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST((found->cause == OpeningCause::unknown));
    BOOST_TEST(!found->opened_at.has_value());
    BOOST_TEST(!found->last_written.has_value());
    BOOST_TEST(found->took.count() == 0);
    BOOST_TEST(found->sentences().size() == 10U);
    BOOST_TEST(name_of(found->cause) == "unknown");
    BOOST_TEST(name_of(OpeningCause{77}) == "unknown");
}

BOOST_AUTO_TEST_SUITE_END()
