// Steps of compact() over a heap that was damaged on the disk: what moves is copied, and would get a fresh checksum; a pointer that damage hides would go on leading to where its block lay.

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>

#include "heap/geometry.hpp"
#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "transfer/transfer_fixture.hpp"

namespace taiyen::transfer::test {
namespace {

using DamagedTexts = taiyen::map<int, taiyen::string>;
using Blobs = taiyen::vector<taiyen::vector<std::uint64_t>>;
constexpr std::size_t blob_words = 5 * 4096 / 8;

CompactOptions damaged_step(std::size_t bytes = std::size_t{16} << 20U) {
    CompactOptions options;
    options.types.add<DamagedTexts, Blobs>();
    options.bytes_max = bytes;
    return options;
}

PersistentOptions damaged_files(HeapKind kind, const std::filesystem::path& path) {
    PersistentOptions options = small_heap();
    options.verify = Verify::changes;  // the damage is to be met by compact()
    if (kind == HeapKind::transactional) options.data_file = path.string() + ".data";
    return options;
}

struct DamagedFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    std::mt19937_64 random{taiyen::test::seed_of_run()};
    std::map<int, std::string> model;
    std::uint64_t first_text = 0;  ///< offsets of what lies outside of the nodes, and of words in the blob
    std::uint64_t blob = 0;

    /// Texts far from one another; and a blob of more than a page behind free pages, where it can go down.
    template <class Heap>
    void make(HeapKind kind) {
        std::filesystem::remove_all(directory.path());
        std::filesystem::create_directories(directory.path());
        model.clear();
        Heap heap(create_only, path, damaged_files(kind, path));
        if constexpr (std::is_same_v<Heap, TransactionalHeap>) {
            Transaction transaction(heap);
            fill(heap);
            transaction.commit();
        } else {
            fill(heap);
        }
        heap.snapshot();
        heap.close();
    }
    void fill(ArchiveHeap& heap) {
        const std::uintptr_t base = read_parameters(path).address;
        auto& texts = heap.construct<DamagedTexts>("texts");
        std::vector<void*> between{heap.allocate(8 * blob_words)};
        auto& blobs = heap.construct<Blobs>("blobs", 1U);
        for (int i = 0; i < 300; ++i) {
            model[i] = std::string(40 + random() % 60, static_cast<char>('a' + i % 26));
            texts[i] = model[i].c_str();
            for (int n = 0; n < 5; ++n) between.push_back(heap.allocate(random() % 300));
        }
        blobs[0].assign(blob_words, 17);
        for (void* const block : between) heap.deallocate(block);
        first_text = reinterpret_cast<std::uintptr_t>(texts.at(150).data()) - base;
        blob = reinterpret_cast<std::uintptr_t>(blobs[0].data()) - base;
    }
    void rot(const std::filesystem::path& file, std::uint64_t offset) const { probe::flip_bit(file, store::FileLayout().file_offset({offset})); }
    /// The number of a text that a step over the undamaged heap moves: its page is one that a step reads.
    int moving_text() const {
        const std::filesystem::path copies = directory / "copies";
        std::filesystem::create_directory(copies);
        for (const auto& file : std::filesystem::directory_iterator(directory.path()))
            if (file.is_regular_file()) std::filesystem::copy_file(file, copies / file.path().filename());
        SnapshotHeap heap(open_only, copies / path.filename(), small_heap());
        auto& texts = *heap.find<DamagedTexts>("texts");
        std::vector<const char*> before;
        for (const auto& [number, text] : texts) before.push_back(text.data());
        compact(heap, damaged_step());
        int moving = 0;
        while (texts.at(moving).data() == before.at(static_cast<std::size_t>(moving))) ++moving;
        return moving;
    }
    std::uint64_t offset_of(int number) const {
        const ArchiveHeap heap(open_read_only, path, small_heap());
        return reinterpret_cast<std::uintptr_t>(heap.find<DamagedTexts>("texts")->at(number).data()) - read_parameters(path).address;
    }
    /// Of metadata, live blocks and free pages.
    std::uint64_t some_offset() { return 8 * 4096 + random() % (80 * 4096); }
    std::string second_copy() const { return path.string() + ".data"; }

    void expect_content(const ArchiveHeap& heap) const {
        const auto& texts = *heap.find<DamagedTexts>("texts");
        BOOST_TEST_REQUIRE(texts.size() == model.size());
        for (const auto& [number, text] : texts) BOOST_TEST_REQUIRE(std::string_view(text) == model.at(number));
        const auto& words = heap.find<Blobs>("blobs")->front();
        BOOST_TEST_REQUIRE(static_cast<std::size_t>(std::count(words.begin(), words.end(), 17U)) == blob_words);
    }
    static void expect_sound(const ArchiveHeap& heap) {
        for (const Finding& finding : heap.verify().findings) BOOST_ERROR(finding.path << " at " << finding.offset << ": " << finding.what);
    }
    static std::vector<std::uint64_t> places(const ArchiveHeap& heap) {
        std::vector<std::uint64_t> all;
        HeapAccess::file(heap).engine().for_each_block([&](const heap::Block& block) {
            all.push_back(block.offset.value);
            return true;
        });
        return all;
    }
    static void refuse_corrupt(ArchiveHeap& heap, const CompactOptions& step) {
        const std::vector<std::uint64_t> before = places(heap);
        BOOST_CHECK_EXCEPTION(compact(heap, step), Error, has_code(errc::corrupt));
        BOOST_TEST(places(heap) == before, boost::test_tools::per_element());
        BOOST_TEST(!HeapAccess::file(heap).condition().is_poisoned());
    }
    void move_all(ArchiveHeap& heap) {
        std::uint64_t moved = 0;
        for (CompactReport report; !(report = compact(heap, damaged_step())).done(); moved += report.moved_blocks) {}
        BOOST_TEST(moved > 100U);
        expect_content(heap);
    }
    template <class Heap>
    void save_and_look_again(Heap& heap, HeapKind kind) {
        heap.snapshot();
        heap.close();
        const ArchiveHeap again(open_read_only, path, damaged_files(kind, path));
        expect_content(again);
        expect_sound(again);
    }
};

BOOST_FIXTURE_TEST_SUITE(compaction_of_damaged_heaps, DamagedFixture)

template <class Heap>
void refuse_then_heal(DamagedFixture& test, HeapKind kind) {
    test.make<Heap>(kind);
    test.rot(test.path, test.first_text + 3);
    Heap heap(open_only, test.path, damaged_files(kind, test.path));
    test.refuse_corrupt(heap, damaged_step());
    test.refuse_corrupt(heap, damaged_step(0));
    BOOST_TEST(heap.heal() == 1U);
    test.expect_content(heap);
    test.move_all(heap);
    test.save_and_look_again(heap, kind);
}

BOOST_AUTO_TEST_CASE(a_damaged_page_stops_a_step_before_anything_moves_and_when_it_is_healed_all_moves) {
    refuse_then_heal<SnapshotHeap>(*this, HeapKind::snapshot);
    refuse_then_heal<TransactionalHeap>(*this, HeapKind::transactional);
}

BOOST_AUTO_TEST_CASE(a_damaged_page_of_a_large_block_stops_the_step_that_would_move_it) {
    make<SnapshotHeap>(HeapKind::snapshot);
    rot(path, blob + 4096 + 8);
    SnapshotHeap heap(open_only, path, damaged_files(HeapKind::snapshot, path));
    heap.attach_undo();
    CompactReport report;
    while ((report = compact(heap, damaged_step(4096))).moved_blocks != 0) {}  // the blob is too long for these steps
    BOOST_TEST(report.large_blocks == 1U);
    refuse_corrupt(heap, damaged_step());
    heap.snapshot();
    BOOST_TEST(heap.heal() == 1U);
    BOOST_TEST(compact(heap, damaged_step()).moved_blocks == 1U);
    expect_content(heap);
    save_and_look_again(heap, HeapKind::snapshot);
}

BOOST_AUTO_TEST_CASE(a_page_that_was_damaged_before_the_program_wrote_into_it_stops_a_step_and_a_save_and_is_whole_at_the_next_opening) {
    make<SnapshotHeap>(HeapKind::snapshot);
    const int text = moving_text();
    rot(path, offset_of(text) + 3);
    {
        SnapshotHeap heap(open_only, path, damaged_files(HeapKind::snapshot, path));
        heap.find<DamagedTexts>("texts")->at(text)[0] = '!';
        refuse_corrupt(heap, damaged_step());
        BOOST_CHECK_EXCEPTION(heap.snapshot(), Error, has_code(errc::corrupt));
    }
    SnapshotHeap heap(open_only, path, damaged_files(HeapKind::snapshot, path));
    move_all(heap);
    save_and_look_again(heap, HeapKind::snapshot);
}

BOOST_AUTO_TEST_CASE(a_damaged_page_without_a_second_copy_keeps_all_blocks_where_they_are) {
    make<ArchiveHeap>(HeapKind::archive);
    rot(path, first_text + 3);
    ArchiveHeap heap(open_only, path, small_heap());
    refuse_corrupt(heap, damaged_step());
    BOOST_CHECK_EXCEPTION(heap.heal(), Error, has_code(errc::corrupt));
    refuse_corrupt(heap, damaged_step());
}

BOOST_AUTO_TEST_CASE(metadata_that_are_damaged_stop_a_step) {
    make<SnapshotHeap>(HeapKind::snapshot);
    rot(path, heap::Geometry(small_heap().capacity).region(1).first * page_bytes + 100);
    SnapshotHeap heap(open_only, path, damaged_files(HeapKind::snapshot, path));
    refuse_corrupt(heap, damaged_step());
    BOOST_TEST(heap.heal() == 1U);
    heap.close();
    SnapshotHeap again(open_only, path, small_heap());
    move_all(again);
    save_and_look_again(again, HeapKind::snapshot);
}

template <class Heap>
void damage_the_second_copy(DamagedFixture& test, HeapKind kind) {
    test.make<Heap>(kind);
    for (int i = 0; i < 40; ++i) test.rot(test.second_copy(), test.some_offset());
    Heap heap(open_only, test.path, damaged_files(kind, test.path));
    for (CompactReport report; !(report = compact(heap, damaged_step(20'000))).done();) {
        test.expect_content(heap);
        if (test.random() % 2 == 0) heap.snapshot();
    }
    heap.snapshot();
    heap.heal();
    test.save_and_look_again(heap, kind);
    // The first copy is gone now.
    for (int i = 0; i < 40; ++i) test.rot(test.path, test.some_offset());
    Heap again(open_only, test.path, damaged_files(kind, test.path));
    again.heal();
    test.expect_content(again);
    test.expect_sound(again);
    again.close();
}

BOOST_AUTO_TEST_CASE(a_second_copy_that_is_damaged_is_whole_again_behind_steps_and_healing_and_makes_the_first_one_whole) {
    damage_the_second_copy<SnapshotHeap>(*this, HeapKind::snapshot);
    damage_the_second_copy<TransactionalHeap>(*this, HeapKind::transactional);
}

BOOST_AUTO_TEST_CASE(a_history_of_steps_is_gone_through_behind_damage_of_one_copy_that_was_healed) {
    for (const char* const damaged : {"", ".data"}) {
        std::filesystem::remove_all(directory.path());
        std::filesystem::create_directories(directory.path());
        model.clear();
        std::vector<std::map<int, std::string>> states;
        {
            SnapshotHeap heap(create_only, path, small_heap());
            heap.attach_undo();
            {
                const UndoScope scope(heap, "fill");
                fill(heap);
            }
            states.push_back(model);
            std::uint64_t moved = 0;
            for (int i = 0; i < 12; ++i) {
                if (i % 3 == 2) {
                    const std::uint64_t before = moved;
                    moved += compact(heap, damaged_step(20'000)).moved_blocks;
                    if (moved == before) continue;  // no step
                } else {
                    const UndoScope scope(heap, "edit");
                    auto& texts = *heap.find<DamagedTexts>("texts");
                    for (int n = 0; n < 40; ++n) {
                        const int number = static_cast<int>(random() % 300);
                        model[number] = std::string(random() % 120, static_cast<char>('a' + random() % 26));
                        texts[number] = model[number].c_str();
                    }
                }
                states.push_back(model);
                if (random() % 3 == 0) heap.snapshot();
            }
            BOOST_TEST(moved != 0U);
            heap.snapshot();
            heap.close();
        }
        const std::uint64_t pages = std::filesystem::file_size(path) / page_bytes;
        for (int i = 0; i < 30; ++i) probe::flip_bit(path.string() + damaged, (2 + random() % (pages - 2)) * page_bytes + random() % page_bytes);
        SnapshotHeap heap(open_only, path, small_heap());
        BOOST_TEST(heap.heal() != 0U);
        heap.attach_undo();
        const auto go = [&](bool back, std::size_t to) {
            BOOST_TEST_REQUIRE((back ? heap.undo() : heap.redo()));
            model = states[to];
            expect_content(heap);
        };
        for (std::size_t i = states.size() - 1; i-- > 0;) go(true, i);
        for (std::size_t i = 1; i < states.size(); ++i) go(false, i);
        save_and_look_again(heap, HeapKind::snapshot);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
