// Moves by declared types where it is easy to go wrong: shapes at the edge of what containers and descriptions may be, and bytes that are not what their type says.

#include <boost/test/unit_test.hpp>

#include <array>
#include <map>
#include <random>

#include "containers/declared_document.hpp"
#include "containers/declared_shapes.hpp"
#include "heap/engine.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
#include "transfer/pointer_finder.hpp"
#include "transfer/transfer_fixture.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer::test {

using taiyen::test::Wide;

/// Leads on by an array of one: a ring or a long list of them must not nest.
struct ByArray {
    ByArray* next = nullptr;
    int value = 0;
};
/// A tree by hand, children in arrays that several parents may share.
struct Branch {
    Branch* children = nullptr;
    std::size_t count = 0;
    int* leaf = nullptr;
};
/// A tree of containers within one another.
struct Nested {
    int value = 0;
    taiyen::vector<Nested> inner;
};
/// Elements behind the object, in the same block: nothing that is stored points to them.
struct Row {
    std::size_t count = 0;
    taiyen::string first;
    taiyen::string* cells() { return &first; }
};
struct Tagged {
    std::uintptr_t link = 0;
};
#pragma pack(push, 1)
struct Packed {
    char c = 'p';
    int* pointer = nullptr;
};
#pragma pack(pop)
}  // namespace taiyen::transfer::test

template <>
struct taiyen::pointers_of<taiyen::transfer::test::ByArray> {
    template <class Visit>
    static void describe(taiyen::transfer::test::ByArray& object, Visit visit) {
        visit(elements(object.next, 1));
    }
};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Branch> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Branch& branch, Visit visit) {
        visit(elements(branch.children, branch.count), branch.leaf);
    }
};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Nested> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Nested& object, Visit visit) {
        visit(object.inner);
    }
};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Row> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Row& row, Visit visit) {
        taiyen::string* cells = row.cells();
        visit(elements(cells, row.count));
    }
};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Tagged> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Tagged& object, Visit visit) {
        auto* copy = reinterpret_cast<int*>(object.link & ~std::uintptr_t{1});
        visit(copy);
    }
};

namespace taiyen::transfer::test {
namespace {

const std::string long_text = "a text that is longer than a small buffer";

struct AttackedFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";

    template <class Fill>
    void make(Fill&& fill) {
        std::filesystem::remove(path);
        ArchiveHeap heap(create_only, path, small_heap());
        fill(heap);
        heap.snapshot();
        heap.close();
    }
    /// The heap as `convert` lays it out anew in both orders, and as it is rebased.
    template <class... T, class Look>
    void move_in_all_ways(Look&& look) {
        for (const Defragment order : {Defragment::by_address, Defragment::by_reachability}) {
            ConvertOptions options;
            options.address = anywhere;
            options.defragment = order;
            options.pointers.types.add<T...>();
            const Expanded said = convert(path, directory / "laid.tyn", options);
            ArchiveHeap heap(open_only, directory / "laid.tyn");
            look(heap, said.move);
            BOOST_TEST(heap.verify().ok());
            heap.close();
            std::filesystem::remove(directory / "laid.tyn");
        }
        RebaseOptions options;
        options.types.add<T...>();
        const RebaseReport report = rebase(path, anywhere, options);
        ArchiveHeap heap(open_only, path);
        look(heap, report);
        BOOST_TEST(heap.verify().ok());
        heap.close();
    }
    template <class... T>
    std::string refusal(errc code = errc::type_mismatch) {
        RebaseOptions options;
        options.types.add<T...>();
        try {
            rebase(path, anywhere, options);
        } catch (const Error& error) {
            BOOST_CHECK(error.code() == code);
            return error.what();
        }
        return "";
    }
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

BOOST_FIXTURE_TEST_SUITE(declared_hard_cases, AttackedFixture)

BOOST_AUTO_TEST_CASE(rings_and_long_lists_of_arrays_end) {
    constexpr int count = 200'000;
    make([&](ArchiveHeap& heap) {
        auto& first = heap.construct<ByArray>("first");
        ByArray* last = &first;
        for (int i = 1; i < count; ++i) {
            last->next = heap.make<ByArray>();
            last = last->next;
            last->value = i;
        }
        last->next = &first;
    });
    move_in_all_ways<ByArray>([&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        const ByArray* const first = heap.find<ByArray>("first");
        const ByArray* at = first;
        for (int i = 0; i < count; ++i, at = at->next) BOOST_REQUIRE(at->value == i);
        BOOST_TEST(at == first);
    });
}

BOOST_AUTO_TEST_CASE(arrays_that_many_share_are_walked_once) {
    // Sixty levels of two, each leading to the same level below: 2^60 ways down.
    make([&](ArchiveHeap& heap) {
        Branch* below = nullptr;
        for (int level = 0; level < 60; ++level) {
            auto* const pair = static_cast<Branch*>(heap.allocate(2 * sizeof(Branch)));
            pair[0] = Branch{below, below == nullptr ? 0U : 2U, heap.make<int>(level)};
            pair[1] = Branch{below, below == nullptr ? 0U : 1U, heap.make<int>(-level)};
            below = pair;
        }
        heap.construct<Branch>("root", Branch{below, 2, nullptr});
    });
    move_in_all_ways<Branch>([&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        const Branch* pair = heap.find<Branch>("root")->children;
        for (int level = 59; level >= 0; --level) {
            BOOST_REQUIRE(*pair[0].leaf == level);
            BOOST_REQUIRE(*pair[1].leaf == -level);
            BOOST_REQUIRE(pair[0].children == pair[1].children);
            pair = pair->children;
        }
        BOOST_TEST(pair == nullptr);
    });
}

BOOST_AUTO_TEST_CASE(arrays_that_lead_to_themselves_by_other_lengths_end_and_a_longer_one_is_walked_behind_a_shorter_one) {
    // In both orders of lengths; a walk that forgets the longest goes round for ever.
    for (const std::array<std::uint32_t, 3>& lengths : {std::array<std::uint32_t, 3>{2, 4, 3}, std::array<std::uint32_t, 3>{4, 2, 4}}) {
        using Roots = std::array<Branch, 3>;
        make([&](ArchiveHeap& heap) {
            auto* const ring = static_cast<Branch*>(heap.allocate(4 * sizeof(Branch)));
            for (std::size_t i = 0; i < 4; ++i) ring[i] = Branch{ring, lengths[i % 3], heap.make<int>(static_cast<int>(i))};
            auto& roots = heap.construct<Roots>("roots");
            for (std::size_t i = 0; i < 3; ++i) roots[i] = Branch{ring, lengths[i], nullptr};
        });
        move_in_all_ways<Roots>([&](ArchiveHeap& heap, const RebaseReport& report) {
            BOOST_TEST(report.unreached_blocks == 0U);
            for (const Branch& root : *heap.find<Roots>("roots")) {
                for (int i = 0; i < 4; ++i) {
                    BOOST_TEST_REQUIRE(root.children[i].children == root.children);
                    BOOST_TEST(*root.children[i].leaf == i);
                }
            }
        });
    }
}

BOOST_AUTO_TEST_CASE(arrays_that_begin_within_a_block_and_end_behind_it_are_refused) {
    make([&](ArchiveHeap& heap) {
        auto* const four = static_cast<Branch*>(heap.allocate(4 * sizeof(Branch)));
        for (int i = 0; i < 4; ++i) four[i] = Branch{};
        heap.construct<Branch>("root", Branch{four + 2, 4, nullptr});
    });
    BOOST_TEST(holds(refusal<Branch>(), "leads to an array of 4 elements where no live block has room for it"));
}

BOOST_AUTO_TEST_CASE(containers_nested_deeper_than_the_stack_are_walked) {
    constexpr int depth = 200'000;
    make([&](ArchiveHeap& heap) {
        auto* at = &heap.construct<Nested>("nested");
        for (int i = 1; i < depth; ++i) {
            at->inner.resize(1);
            at = &at->inner.front();
            at->value = i;
        }
    });
    move_in_all_ways<Nested>([&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        const Nested* at = heap.find<Nested>("nested");
        int i = 0;
        for (; !at->inner.empty(); at = &at->inner.front(), ++i) BOOST_REQUIRE(at->value == i);
        BOOST_TEST(i == depth - 1);
    });
}

BOOST_AUTO_TEST_CASE(elements_that_trail_their_object_are_walked) {
    const auto text_at = [](std::size_t i) { return i % 2 == 0 ? "short" + std::to_string(i) : long_text + std::to_string(i); };
    make([&](ArchiveHeap& heap) {
        auto* const row = static_cast<Row*>(heap.allocate(sizeof(Row) + 9 * sizeof(taiyen::string)));
        new (row) Row;
        row->count = 10;
        row->first = text_at(0);
        for (std::size_t i = 1; i < 10; ++i) heap.allocator<taiyen::string>().construct(row->cells() + i, text_at(i).c_str());
        heap.construct<std::array<Row*, 1>>("rows")[0] = row;
    });
    move_in_all_ways<std::array<Row*, 1>>([&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        Row* const row = (*heap.find<std::array<Row*, 1>>("rows"))[0];
        for (std::size_t i = 0; i < 10; ++i) BOOST_TEST(std::string_view(row->cells()[i]) == text_at(i));
    });
}

BOOST_AUTO_TEST_CASE(a_description_that_names_a_copy_is_refused) {
    make([&](ArchiveHeap& heap) { heap.construct<Tagged>("tagged").link = reinterpret_cast<std::uintptr_t>(heap.make<int>(7)) | 1U; });
    BOOST_TEST(holds(refusal<Tagged>(), "a pointer that is no part of it"));
}

BOOST_AUTO_TEST_CASE(an_unaligned_pointer_stays_and_is_told) {
    make([&](ArchiveHeap& heap) { heap.construct<Packed>("packed").pointer = heap.make<int>(7); });
    RebaseOptions options;
    options.types.add(stl::fingerprint<Packed>(),
                      {[](void* packed, PointerWalk& walk) { walk.pointer(static_cast<std::byte*>(packed) + 1); }, sizeof(Packed)});
    options.dry_run = true;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.pointers == 0U);
    BOOST_TEST_REQUIRE(report.ambiguous.size() == 1U);
    BOOST_CHECK(report.ambiguous[0].target == AmbiguousTarget::unaligned);
}

BOOST_AUTO_TEST_CASE(a_pointer_at_a_multiple_of_four_is_unaligned_too) {
    using Words = std::array<std::uint32_t, 4>;
    make([&](ArchiveHeap& heap) {
        const int* const seven = heap.make<int>(7);
        std::memcpy(heap.construct<Words>("words").data() + 1, &seven, sizeof seven);
    });
    RebaseOptions options;
    options.types.add(stl::fingerprint<Words>(),
                      {[](void* words, PointerWalk& walk) { walk.pointer(static_cast<std::byte*>(words) + 4); }, sizeof(Words)});
    options.dry_run = true;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.pointers == 0U);
    BOOST_TEST_REQUIRE(report.ambiguous.size() == 1U);
    BOOST_CHECK(report.ambiguous[0].target == AmbiguousTarget::unaligned);
}

BOOST_AUTO_TEST_CASE(ranges_that_end_before_they_begin_are_refused) {
    using Texts = taiyen::test::RangeSlice<taiyen::string>;
    make([&](ArchiveHeap& heap) {
        auto& between = heap.construct<Texts>("between");
        auto* const texts = static_cast<taiyen::string*>(heap.allocate(4 * sizeof(taiyen::string)));
        between = {texts + 3, texts};
    });
    BOOST_TEST(holds(refusal<Texts>(), "in 'between', a range of pointers"));
    make([&](ArchiveHeap& heap) {
        auto* const texts = static_cast<taiyen::string*>(heap.allocate(4 * sizeof(taiyen::string)));
        heap.construct<Texts>("between") = {texts, texts + 100'000};
    });
    BOOST_TEST(holds(refusal<Texts>(), "an array of 100000 elements"));
}

BOOST_AUTO_TEST_CASE(aligned_types_with_bit_fields_keep_their_alignment) {
    using Wides = taiyen::map<int, Wide>;
    make([&](ArchiveHeap& heap) {
        auto& wides = heap.construct<Wides>("wides");
        Wide* before = nullptr;
        for (int i = 0; i < 500; ++i) {
            heap.allocate(static_cast<std::size_t>(i % 37) + 1, 8);  // so that neighbours are of all sizes
            Wide& wide = wides[i];
            wide.next = before;
            wide.number = static_cast<unsigned>(i) & 0xffffU;
            wide.text = i % 2 == 0 ? "short" : long_text;
            before = &wide;
        }
    });
    move_in_all_ways<Wides>([&](ArchiveHeap& heap, const RebaseReport&) {
        const Wides& wides = *heap.find<Wides>("wides");
        const Wide* before = nullptr;
        for (int i = 0; i < 500; ++i) {
            const Wide& wide = wides.at(i);
            BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(&wide) % 64 == 0U);
            BOOST_REQUIRE(wide.next == before);
            BOOST_REQUIRE((wide.number == static_cast<unsigned>(i) && wide.flag == 1));
            BOOST_REQUIRE(std::string_view(wide.text) == (i % 2 == 0 ? "short" : long_text));
            before = &wide;
        }
    });
}

BOOST_AUTO_TEST_CASE(containers_that_were_moved_from_emptied_and_shrunk_are_whole) {
    using Text = taiyen::string;
    using All = std::tuple<taiyen::vector<Text>, taiyen::deque<Text>, taiyen::list<Text>, taiyen::forward_list<Text>, taiyen::map<int, Text>,
                           taiyen::set<Text>, taiyen::unordered_map<int, Text>, taiyen::unordered_set<Text>, taiyen::vector<bool>, Text,
                           taiyen::u32string, taiyen::multimap<Text, Text>>;
    enum class Past { never, moved_from, moved_to, cleared, shrunk, one, from_the_front };
    using Alls = taiyen::vector<All>;
    const auto fill = [](All& all, int count) {
        for (int i = 0; i < count; ++i) {
            const Text text((i % 2 == 0 ? "short" : long_text) + std::to_string(i));
            std::get<0>(all).push_back(text);
            std::get<1>(all).push_back(text);
            std::get<2>(all).push_back(text);
            std::get<3>(all).push_front(text);
            std::get<4>(all)[i] = text;
            std::get<5>(all).insert(text);
            std::get<6>(all)[i] = text;
            std::get<7>(all).insert(text);
            std::get<8>(all).push_back(i % 3 == 0);
            std::get<9>(all) += text;
            std::get<10>(all) += U'x';
            std::get<11>(all).emplace(text, text);
        }
    };
    const auto content = [](const All& all) {
        std::string text;
        std::apply(
            [&](const auto&... one) {
                const auto add = [&](const auto& container) {
                    text += std::to_string(std::distance(container.begin(), container.end())) + ":";
                    std::multimap<std::string, int> sorted;
                    for (const auto& element : container) {
                        using Element = std::remove_cvref_t<decltype(element)>;
                        if constexpr (std::is_same_v<Element, Text>)
                            sorted.emplace(std::string(element), 0);
                        else if constexpr (stl::is_pair<Element>)
                            sorted.emplace(std::string(element.second), 0);
                        else
                            sorted.emplace(std::to_string(static_cast<int>(element)), 0);
                    }
                    for (const auto& [key, value] : sorted) text += key + ",";
                };
                (add(one), ...);
            },
            all);
        return text;
    };
    std::vector<std::string> before;
    make([&](ArchiveHeap& heap) {
        auto& alls = heap.construct<Alls>("alls");
        alls.resize(16);
        std::size_t next = 0;
        for (const Past past : {Past::never, Past::moved_from, Past::moved_to, Past::cleared, Past::shrunk, Past::one, Past::from_the_front}) {
            All& all = alls[next++];
            if (past == Past::never) continue;
            fill(all, past == Past::one ? 1 : 700);
            if (past == Past::moved_from) {
                All& other = alls[next++];
                other = std::move(all);
            } else if (past == Past::moved_to) {
                All& other = alls[next++];
                std::swap(all, other);
                std::swap(alls[next], other);
                ++next;
            } else if (past == Past::cleared || past == Past::shrunk) {
                std::apply([](auto&... one) { (one.clear(), ...); }, all);
                if (past == Past::shrunk) {
                    std::get<0>(all).shrink_to_fit();
                    std::get<1>(all).shrink_to_fit();
                    std::get<6>(all).rehash(0);
                    std::get<7>(all).rehash(1);
                    std::get<8>(all).shrink_to_fit();
                    std::get<9>(all).shrink_to_fit();
                }
            } else if (past == Past::from_the_front) {
                while (std::get<1>(all).size() > 1) std::get<1>(all).pop_front();
                std::get<8>(all).resize(64 * 5);
            }
        }
        BOOST_REQUIRE(next <= alls.size());
        for (const All& all : alls) before.push_back(content(all));
    });
    move_in_all_ways<Alls>([&](ArchiveHeap& heap, const RebaseReport& report) {
        BOOST_TEST(report.unreached_blocks == 0U);
        BOOST_TEST(report.ambiguous_words == 0U);
        Alls& alls = *heap.find<Alls>("alls");
        for (std::size_t i = 0; i < alls.size(); ++i) BOOST_TEST(content(alls[i]) == before[i]);
        for (All& all : alls) fill(all, 50);
        BOOST_TEST(heap.verify().ok());
    });
}

BOOST_AUTO_TEST_CASE(a_heap_without_names_and_one_without_blocks_move) {
    make([&](ArchiveHeap&) {});
    move_in_all_ways<int>([&](ArchiveHeap&, const RebaseReport& report) { BOOST_TEST(report.live_blocks == 0U); });
    make([&](ArchiveHeap& heap) { heap.make<std::array<int, 2000>>(); });
    move_in_all_ways<int>([&](ArchiveHeap&, const RebaseReport& report) {
        BOOST_TEST(report.live_blocks == 1U);
        BOOST_TEST(report.unreached_blocks == 1U);
    });
}

/// A document, whose words are garbage here and there: what a program that went wrong, or a description of other members, leads to.
BOOST_AUTO_TEST_CASE(words_that_are_not_what_their_type_says_end_the_walk_with_a_sentence) {
    Document<InMemory> model;
    make([&](ArchiveHeap& heap) { edit(heap, model, 1, 4); });
    PointerOptions options;
    options.types.add<Document<InHeap>>();
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::map<std::string, unsigned> outcomes;
    ArchiveHeap heap(open_only, path);
    auto* const base = reinterpret_cast<std::byte*>(heap.find<Document<InHeap>>("document"));
    BOOST_REQUIRE(base != nullptr);
    heap.close();
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, store::OpenMode::read_only, HeapKind::archive, {});
    const heap::CoreRanges& ranges = file->ranges();
    // A private copy at the same address: words may be anything in it.
    const ByteCount extent = file->engine().extent();
    std::vector<std::byte> saved(extent);
    std::memcpy(saved.data(), reinterpret_cast<const std::byte*>(ranges.durable), extent);
    const std::uintptr_t at = ranges.durable;
    const ByteCount capacity = ranges.durable_bytes;
    file->close();
    const vm::Reservation memory(at, capacity);
    vm::map_anonymous(memory.data(), extent);
    std::memcpy(memory.data(), saved.data(), extent);
    struct Host final : heap::SpanHost {
        void extend(ByteCount) override {}
    } host;
    const heap::Engine engine(memory.data(), capacity, host, nullptr, true);
    std::vector<std::uint64_t> places;
    engine.for_each_block([&](const heap::Block& block) {
        for (std::uint64_t offset = block.offset.value; offset + 8 <= block.offset.value + block.usable_bytes; offset += 8) {
            std::uint64_t value = 0;
            std::memcpy(&value, memory.data() + offset, sizeof value);
            if (value != 0) places.push_back(offset);
        }
        return true;
    });
    const HeapView view{engine, memory.data(), at, capacity, path};
    for (int round = 0; round < 6000; ++round) {
        const std::uint64_t place = places[random() % places.size()];
        std::uint64_t value = 0;
        std::memcpy(&value, memory.data() + place, sizeof value);
        const std::uint64_t garbage[] = {0,
                                         ~std::uint64_t{0},
                                         1,
                                         value + 8,
                                         value - 8,
                                         value ^ 0x1000,
                                         random(),
                                         at + random() % extent / 8 * 8,
                                         at + places[random() % places.size()],
                                         random() % 256,
                                         std::uint64_t{1} << 63U,
                                         value + 1,
                                         at + capacity - 8};
        const std::uint64_t put = garbage[random() % std::size(garbage)];
        std::memcpy(memory.data() + place, &put, sizeof put);
        RebaseReport report;
        try {
            find_by_types(view, options, report, false);
            ++outcomes["walked"];
        } catch (const Error& error) {
            const std::string text = error.what();
            BOOST_REQUIRE_MESSAGE(error.code() == errc::type_mismatch, text);
            BOOST_REQUIRE_MESSAGE(holds(text, "'document'"), text);
            const std::size_t from = text.find("', a");
            ++outcomes[text.substr(from, text.find(" isn't") - from)];
        }
        std::memcpy(memory.data() + place, &value, sizeof value);
    }
    for (const auto& [outcome, count] : outcomes) BOOST_TEST_MESSAGE(outcome << ": " << count);
    BOOST_TEST(outcomes.size() > 5U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
