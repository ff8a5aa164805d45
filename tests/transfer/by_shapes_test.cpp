// Heaps that go elsewhere by their own shapes: every call that moves one takes them, exactly, and refuses what they leave open.

#include <boost/test/unit_test.hpp>

#include <functional>
#include <sstream>
#include <string>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "throws.hpp"

namespace by_shapes_test {
using namespace taiyen;
using taiyen::test::throws;

struct Node {
    taiyen::string name;
    Node* next = nullptr;
};
struct Chain {
    taiyen::map<int, taiyen::string> names;
    Node root;
};
struct Ended {
    taiyen::vector<std::int64_t> numbers;
    const std::int64_t* end = nullptr;
};
class Untold {
public:
    explicit Untold(void* to) : to_(to) {}
    void* to() const { return to_; }

private:
    void* to_;
};

constexpr const char* text = "a text that is longer than what lies in place";

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 8_MiB;
    return options;
}
VolatileOptions small_volatile() {
    VolatileOptions options;
    options.capacity = 8_MiB;
    options.tell_memory_tools = false;
    return options;
}

template <class Heap>
void fill(Heap& heap) {
    Chain& chain = heap.template construct<Chain>("chain");
    for (int i = 0; i < 100; ++i) chain.names[i] = text;
    for (int i = 0; i < 50; ++i) {
        Node* const node = heap.template make<Node>();
        node->name = text;
        node->next = std::exchange(chain.root.next, node);
    }
}

template <class Heap>
void expect_filled(const Heap& heap) {
    const Chain& chain = *heap.template find<Chain>("chain");
    BOOST_TEST(chain.names.size() == 100U);
    for (const auto& [key, name] : chain.names) BOOST_TEST(name == text);
    int nodes = 0;
    for (const Node* node = chain.root.next; node != nullptr; node = node->next, ++nodes) {
        BOOST_TEST_REQUIRE(heap.owns(node));
        BOOST_TEST(node->name == text);
    }
    BOOST_TEST(nodes == 50);
}

template <class Heap>
void look(const Heap& heap) {
    if (heap.template find<Chain>("chain") != nullptr) expect_filled(heap);
    if (const auto* const names = heap.template find<taiyen::map<int, taiyen::string>>("names")) {
        BOOST_TEST(names->size() == 100U);
        int next = 0;
        for (const auto& [key, name] : *names) BOOST_TEST((key == next++ && name == text && heap.owns(&name)));
    }
    if (const auto* const ended = heap.template find<Ended>("ended")) BOOST_TEST((ended->end == ended->numbers.data() + ended->numbers.size()));
}

/// All calls that make another heap, at another address; each says whether it was refused, and then has left nothing.
struct Ways {
    ScratchDirectory directory;
    std::vector<std::byte> stream;
    std::filesystem::path to = directory / "to.tyn";

    template <class Options>
    static Options elsewhere(Defragment order) {
        Options options;
        options.address = anywhere;
        options.defragment = order;
        return options;
    }
    template <class Options>
    static Options elsewhere_in_memory(Defragment order) {
        auto options = elsewhere<Options>(order);
        options.heap = small_volatile();
        return options;
    }

    template <class Check>
    void of_file(const std::function<void(ArchiveHeap&)>& make, Defragment order, const Check& check) {
        const std::filesystem::path from = directory / "from.tyn";
        std::filesystem::remove(from);
        {
            ArchiveHeap heap(create_only, from, small());
            make(heap);
            heap.snapshot();
            stream = compress(heap);
        }
        check("convert", [&] { return made(convert(from, to, elsewhere<ConvertOptions>(order)).move); });
        check("expand", [&] { return made(expand(std::span<const std::byte>(stream), to, elsewhere<ExpandOptions>(order)).move); });
        check("convert_to_volatile", [&] { return seen(convert_to_volatile(from, elsewhere_in_memory<VolatileConvertOptions>(order))); });
        check("expand_volatile",
              [&] { return seen(expand_volatile(std::span<const std::byte>(stream), elsewhere_in_memory<VolatileExpandOptions>(order))); });
        if (order == Defragment::no) {
            check("rebase", [&] {
                std::filesystem::copy(from, to);
                return made(rebase(to, anywhere));
            });
        }
    }
    template <class Check>
    void of_volatile(const std::function<void(VolatileHeap&)>& make, Defragment order, const Check& check) {
        {
            VolatileHeap heap(small_volatile());
            make(heap);
            stream = compress(heap);
            check("convert", [&] { return made(convert(heap, to, elsewhere<ExpandOptions>(order)).move); });
            check("convert_to_volatile", [&] { return seen(convert_to_volatile(heap, elsewhere_in_memory<VolatileExpandOptions>(order))); });
        }
        check("expand", [&] { return made(expand(std::span<const std::byte>(stream), to, elsewhere<ExpandOptions>(order)).move); });
        check("expand_volatile",
              [&] { return seen(expand_volatile(std::span<const std::byte>(stream), elsewhere_in_memory<VolatileExpandOptions>(order))); });
    }

private:
    RebaseReport made(RebaseReport report) const {
        const ArchiveHeap heap(open_read_only, to);
        BOOST_TEST(heap.verify().ok());
        look(heap);
        return report;
    }
    static RebaseReport seen(ExpandedVolatile expanded) {
        look(expanded.heap);
        return std::move(expanded.move);
    }
};

template <class Call>
void expect_exact(Ways& ways, const std::string& what, const Call& call) {
    BOOST_TEST_CONTEXT(what) {
        std::filesystem::remove(ways.to);
        const RebaseReport report = call();
        BOOST_TEST(report.new_address != report.old_address);
        BOOST_TEST(report.guessed_words == 0U);
    }
}
template <class Call>
void expect_refused(Ways& ways, const std::string& what, const Call& call) {
    std::filesystem::remove(ways.to);
    BOOST_TEST(throws(errc::type_mismatch, call), what);
    BOOST_TEST((what == "rebase" || !std::filesystem::exists(ways.to)), what);
}

BOOST_AUTO_TEST_SUITE(by_shapes)

BOOST_AUTO_TEST_CASE(what_shapes_tell_whole_goes_everywhere_without_guesses) {
    Ways ways;
    const auto exact = [&](const std::string& what, const auto& call) { expect_exact(ways, what, call); };
    ways.of_file([](ArchiveHeap& heap) { fill(heap); }, Defragment::no, exact);
    ways.of_volatile([](VolatileHeap& heap) { fill(heap); }, Defragment::no, exact);
    const auto names = [](auto& heap) {
        auto& map = heap.template construct<taiyen::map<int, taiyen::string>>("names");
        for (int i = 0; i < 100; ++i) map[i] = text;
    };
    ways.of_file(names, Defragment::by_reachability, exact);
    ways.of_volatile(names, Defragment::by_address, exact);
}

BOOST_AUTO_TEST_CASE(blocks_that_a_program_holds_alone_stay_unless_nobody_knows_what_is_in_them) {
    Ways ways;
    const auto refused = [&](const std::string& what, const auto& call) { expect_refused(ways, what, call); };
    ways.of_volatile(
        [](VolatileHeap& heap) {
            fill(heap);
            heap.make<Node>()->next = heap.make<Node>();
        },
        Defragment::no, refused);
    // In a file nobody holds them any more.
    ways.of_file(
        [](ArchiveHeap& heap) {
            fill(heap);
            heap.make<Node>()->next = heap.make<Node>();
        },
        Defragment::no,
        [&](const std::string& what, const auto& call) {
            expect_exact(ways, what, [&] {
                const RebaseReport report = call();
                BOOST_TEST(report.unreached_blocks == 2U);
                return report;
            });
        });
}

BOOST_AUTO_TEST_CASE(heaps_in_which_nothing_has_a_name_are_not_guessed_unasked) {
    Ways ways;
    const auto refused = [&](const std::string& what, const auto& call) { expect_refused(ways, what, call); };
    const auto exact = [&](const std::string& what, const auto& call) { expect_exact(ways, what, call); };
    const auto nameless = [](auto& heap) { heap.template make<Node>()->next = heap.template make<Node>(); };
    ways.of_file(nameless, Defragment::no, refused);
    ways.of_volatile(nameless, Defragment::no, refused);
    ways.of_file([](ArchiveHeap&) {}, Defragment::no, exact);
    ways.of_file([](ArchiveHeap&) {}, Defragment::by_address, exact);
    ways.of_volatile([](VolatileHeap&) {}, Defragment::no, exact);
}

BOOST_AUTO_TEST_CASE(what_is_opaque_is_not_guessed_unasked) {
    Ways ways;
    const auto refused = [&](const std::string& what, const auto& call) { expect_refused(ways, what, call); };
    const auto untold = [](auto& heap) {
        fill(heap);
        heap.template construct<Untold>("untold", heap.template make<int>(3));
    };
    ways.of_file(untold, Defragment::no, refused);
    ways.of_volatile(untold, Defragment::no, refused);
}

BOOST_AUTO_TEST_CASE(a_pointer_that_may_be_an_end_keeps_a_heap_from_being_laid_anew) {
    Ways ways;
    const auto refused = [&](const std::string& what, const auto& call) { expect_refused(ways, what, call); };
    const auto exact = [&](const std::string& what, const auto& call) { expect_exact(ways, what, call); };
    const auto ended = [](auto& heap) {
        Ended& value = heap.template construct<Ended>("ended");
        value.numbers.resize(512);  // a page: what is allocated next may begin where it ends
        value.end = value.numbers.data() + value.numbers.size();
        for (int i = 0; i < 8; ++i) heap.template construct<taiyen::vector<std::int64_t>>("more " + std::to_string(i)).resize(512);
    };
    ways.of_file(ended, Defragment::by_address, refused);
    ways.of_volatile(ended, Defragment::by_reachability, refused);
    ways.of_file(ended, Defragment::no, exact);
}

BOOST_AUTO_TEST_CASE(where_the_old_place_is_taken_guesses_take_over_only_if_they_were_asked_for) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    fill(heap);
    heap.snapshot();
    const std::vector<std::byte> stream = compress(heap);
    ExpandOptions options;
    options.address = anywhere;
    const auto to = directory / "b.tyn";
    BOOST_TEST(throws(errc::address_in_use, [&] { expand(std::span<const std::byte>(stream), to, options); }));
    BOOST_TEST(!std::filesystem::exists(to));
    options.pointers.conservative = true;
    BOOST_TEST(!expand(std::span<const std::byte>(stream), to, options).move.by_declared_types);
    expect_filled(ArchiveHeap(open_read_only, to));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace by_shapes_test
