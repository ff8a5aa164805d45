// Heaps that get another address, capacity and kind on their way, or whose blocks are laid close together, in any combination: what comes out holds what the model holds, and nothing is mapped where
// the old heap lay, so that a pointer that was forgotten ends the test with a signal.

#include <boost/test/unit_test.hpp>

#include <random>

#include "containers/declared_document.hpp"
#include "seed.hpp"
#include "transfer/transfer_fixture.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer::test {
namespace {

using Stored = Document<InHeap>;

std::uintptr_t another(std::uintptr_t address, std::uintptr_t slots = 40) {
    const vm::Zone zone = vm::default_zone();
    const std::uintptr_t shift = slots << 32U;
    return address + shift + (std::uintptr_t{64} << 30U) < zone.last ? address + shift : address - shift;
}

struct MovedFixture {
    ScratchDirectory directory;
    Document<InMemory> model;
    unsigned seed = static_cast<unsigned>(taiyen::test::seed_of_run());

    std::vector<std::byte> make(HeapKind kind) {
        CompressOptions plain;
        plain.codec = Codec::lz4;
        return compressed(kind, directory / "from.tyn", model, seed, plain);
    }
};

/// What tells which words are pointers.
enum class Told { guessed, by_shapes, declared };

void set(PointerOptions& pointers, Told told) {
    pointers.by_shapes = told == Told::by_shapes;
    pointers.conservative = told == Told::guessed;
    if (told == Told::declared) pointers.types.add<Stored>();
}

BOOST_FIXTURE_TEST_SUITE(moved_heaps, MovedFixture)

BOOST_AUTO_TEST_CASE(of_every_kind_into_every_kind_are_as_their_model_wherever_they_lie) {
    unsigned turn = 0;
    for (const Told told : {Told::guessed, Told::by_shapes, Told::declared}) {
        for (const Defragment order : {Defragment::no, Defragment::by_address, Defragment::by_reachability}) {
            if (order != Defragment::no && told == Told::guessed) continue;  // refused
            for (const HeapKind from : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
                const auto to = static_cast<HeapKind>(1 + (static_cast<unsigned>(from) + turn++) % 3);
                BOOST_TEST_CONTEXT(name_of(from) << " into " << name_of(to) << ", told " << static_cast<int>(told) << ", order "
                                                 << static_cast<int>(order)) {
                    std::filesystem::remove_all(directory.path());
                    std::filesystem::create_directories(directory.path());
                    model = {};
                    const std::vector<std::byte> stream = make(from);
                    ExpandOptions options;
                    options.kind = to;
                    options.log_capacity = 1U << 20U;
                    options.defragment = order;
                    options.capacity = turn % 2 == 0 ? 0 : std::size_t{128} << 20U;
                    set(options.pointers, told);
                    const std::filesystem::path path = directory / "to.tyn";
                    const std::uintptr_t old = read_parameters(directory / "from.tyn").address;
                    options.address = turn % 3 == 0 ? anywhere : another(old);
                    const Expanded said = expand(std::span(stream), path, options);
                    BOOST_TEST(said.address == old);
                    BOOST_TEST(said.move.old_address == old);
                    BOOST_TEST(said.move.new_address != old);
                    BOOST_TEST(said.move.by_declared_types == (told != Told::guessed));
                    BOOST_TEST(said.move.pointers > 100U);
                    BOOST_TEST(said.move.unreached_blocks == 0U);
                    BOOST_TEST(said.move.blocks.ranges().empty() == (order == Defragment::no));
                    const HeapParameters made = read_parameters(path);
                    BOOST_TEST(made.address == said.move.new_address);
                    BOOST_CHECK(made.kind == to);
                    BOOST_TEST(made.capacity_bytes == (options.capacity == 0 ? small_heap().capacity : options.capacity));
                    BOOST_TEST(!vm::mapping_in(old, small_heap().capacity).has_value());
                    expect_whole(to, path, model, seed);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(tell_where_everything_lies) {
    const std::vector<std::byte> stream = make(HeapKind::archive);
    std::vector<const taiyen::string*> names;
    std::vector<std::string> expected;
    const int* number = nullptr;
    {
        ArchiveHeap heap(open_only, directory / "from.tyn");
        const Stored& document = *heap.find<Stored>("document");
        for (const auto& [name, part] : document.parts) {
            names.push_back(&part.name);
            expected.emplace_back(part.name.data(), part.name.size());
        }
        if (!document.numbers.empty()) number = &document.numbers.back();
        heap.close();
    }
    BOOST_TEST_REQUIRE(!names.empty());
    for (const Defragment order : {Defragment::no, Defragment::by_reachability}) {
        for (const Told told : {Told::guessed, Told::by_shapes, Told::declared}) {
            if (order != Defragment::no && told == Told::guessed) continue;  // refused
            ExpandOptions options;
            options.address = anywhere;
            options.defragment = order;
            set(options.pointers, told);
            const std::filesystem::path path = directory / "to.tyn";
            const Relocation moved = expand(std::span(stream), path, options).move.relocation();
            std::vector<const taiyen::string*> now = names;
            const int* number_now = number;
            moved.visit(now, number_now);
            {
                ArchiveHeap heap(open_read_only, path);
                for (std::size_t i = 0; i < now.size(); ++i) BOOST_TEST(std::string(now[i]->data(), now[i]->size()) == expected[i]);
                if (number != nullptr) BOOST_TEST(number_now == &heap.find<Stored>("document")->numbers.back());
            }
            std::filesystem::remove(path);
        }
    }
}

BOOST_AUTO_TEST_CASE(that_were_full_of_holes_end_without_any) {
    // Blocks of all sizes, most of which go again; nodes that lead to one another stay.
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<std::byte> stream;
    std::map<int, std::string> kept;
    std::size_t live = 0;
    {
        ArchiveHeap heap(create_only, directory / "from.tyn", small_heap());
        auto& texts = heap.construct<taiyen::map<int, taiyen::string>>("texts");
        std::vector<void*> blocks;
        for (int i = 0; i < 5'000; ++i) {
            const std::string text(random() % 200, static_cast<char>('a' + i % 26));
            texts[i] = text.c_str();
            for (int n = 0; n < 3; ++n) blocks.push_back(heap.allocate(random() % 16 == 0 ? random() % 9000 : random() % 300));
            if (i % 15 == 0) kept[i] = text;
        }
        for (int i = 0; i < 5'000; ++i)
            if (i % 15 != 0) texts.erase(i);
        for (void* const block : blocks) heap.deallocate(block);
        heap.snapshot();
        stream = compress(heap);
        live = heap.stats().live_bytes;
        BOOST_TEST(availability(heap, 65'536) < 0.95);  // 0.85 to 0.9
        BOOST_TEST_REQUIRE(heap.stats().extent_bytes > 10 * live);
        heap.close();
    }
    for (const Defragment order : {Defragment::by_address, Defragment::by_reachability}) {
        ExpandOptions options;
        options.defragment = order;
        options.capacity = std::size_t{4} << 20U;  // smaller than what was in use
        options.pointers.types.add<taiyen::map<int, taiyen::string>>();
        const std::filesystem::path path = directory / "to.tyn";
        const Expanded said = expand(std::span(stream), path, options);
        BOOST_TEST(said.move.blocks.ranges().size() > 500U);
        ArchiveHeap heap(open_only, path);
        std::map<int, std::string> found;
        for (const auto& [number, text] : *heap.find<taiyen::map<int, taiyen::string>>("texts")) found[number].assign(text.data(), text.size());
        BOOST_TEST((found == kept));
        BOOST_TEST(heap.verify().ok());
        BOOST_TEST(heap.stats().live_bytes == live);
        // What is live, its metadata, and a few pages that aren't full.
        BOOST_TEST(heap.stats().extent_bytes < live + live / 10 + (std::size_t{96} << 10U));
        for (const ByteCount bytes : {64U, 4096U, 65'536U}) BOOST_TEST(availability(heap, bytes) >= 0.98, "of " << bytes << " bytes");
        heap.close();
        std::filesystem::remove(path);
    }
}

BOOST_AUTO_TEST_CASE(are_refused_with_nothing_left_where_options_forbid_it) {
    std::vector<std::byte> stream;
    std::uintptr_t old = 0;
    {
        ArchiveHeap heap(create_only, directory / "from.tyn", small_heap());
        old = read_parameters(directory / "from.tyn").address;
        auto& words = heap.construct<std::array<std::uint64_t, 4>>("words");
        words = {old + 8, 0, 0, 0};
        heap.construct<taiyen::set<int*>>("ordered").insert(heap.make<int>(7));
        heap.snapshot();
        stream = compress(heap);
        heap.close();
    }
    const std::filesystem::path path = directory / "to.tyn";
    const auto refusal = [&](const ExpandOptions& options) {
        try {
            expand(std::span(stream), path, options);
        } catch (const Error& error) {
            BOOST_TEST(!std::filesystem::exists(path));
            return static_cast<errc>(error.code().value());
        }
        std::filesystem::remove(path);
        return errc{};
    };
    ExpandOptions options;
    options.address = anywhere;
    BOOST_CHECK(refusal(options) == errc{});  // shapes tell
    options.defragment = Defragment::by_address;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);  // the set would be in another order
    options.pointers.accept_hashed_by_address = true;
    BOOST_CHECK(refusal(options) == errc{});
    options = {};
    options.address = anywhere;
    options.pointers.by_shapes = false;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);  // to be guessed
    options.pointers.conservative = true;
    BOOST_CHECK(refusal(options) == errc{});
    options.pointers.refuse_ambiguous = true;
    BOOST_CHECK(refusal(options) == errc::foreign_pointer);
    options.pointers.refuse_ambiguous = false;
    options.defragment = Defragment::by_address;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);  // types are not declared
    options.pointers.accept_hashed_by_address = true;
    options.capacity = 4096;
    BOOST_CHECK(refusal(options) == errc::invalid_argument);
    options.capacity = 0;
    options.defragment = Defragment::no;
    options.address = old + 4096;
    BOOST_CHECK(refusal(options) == errc::invalid_argument);
    options.address = anywhere;
    options.defragment = Defragment::by_address;
    options.pointers.types.add<std::array<std::uint64_t, 4>>();
    BOOST_CHECK(refusal(options) == errc::type_mismatch);  // nothing is guessed where blocks move one by one
    options.pointers.conservative = false;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);  // of the set nothing is said
    options.pointers.types.add<taiyen::set<int*>>();
    BOOST_CHECK(refusal(options) == errc{});
    options.pointers.accept_hashed_by_address = false;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);
    options.defragment = Defragment::no;
    BOOST_CHECK(refusal(options) == errc{});  // the order is as before
    const vm::Reservation taken(old, 4096);
    BOOST_CHECK(refusal(options) == errc::address_in_use);
}

BOOST_AUTO_TEST_CASE(that_do_not_fit_into_their_new_capacity_are_refused) {
    std::vector<std::byte> stream;
    {
        ArchiveHeap heap(create_only, directory / "from.tyn", small_heap());
        heap.construct<taiyen::vector<int>>("numbers", 500'000U);
        heap.snapshot();
        stream = compress(heap);
        heap.close();
    }
    ExpandOptions options;
    options.defragment = Defragment::by_address;
    options.pointers.types.add<taiyen::vector<int>>();
    options.capacity = std::size_t{1} << 20U;
    BOOST_CHECK_EXCEPTION(expand(std::span(stream), directory / "to.tyn", options), Error, has_code(errc::invalid_argument));
    BOOST_TEST(!std::filesystem::exists(directory / "to.tyn"));
    options.capacity = std::size_t{8} << 20U;
    expand(std::span(stream), directory / "to.tyn", options);
    BOOST_TEST(read_parameters(directory / "to.tyn").capacity_bytes == options.capacity);
}

BOOST_AUTO_TEST_CASE(that_are_converted_without_a_stream_are_as_their_model_and_the_old_one_stays) {
    for (const HeapKind from : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        for (const HeapKind to : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
            BOOST_TEST_CONTEXT(name_of(from) << " into " << name_of(to)) {
                std::filesystem::remove_all(directory.path());
                std::filesystem::create_directories(directory.path());
                model = {};
                make(from);
                const std::filesystem::path path = directory / "to.tyn";
                const std::uintptr_t old = read_parameters(directory / "from.tyn").address;
                ConvertOptions options;
                options.kind = to;
                options.log_capacity = 1U << 20U;
                const unsigned turn = static_cast<unsigned>(from) * 3 + static_cast<unsigned>(to);
                options.defragment = static_cast<Defragment>(turn % 3);
                if (turn % 2 == 0) options.address = anywhere;
                if (turn % 4 >= 2 || options.defragment != Defragment::no) options.pointers.types.add<Stored>();
                options.pointers.conservative = options.pointers.types.empty();
                const Expanded said = convert(directory / "from.tyn", path, options);
                BOOST_CHECK(said.kind == from);
                BOOST_TEST(said.names == 1U);
                BOOST_TEST((said.move.new_address != old) == (turn % 2 == 0));
                BOOST_CHECK(read_parameters(path).kind == to);
                BOOST_TEST(read_parameters(path).serial == said.serial.value);
                BOOST_TEST(read_parameters(path).uuid != said.uuid);
                {
                    ArchiveHeap heap(open_read_only, directory / "from.tyn");
                    BOOST_TEST(content_of(heap) == describe(model));
                    BOOST_TEST(heap.verify().ok());
                }
                expect_whole(to, path, model, seed);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(that_have_a_history_or_are_open_or_damaged_are_not_converted) {
    const std::filesystem::path from = directory / "from.tyn";
    const std::filesystem::path path = directory / "to.tyn";
    {
        SnapshotHeap heap(create_only, from, small_heap());
        heap.attach_undo();
        {
            UndoScope scope(heap, "push");
            heap.construct<taiyen::vector<int>>("numbers", 3U, 7);
        }
        heap.snapshot();
        BOOST_CHECK_EXCEPTION(convert(from, path), Error, has_code(errc::busy));
        heap.close();
    }
    BOOST_CHECK_EXCEPTION(convert(from, path), Error, has_code(errc::history_conflict));
    BOOST_TEST(!std::filesystem::exists(path));
    ConvertOptions options;
    options.drop_history = true;
    convert(from, path, options);
    BOOST_CHECK_EXCEPTION(convert(from, path, options), Error, has_code(errc::already_exists));
    BOOST_CHECK_EXCEPTION(convert(directory / "none.tyn", directory / "x.tyn", options), Error, has_code(errc::not_found));
    SnapshotHeap heap(open_only, path);
    BOOST_TEST(heap.find<taiyen::vector<int>>("numbers")->at(2) == 7);
    heap.attach_undo();
    BOOST_TEST(heap.undo_steps().empty());
    heap.close();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
