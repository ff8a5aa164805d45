// Heaps of all kinds at another address. The old range is unmapped when the heap is opened again: a pointer that was forgotten ends the test with a signal.

#include <taiyen/transfer/rebase.hpp>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>

#include "containers/document.hpp"
#include "file_bytes.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer::test {

using taiyen::test::Document;
using taiyen::test::file_bytes;
using taiyen::test::InHeap;
using taiyen::test::InMemory;

using Stored = Document<InHeap>;
using SomeWords = std::array<std::uint64_t, 64>;
struct Item {
    int value = 0;
};

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = std::size_t{64} << 20U;
    options.log_capacity = std::size_t{1} << 20U;
    return options;
}

std::map<std::string, std::string> files_of(const ScratchDirectory& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
        if (entry.is_regular_file()) files[entry.path().filename().string()] = file_bytes(entry.path());
    return files;
}

std::uintptr_t address_of(const std::filesystem::path& path) { return read_parameters(path).address; }

template <class F>
errc code_of(F&& call) {
    try {
        call();
    } catch (const Error& error) {
        return static_cast<errc>(error.code().value());
    }
    return errc{};
}

/// Moves what no type is declared of.
RebaseOptions guessing() {
    RebaseOptions options;
    options.by_shapes = false;
    options.conservative = true;
    return options;
}

/// A neighbour of what lies there, a few slots on, within the range for heaps.
std::uintptr_t near(std::uintptr_t address, std::uintptr_t slots) {
    const vm::Zone zone = vm::default_zone();
    const std::uintptr_t shift = slots << 32U;
    return address + shift + (std::uintptr_t{64} << 30U) < zone.last ? address + shift : address - shift;
}

struct RebaseFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    Document<InMemory> model;

    template <class Heap>
    void create(unsigned seed) {
        Heap heap(create_only, path, small());
        change_both(heap, seed);
        heap.snapshot();
        heap.close();
    }
    template <class Heap>
    void change_both(Heap& heap, unsigned seed) {
        taiyen::test::change(heap.template find_or_construct<Stored>("document"), seed);
        taiyen::test::change(model, seed);
    }
    template <class Heap = ArchiveHeap>
    void check_at(std::uintptr_t address, unsigned seed) {
        BOOST_TEST(address_of(path) == address);
        Heap heap(open_only, path, small());
        const Stored* const found = heap.template find<Stored>("document");
        BOOST_REQUIRE(found != nullptr);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(found) - address < small().capacity);
        BOOST_TEST(describe(*found) == describe(model));
        auto expected = model.parts.begin();
        for (const auto& [name, part] : found->parts) {
            BOOST_REQUIRE((part.neighbour == nullptr) == (expected->second.neighbour == nullptr));
            if (part.neighbour != nullptr) BOOST_TEST(std::string_view(part.neighbour->name) == expected->second.neighbour->name);
            ++expected;
        }
        BOOST_TEST(heap.verify().ok());
        if constexpr (!std::is_same_v<Heap, TransactionalHeap>) {
            change_both(heap, seed);  // the structures are whole, too
            BOOST_TEST(describe(*found) == describe(model));
            heap.snapshot();
        }
        heap.close();
    }
};

BOOST_FIXTURE_TEST_SUITE(rebasing, RebaseFixture)

BOOST_AUTO_TEST_CASE(every_container_nested_is_as_its_model_at_the_new_address) {
    create<ArchiveHeap>(1);
    const std::uintptr_t from = address_of(path);
    const RebaseReport report = rebase(path, near(from, 100), guessing());
    BOOST_TEST(report.moved);
    BOOST_TEST(report.old_address == from);
    BOOST_TEST(report.new_address == near(from, 100));
    BOOST_TEST(report.pointers > 500U);
    BOOST_TEST(report.pages_changed > 5U);
    BOOST_TEST(report.live_blocks > 100U);
    BOOST_TEST(read_parameters(path).clean);
    BOOST_TEST(!vm::mapping_in(from, small().capacity).has_value());
    check_at(report.new_address, 2);
    check_at(report.new_address, 3);
}

BOOST_AUTO_TEST_CASE(random_documents_survive_moves_in_a_row_of_each_kind_of_heap) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const auto seed = [&] { return static_cast<unsigned>(random()); };
    create<SnapshotHeap>(seed());
    for (int i = 0; i < 6; ++i) {
        const RebaseReport report = rebase(path, anywhere, guessing());
        BOOST_TEST(report.moved);
        BOOST_TEST(report.old_address != report.new_address);
        if (i % 2 == 0)
            check_at<ArchiveHeap>(report.new_address, seed());
        else
            check_at<SnapshotHeap>(report.new_address, seed());
    }
}

BOOST_AUTO_TEST_CASE(a_heap_can_move_to_where_it_overlaps_itself) {
    create<ArchiveHeap>(4);
    const std::uintptr_t from = address_of(path);
    BOOST_TEST(rebase(path, near(from, 1), guessing()).moved);
    check_at(near(from, 1), 5);
    BOOST_TEST(rebase(path, from, guessing()).moved);
    check_at(from, 6);
}

BOOST_AUTO_TEST_CASE(to_where_it_lies_a_heap_does_not_move) {
    create<ArchiveHeap>(7);
    const RebaseReport report = rebase(path, address_of(path));
    BOOST_TEST(!report.moved);
    BOOST_TEST(report.old_address == report.new_address);
    check_at(report.new_address, 8);
}

BOOST_AUTO_TEST_CASE(a_dry_run_tells_the_same_and_writes_nothing) {
    create<SnapshotHeap>(9);
    const std::uintptr_t from = address_of(path);
    const auto before = files_of(directory);
    RebaseOptions options;
    options.by_shapes = false;
    options.dry_run = true;
    const RebaseReport told = rebase(path, near(from, 50), options);
    BOOST_TEST((files_of(directory) == before));
    const RebaseReport done = rebase(path, near(from, 50), guessing());
    BOOST_TEST(!told.moved);
    BOOST_TEST(done.moved);
    BOOST_TEST(told.new_address == done.new_address);
    BOOST_TEST(told.pointers == done.pointers);
    BOOST_TEST(told.pages_changed == done.pages_changed);
    BOOST_TEST(told.ambiguous_words == done.ambiguous_words);
}

BOOST_AUTO_TEST_CASE(a_pointer_of_the_program_follows_by_the_relocation) {
    int* inside = nullptr;
    std::vector<taiyen::string*> names;
    {
        ArchiveHeap heap(create_only, path, small());
        auto& numbers = heap.construct<taiyen::vector<int>>("numbers", std::size_t{100});
        numbers[42] = 4711;
        inside = &numbers[42];
        names.push_back(&heap.construct<taiyen::string>("name", "a name that is longer than a small buffer"));
        names.push_back(&heap.construct<taiyen::string>("short", "short"));  // points into itself
        heap.snapshot();
        heap.close();
    }
    const Relocation moved = rebase(path, anywhere, guessing()).relocation();
    moved.visit(inside, names);
    ArchiveHeap heap(open_read_only, path, small());
    BOOST_TEST(*inside == 4711);
    BOOST_TEST(names[0] == heap.find<taiyen::string>("name"));
    BOOST_TEST(*names[0] == "a name that is longer than a small buffer");
    BOOST_TEST(*names[1] == "short");
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(names[1]->data()) - reinterpret_cast<std::uintptr_t>(names[1]) < sizeof(taiyen::string));
}

/// SomeWords of all sorts, and what a move makes of them.
struct Planted {
    explicit Planted(const std::filesystem::path& path) {
        ArchiveHeap heap(create_only, path, small());
        auto& item = heap.construct<std::array<Item, 100>>("item");
        void* const gone = heap.allocate(1000);
        auto& words = heap.construct<SomeWords>("words");
        words.fill(0);
        heap.deallocate(gone);
        base = heap.core() != nullptr ? read_parameters(path).address : 0;
        item_at = reinterpret_cast<std::uintptr_t>(&item);
        words[0] = item_at;                                 // a pointer, or a number of that value: nobody can tell
        words[1] = item_at + sizeof item / 2;               // into a block
        words[2] = item_at + sizeof item;                   // its end
        words[4] = reinterpret_cast<std::uintptr_t>(gone);  // dangles
        words[6] = base + 8;                                // the super block
        words[8] = base + (std::uintptr_t{32} << 20U);      // behind what is in use
        words[10] = item_at << 1U;                          // nothing
        words[12] = 4711;
        std::memcpy(reinterpret_cast<std::byte*>(&words[14]) + 4, &item_at, sizeof item_at);  // packed
        values = words;
        heap.snapshot();
        heap.close();
    }
    std::uintptr_t base = 0;
    std::uintptr_t item_at = 0;
    SomeWords values{};
};

BOOST_AUTO_TEST_CASE(words_that_are_addresses_of_live_blocks_change_and_all_others_stay) {
    Planted planted(path);
    RebaseOptions options = guessing();
    options.listed_max = 100;
    const RebaseReport report = rebase(path, near(planted.base, 70), options);
    const std::uintptr_t shift = report.new_address - report.old_address;
    SomeWords expected = planted.values;
    for (const int i : {0, 1, 2}) expected[static_cast<std::size_t>(i)] += shift;
    ArchiveHeap heap(open_read_only, path, small());
    const SomeWords& found = *heap.find<SomeWords>("words");
    BOOST_TEST(found == expected, boost::test_tools::per_element());
    BOOST_TEST(report.pointers == 3U);
    BOOST_TEST(report.ambiguous_words == 4U);
    const std::uint64_t place = reinterpret_cast<std::uintptr_t>(&found) - report.new_address;
    const auto told = [&](std::uint64_t word_bytes, AmbiguousTarget target) {
        for (const AmbiguousWord& word : report.ambiguous)
            if (word.offset == place + word_bytes && word.target == target) return true;
        return false;
    };
    BOOST_TEST(told(4 * 8, AmbiguousTarget::free_space));
    BOOST_TEST(told(6 * 8, AmbiguousTarget::metadata));
    BOOST_TEST(told(8 * 8, AmbiguousTarget::beyond));
    BOOST_TEST(told(14 * 8 + 4, AmbiguousTarget::unaligned));
}

BOOST_AUTO_TEST_CASE(ambiguous_words_can_be_refused_and_then_the_heap_stays) {
    const Planted planted(path);
    RebaseOptions options = guessing();
    options.refuse_ambiguous = true;
    const auto pages = file_bytes(path).substr(8192);
    BOOST_TEST((code_of([&] { rebase(path, anywhere, options); }) == errc::foreign_pointer));
    options.dry_run = true;
    BOOST_TEST((code_of([&] { rebase(path, anywhere, options); }) == errc::foreign_pointer));
    BOOST_TEST(address_of(path) == planted.base);
    BOOST_TEST((file_bytes(path).substr(8192) == pages));
    options.listed_max = 0;
    options.refuse_ambiguous = false;
    BOOST_TEST(rebase(path, anywhere, options).ambiguous_words == 4U);
    const std::filesystem::path clean = directory / "clean.tyn";
    {
        ArchiveHeap heap(create_only, clean, small());
        heap.construct<taiyen::list<int>>("numbers").assign({1, 2, 3});
        heap.snapshot();
        heap.close();
    }
    options.dry_run = false;
    options.refuse_ambiguous = true;
    BOOST_TEST(rebase(clean, anywhere, options).moved);
}

BOOST_AUTO_TEST_CASE(a_history_is_refused_or_ends_with_the_move) {
    const auto make = [&](const std::filesystem::path& file) {
        SnapshotHeap heap(create_only, file, small());
        heap.attach_undo();
        for (int i = 0; i < 3; ++i) {
            UndoScope scope(heap, "push");
            heap.find_or_construct<taiyen::vector<int>>("numbers").push_back(i);
        }
        heap.snapshot();
        heap.close();
    };
    make(path);
    const std::uintptr_t from = address_of(path);
    BOOST_TEST((code_of([&] { rebase(path, anywhere, guessing()); }) == errc::history_conflict));
    {
        SnapshotHeap heap(open_only, path, small());
        BOOST_TEST(address_of(path) == from);
        heap.attach_undo();
        BOOST_TEST(heap.undo_steps().size() == 3U);
        heap.close();
    }
    RebaseOptions options = guessing();
    options.dry_run = true;
    BOOST_TEST(rebase(path, anywhere, options).has_history);
    options = guessing();
    options.drop_history = true;
    BOOST_TEST(rebase(path, anywhere, options).moved);
    SnapshotHeap heap(open_only, path, small());
    BOOST_TEST(heap.find<taiyen::vector<int>>("numbers")->size() == 3U);
    heap.attach_undo();
    BOOST_TEST(heap.undo_steps().empty());
    BOOST_TEST(heap.verify().ok());
    heap.close();
}

BOOST_AUTO_TEST_CASE(keys_hashed_by_their_address_are_refused_unless_accepted) {
    {
        ArchiveHeap heap(create_only, path, small());
        auto& items = heap.construct<taiyen::unordered_map<int, taiyen::unordered_set<Item*>>>("items");
        items[1].insert(heap.make<Item>());
        heap.construct<taiyen::map<Item*, int>>("ordered");  // comes in the same order as before
        heap.construct<taiyen::unordered_map<taiyen::string, Item*>>("values");
        heap.snapshot();
        heap.close();
    }
    BOOST_TEST((code_of([&] { rebase(path, anywhere, guessing()); }) == errc::type_mismatch));
    RebaseOptions options = guessing();
    options.accept_hashed_by_address = true;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.moved);
    BOOST_TEST((report.hashed_by_address == std::vector<std::string>{"items"}));
}

BOOST_AUTO_TEST_CASE(a_transactional_heap_moves_with_all_that_its_log_held_after_a_crash) {
    const std::filesystem::path left = directory / "left";
    std::filesystem::create_directory(left);
    {
        TransactionalHeap heap(create_only, path, small());
        for (unsigned i = 0; i < 5; ++i) {
            Transaction tx(heap);
            change_both(heap, i);
            tx.commit();
        }
        const auto saves = HeapAccess::file(heap).files().hold_saves();
        for (const char* suffix : {"", ".log"}) std::filesystem::copy_file(path.string() + suffix, (left / "heap.tyn").string() + suffix);
    }
    path = left / "heap.tyn";
    BOOST_REQUIRE(!read_parameters(path).clean);
    const RebaseReport report = rebase(path, anywhere, guessing());
    BOOST_TEST(report.moved);
    check_at<TransactionalHeap>(report.new_address, 0);
    TransactionalHeap heap(open_only, path, small());
    {
        Transaction tx(heap);
        change_both(heap, 99);
        tx.commit();
    }
    BOOST_TEST(describe(*heap.find<Stored>("document")) == describe(model));
    heap.close();
}

BOOST_AUTO_TEST_CASE(places_where_no_heap_can_lie_are_refused_by_their_own_codes) {
    create<ArchiveHeap>(10);
    const std::uintptr_t from = address_of(path);
    for (const std::uintptr_t wrong : {from + 4096, std::uintptr_t{1} << 47U, (std::uintptr_t{1} << 47U) - (std::uintptr_t{4} << 30U)})
        BOOST_TEST((code_of([&] { rebase(path, wrong, guessing()); }) == errc::invalid_argument), wrong);
    {
        const vm::Reservation taken(near(from, 30), 4096);
        BOOST_TEST((code_of([&] { rebase(path, near(from, 30), guessing()); }) == errc::address_in_use));
    }
    {
        const ArchiveHeap open(open_only, path, small());
        BOOST_TEST((code_of([&] { rebase(path, anywhere, guessing()); }) == errc::busy));
    }
    BOOST_TEST((code_of([&] { rebase(directory / "none.tyn", anywhere, guessing()); }) == errc::not_found));
    check_at(from, 11);
}

BOOST_AUTO_TEST_CASE(a_damaged_page_stops_the_move_before_anything_is_written) {
    create<ArchiveHeap>(12);
    const std::uintptr_t from = address_of(path);
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(12'288 + 20 * 4096 + 100);
        file.put('!');
        file.put('?');
    }
    BOOST_TEST((code_of([&] { rebase(path, anywhere, guessing()); }) == errc::corrupt));
    BOOST_TEST(address_of(path) == from);
}

BOOST_AUTO_TEST_CASE(a_heap_without_a_pointer_moves_too) {
    for (const bool with_data : {false, true}) {
        const std::filesystem::path file = directory / (with_data ? "a.tyn" : "b.tyn");
        if (with_data)
            SnapshotHeap(create_only, file, small()).close();
        else
            ArchiveHeap(create_only, file, small()).close();
        const RebaseReport report = rebase(file, anywhere, guessing());
        BOOST_TEST(report.moved);
        BOOST_TEST(report.pointers == 0U);
        ArchiveHeap heap(open_only, file, small());
        BOOST_TEST(address_of(file) == report.new_address);
        BOOST_TEST(heap.verify().ok());
        heap.close();
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::transfer::test
