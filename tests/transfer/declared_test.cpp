// Moves by declared types: exactly the words that types say are pointers change, in every container and in structs, wherever they lead.

#include <boost/test/unit_test.hpp>

#include <array>
#include <complex>
#include <tuple>

#include "containers/declared_document.hpp"
#include "transfer/transfer_fixture.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer::test {

struct Link {
    int value = 0;
    Link* next = nullptr;
    std::uint64_t number = 0;  ///< may look like an address
};

struct Grid {
    taiyen::string* cells = nullptr;
    std::size_t count = 0;
    int* begin = nullptr;
    int* end = nullptr;
};

struct Everything {
    taiyen::vector<bool> bits;
    taiyen::deque<int> numbers;
    taiyen::u16string wide;
    std::array<taiyen::string, 3> three;
    taiyen::string plain[2];
    std::tuple<int, taiyen::vector<taiyen::vector<Link*>>> tuple;
    std::variant<double, taiyen::list<taiyen::string>> variant;
    std::optional<taiyen::map<int, taiyen::deque<taiyen::string>>> optional;
    std::complex<double> complex;
    taiyen::unordered_map<int, int> one_bucket;
    const void* opaque = nullptr;
};

}  // namespace taiyen::transfer::test

template <>
struct taiyen::pointers_of<taiyen::transfer::test::Link> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Link& link, Visit visit) {
        visit(link.next);
    }
};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Grid> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Grid& grid, Visit visit) {
        visit(elements(grid.cells, grid.count), range(grid.begin, grid.end));
    }
};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Everything> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Everything& all, Visit visit) {
        visit(all.bits, all.numbers, all.wide, all.three, all.plain, all.tuple, all.variant, all.optional, all.complex, all.one_bucket, all.opaque);
    }
};

namespace taiyen::transfer::test {
namespace {

using Stored = Document<InHeap>;
using Words = std::array<std::uint64_t, 8>;

struct DeclaredFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";

    template <class Fill>
    void make(Fill&& fill) {
        ArchiveHeap heap(create_only, path, small_heap());
        fill(heap);
        heap.snapshot();
        heap.close();
    }
    errc refusal(const RebaseOptions& options) {
        try {
            rebase(path, anywhere, options);
        } catch (const Error& error) {
            return static_cast<errc>(error.code().value());
        }
        return errc{};
    }
    /// The heap, rebased, and as `expand` lays it out anew: `look` sees each of them.
    template <class Look>
    void move_in_all_ways(const DeclaredTypes& types, Look&& look) {
        const std::vector<std::byte> stream = [&] {
            ArchiveHeap heap(open_read_only, path);
            return compress(heap);
        }();
        for (const Defragment order : {Defragment::by_address, Defragment::by_reachability}) {
            ExpandOptions options;
            options.address = anywhere;
            options.defragment = order;
            options.pointers.types = types;
            const Expanded said = expand(std::span(stream), directory / "laid.tyn", options);
            ArchiveHeap heap(open_only, directory / "laid.tyn");
            look(heap, said.move);
            heap.close();
            std::filesystem::remove(directory / "laid.tyn");
        }
        RebaseOptions options;
        options.types = types;
        const RebaseReport report = rebase(path, anywhere, options);
        BOOST_TEST(report.moved);
        ArchiveHeap heap(open_only, path);
        look(heap, report);
        heap.close();
    }
};

BOOST_FIXTURE_TEST_SUITE(declared_pointers, DeclaredFixture)

BOOST_AUTO_TEST_CASE(of_every_container_change_and_the_document_is_as_its_model) {
    Document<InMemory> model;
    make([&](ArchiveHeap& heap) { edit(heap, model, 1, 4); });
    DeclaredTypes types;
    types.add<Stored>();
    move_in_all_ways(types, [&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.by_declared_types);
        BOOST_TEST(report.pointers > 500U);
        BOOST_TEST(report.ambiguous_words == 0U);
        BOOST_TEST(report.unreached_blocks == 0U);
        BOOST_TEST(content_of(heap) == describe(model));
        BOOST_TEST(heap.verify().ok());
        Document<InMemory> copy = model;
        edit(heap, copy, 9, 2);  // the structures are whole, too
        BOOST_TEST(content_of(heap) == describe(copy));
    });
}

BOOST_AUTO_TEST_CASE(change_and_numbers_with_the_same_value_do_not) {
    std::uint64_t value = 0;
    make([&](ArchiveHeap& heap) {
        auto& first = heap.construct<Link>("first");
        first.next = heap.make<Link>();
        value = reinterpret_cast<std::uintptr_t>(first.next);
        first.number = value;
        auto& words = heap.construct<Words>("words");
        words.fill(value);
        heap.construct<taiyen::vector<std::uint64_t>>("numbers", 100U, value);
    });
    DeclaredTypes types;
    types.add<Link, Words, taiyen::vector<std::uint64_t>>();
    move_in_all_ways(types, [&](ArchiveHeap& heap, const RebaseReport& report) {
        const Link& first = *heap.find<Link>("first");
        BOOST_TEST(first.number == value);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(first.next) == report.relocation().map(value));
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(first.next) != value);
        for (const std::uint64_t word : *heap.find<Words>("words")) BOOST_TEST(word == value);
        for (const std::uint64_t word : *heap.find<taiyen::vector<std::uint64_t>>("numbers")) BOOST_TEST(word == value);
    });
}

BOOST_AUTO_TEST_CASE(conservatively_such_a_number_changes) {
    std::uint64_t value = 0;
    make([&](ArchiveHeap& heap) {
        value = reinterpret_cast<std::uintptr_t>(heap.make<Link>());
        heap.construct<Words>("words").fill(value);
    });
    RebaseOptions options;
    options.by_shapes = false;
    options.conservative = true;
    const RebaseReport report = rebase(path, anywhere, options);
    ArchiveHeap heap(open_read_only, path);
    for (const std::uint64_t word : *heap.find<Words>("words")) BOOST_TEST(word == report.relocation().map(value));
}

BOOST_AUTO_TEST_CASE(lead_on_through_rings_and_long_lists_by_hand) {
    constexpr int count = 20'000;
    make([&](ArchiveHeap& heap) {
        auto& first = heap.construct<Link>("first");
        Link* last = &first;
        for (int i = 1; i < count; ++i) {
            last->next = heap.make<Link>();
            last = last->next;
            last->value = i;
            last->number = reinterpret_cast<std::uintptr_t>(&first);
        }
        last->next = &first;
    });
    DeclaredTypes types;
    types.add<Link>();
    move_in_all_ways(types, [&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        BOOST_TEST(report.pointers == static_cast<std::uint64_t>(count));
        const Link* const first = heap.find<Link>("first");
        const Link* link = first;
        for (int i = 0; i < count; ++i, link = link->next) BOOST_REQUIRE(link->value == i);
        BOOST_TEST(link == first);
        BOOST_TEST(first->next->number == report.old_address + (first->next->number - report.old_address));
    });
}

BOOST_AUTO_TEST_CASE(of_arrays_by_hand_and_of_all_wrappers_change) {
    make([&](ArchiveHeap& heap) {
        auto& grid = heap.construct<Grid>("grid");
        grid.count = 20;
        grid.cells = static_cast<taiyen::string*>(heap.allocate(grid.count * sizeof(taiyen::string)));
        for (std::size_t i = 0; i < grid.count; ++i)
            heap.allocator<taiyen::string>().construct(grid.cells + i, i % 2 == 0 ? "short" : "a text that is longer than a small buffer");
        grid.begin = static_cast<int*>(heap.allocate(64));
        heap.make<std::array<int, 16>>();  // what the end of the array before it may be taken for
        grid.end = grid.begin + 16;
        for (int i = 0; i < 16; ++i) grid.begin[i] = i;
        auto& all = heap.construct<Everything>("everything");
        all.bits.assign(1000, true);
        for (int i = 0; i < 3000; ++i) i % 2 == 0 ? all.numbers.push_back(i) : all.numbers.push_front(-i);
        all.wide = u"wide text that is longer than a small buffer";
        all.three[1] = "the second of three, longer than a small buffer";
        all.plain[1] = "short";
        Link* const link = heap.make<Link>();
        link->value = 99;
        std::get<1>(all.tuple).resize(3);
        std::get<1>(all.tuple)[1].assign(4, link);
        all.variant.emplace<1>().emplace_back("in a list");
        all.optional.emplace()[5].emplace_back("in a deque in a map");
        all.one_bucket.rehash(0);
        all.one_bucket[1] = 11;
        all.opaque = link;
    });
    DeclaredTypes types;
    types.add<Grid, Everything>();
    move_in_all_ways(types, [&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 1U);  // the array that nobody leads to
        const Grid& grid = *heap.find<Grid>("grid");
        for (std::size_t i = 0; i < grid.count; ++i)
            BOOST_TEST(std::string_view(grid.cells[i]) == (i % 2 == 0 ? "short" : "a text that is longer than a small buffer"));
        BOOST_TEST(grid.end - grid.begin == 16);
        for (int i = 0; i < 16; ++i) BOOST_TEST(grid.begin[i] == i);
        const Everything& all = *heap.find<Everything>("everything");
        BOOST_TEST(all.bits.size() == 1000U);
        BOOST_TEST(std::count(all.bits.begin(), all.bits.end(), true) == 1000);
        BOOST_TEST(all.numbers.size() == 3000U);
        BOOST_TEST(all.numbers.front() == -2999);
        BOOST_TEST(all.numbers.back() == 2998);
        BOOST_TEST((all.wide == u"wide text that is longer than a small buffer"));
        BOOST_TEST(std::string_view(all.three[1]) == "the second of three, longer than a small buffer");
        BOOST_TEST(std::string_view(all.plain[1]) == "short");
        const auto* const link = static_cast<const Link*>(all.opaque);
        BOOST_TEST(link->value == 99);
        for (const Link* const same : std::get<1>(all.tuple)[1]) BOOST_TEST(same == link);
        BOOST_TEST(std::string_view(std::get<1>(all.variant).front()) == "in a list");
        BOOST_TEST(std::string_view(all.optional->at(5).front()) == "in a deque in a map");
        BOOST_TEST(all.one_bucket.at(1) == 11);
    });
}

BOOST_AUTO_TEST_CASE(of_sets_of_ids_change_whatever_their_shape) {
    std::vector<std::int64_t> ids;
    for (std::int64_t chunk = 0; chunk < 4000; ++chunk) {
        const std::int64_t first = chunk * 3 << 16;
        const std::int64_t count = chunk % 4 == 0 ? 3 : chunk % 4 == 1 ? 40 : 200;
        for (std::int64_t i = 0; i < count; ++i) ids.push_back(first + (chunk % 4 == 2 ? i * 300 : chunk % 4 == 3 ? i / 2 * 100 + i % 2 : i * i));
    }
    for (std::int64_t i = 0; i < 50'000; ++i) ids.push_back((std::int64_t{1} << 40) + 2 * i);
    make([&](ArchiveHeap& heap) {
        auto& many = heap.construct<object_id_set<>>("many");
        for (const std::int64_t id : ids) many.insert(id);
        heap.construct<object_id_set<>>("none");
        heap.construct<taiyen::map<int, object_id_set<>>>("of sets")[7].insert(many.begin(), many.end());
    });
    DeclaredTypes types;
    types.add<object_id_set<>, taiyen::map<int, object_id_set<>>>();
    move_in_all_ways(types, [&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        BOOST_TEST(report.ambiguous_words == 0U);
        BOOST_TEST(report.pointers > 4000U);
        BOOST_TEST(heap.find<object_id_set<>>("none")->empty());
        for (auto* const set : {heap.find<object_id_set<>>("many"), &heap.find<taiyen::map<int, object_id_set<>>>("of sets")->at(7)}) {
            BOOST_TEST((std::vector<std::int64_t>(set->begin(), set->end()) == ids));
            BOOST_TEST(std::equal(ids.rbegin(), ids.rend(), std::make_reverse_iterator(set->end())));
            for (std::size_t i = 0; i < ids.size(); i += 2) set->erase(ids[i]);
            BOOST_TEST(set->size() == ids.size() / 2);
            BOOST_TEST(set->is_sound());
        }
    });
}

BOOST_AUTO_TEST_CASE(at_the_end_of_a_block_go_with_it_and_not_with_its_neighbour) {
    // Vectors that fill their blocks, one beside the other: the end of each is the beginning of the next.
    using Vectors = taiyen::vector<taiyen::vector<std::uint64_t>>;
    unsigned touching = 0;
    make([&](ArchiveHeap& heap) {
        auto& vectors = heap.construct<Vectors>("vectors", 200U);
        for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i].assign(4, i);
        for (std::size_t i = 0; i + 1 < vectors.size(); ++i) touching += vectors[i].data() + 4 == vectors[i + 1].data() ? 1 : 0;
        // So that they don't come in the same order again.
        for (std::size_t i = 0; i + 1 < vectors.size(); i += 2) std::swap(vectors[i], vectors[i + 1]);
    });
    BOOST_TEST_REQUIRE(touching > 50U);
    DeclaredTypes types;
    types.add<Vectors>();
    move_in_all_ways(types, [&](ArchiveHeap& heap, const RebaseReport&) {
        Vectors& vectors = *heap.find<Vectors>("vectors");
        for (std::size_t i = 0; i < vectors.size(); ++i) {
            BOOST_REQUIRE(vectors[i].size() == 4U);
            BOOST_REQUIRE(vectors[i].capacity() == 4U);
            BOOST_REQUIRE(vectors[i][3] == (i ^ 1U));
        }
    });
}

BOOST_AUTO_TEST_CASE(that_dangle_stay_and_are_told) {
    std::uint64_t value = 0;
    make([&](ArchiveHeap& heap) {
        auto& first = heap.construct<Link>("first");
        void* const between = heap.allocate(sizeof(Link), 8);  // else it is the end of the first one
        Link* const gone = heap.make<Link>();
        heap.deallocate(between);
        first.next = gone;
        value = reinterpret_cast<std::uintptr_t>(gone);
        heap.deallocate(gone);
    });
    RebaseOptions options;
    options.types.add<Link>();
    options.refuse_ambiguous = true;
    BOOST_CHECK(refusal(options) == errc::foreign_pointer);
    options.refuse_ambiguous = false;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.ambiguous_words == 1U);
    BOOST_TEST_REQUIRE(report.ambiguous.size() == 1U);
    BOOST_TEST(report.ambiguous[0].value == value);
    BOOST_CHECK(report.ambiguous[0].target == AmbiguousTarget::free_space);
    ArchiveHeap heap(open_read_only, path);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(heap.find<Link>("first")->next) == value);
}

BOOST_AUTO_TEST_CASE(of_named_objects_whose_type_nobody_declared_are_an_error) {
    make([&](ArchiveHeap& heap) {
        heap.construct<Link>("first");
        heap.construct<taiyen::string>("name", "x");
    });
    RebaseOptions options;
    options.by_shapes = false;
    options.types.add<Link>();
    BOOST_CHECK(refusal(options) == errc::type_mismatch);
    options.types.add<taiyen::string>();
    BOOST_CHECK(refusal(options) == errc{});
}

BOOST_AUTO_TEST_CASE(as_keys_that_are_hashed_are_refused_unless_accepted) {
    using Items = taiyen::map<int, taiyen::unordered_set<Link*>>;
    make([&](ArchiveHeap& heap) { heap.construct<Items>("items")[1].insert(heap.make<Link>()); });
    RebaseOptions options;
    options.types.add<Items>();
    BOOST_CHECK(refusal(options) == errc::type_mismatch);
    options.accept_hashed_by_address = true;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST((report.hashed_by_address == std::vector<std::string>{"items"}));
    ArchiveHeap heap(open_only, path);
    const taiyen::unordered_set<Link*>& links = heap.find<Items>("items")->at(1);
    BOOST_TEST((*links.begin())->value == 0);
    heap.close();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
