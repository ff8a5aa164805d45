// What a view shows of a heap is what the program stored, and nothing that anybody writes into the file leads it astray.

#include <boost/test/unit_test.hpp>

#include <charconv>
#include <cstring>
#include <random>
#include <sstream>

#include <taiyen/inspect/view.hpp>
#include <taiyen/inspect/view_text.hpp>
#include <taiyen/taiyen.hpp>

#include "heap/core.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace view_test {
using namespace taiyen;

enum class Colour : std::uint8_t { red, green, blue };

struct Bolt {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double weight = 0;
    std::int16_t size = 0;
    bool is_new = false;
    char letter = 'a';
    Colour colour = Colour::red;
    std::optional<std::uint32_t> count;
    std::variant<std::monostate, int, taiyen::string> value;
    std::array<float, 3> place{};
    char code[6]{};
};

struct Everything {
    taiyen::map<taiyen::string, Bolt> bolts;
    taiyen::unordered_map<int, taiyen::string> names;
    taiyen::multimap<int, int> many;
    taiyen::set<taiyen::string> words;
    taiyen::deque<Bolt> queue;
    taiyen::deque<int> numbers;
    taiyen::list<std::uint64_t> list;
    taiyen::forward_list<std::int8_t> forward;
    taiyen::flat_hash_map<int, double> fast;
    taiyen::flat_hash_set<taiyen::string> fast_words;
    taiyen::unordered_set<taiyen::string> loose_words;
    taiyen::map<std::pair<const int, int>, std::tuple<char, long double>> odd;
    taiyen::vector<taiyen::vector<taiyen::u16string>> texts;
    taiyen::btree_map<taiyen::string, Bolt> tree;
    taiyen::btree_map<std::int16_t, std::uint8_t> small_tree;
    taiyen::btree_set<double> numbers_in_order;
    taiyen::btree_multimap<taiyen::string, int> many_words;
    taiyen::ordered_map<int, taiyen::string> still;
    taiyen::ordered_set<taiyen::string> still_words;
};

// ---- as the program prints it

template <class T>
void print(std::ostream& to, const T& value);

template <class A, class B>
void print_pair(std::ostream& to, const std::pair<A, B>& pair) {
    to << '[';
    print(to, pair.first);
    to << ", ";
    print(to, pair.second);
    to << ']';
}
template <class T>
std::string printed(const T& value) {
    std::ostringstream to;
    print(to, value);
    return to.str();
}
std::string quoted(const std::string& text) { return text.starts_with('"') ? text : '"' + text + '"'; }
template <class C>
void print_elements(std::ostream& to, const C& container) {
    const char* separator = "";
    to << '[';
    for (const auto& element : container) {
        to << separator;
        print(to, element);
        separator = ", ";
    }
    to << ']';
}
template <class C>
void print_map(std::ostream& to, const C& map) {
    const char* separator = "";
    to << '{';
    for (const auto& [key, value] : map) {
        to << separator << quoted(printed(key)) << ": ";
        print(to, value);
        separator = ", ";
    }
    to << '}';
}
template <class... T>
void print_fields(std::ostream& to, std::initializer_list<const char*> names, const T&... fields) {
    const char* separator = "";
    auto name = names.begin();
    to << '{';
    ((to << separator << '"' << *name++ << "\": ", print(to, fields), separator = ", "), ...);
    to << '}';
}

template <class T>
struct Printer {
    static void print(std::ostream& to, const T& value) { print_elements(to, value); }
};
template <class K, class V>
struct Printer<taiyen::map<K, V>> {
    static void print(std::ostream& to, const taiyen::map<K, V>& value) { print_map(to, value); }
};
template <class V>
struct Printer<taiyen::map<std::pair<const int, int>, V>> {
    static void print(std::ostream& to, const taiyen::map<std::pair<const int, int>, V>& value) { print_elements(to, value); }
};
template <class K, class V>
struct Printer<taiyen::unordered_map<K, V>> {
    static void print(std::ostream& to, const taiyen::unordered_map<K, V>& value) { print_map(to, value); }
};
template <class K, class V>
struct Printer<taiyen::flat_hash_map<K, V>> {
    static void print(std::ostream& to, const taiyen::flat_hash_map<K, V>& value) { print_map(to, value); }
};
template <class K, class V>
struct Printer<taiyen::btree_map<K, V>> {
    static void print(std::ostream& to, const taiyen::btree_map<K, V>& value) { print_map(to, value); }
};
template <class K, class V>
struct Printer<taiyen::btree_multimap<K, V>> {
    static void print(std::ostream& to, const taiyen::btree_multimap<K, V>& value) {
        const char* separator = "";
        to << '[';
        for (const auto& [key, mapped] : value) {
            to << separator << '[';
            view_test::print(to, key);
            to << ", ";
            view_test::print(to, mapped);
            to << ']';
            separator = ", ";
        }
        to << ']';
    }
};
template <class K, class V>
struct Printer<taiyen::ordered_map<K, V>> {
    static void print(std::ostream& to, const taiyen::ordered_map<K, V>& value) { print_map(to, value); }
};
template <class A, class B>
struct Printer<std::pair<A, B>> {
    static void print(std::ostream& to, const std::pair<A, B>& value) { print_pair(to, value); }
};
template <class A, class B>
struct Printer<std::tuple<A, B>> {
    static void print(std::ostream& to, const std::tuple<A, B>& value) { print_pair(to, std::pair(std::get<0>(value), std::get<1>(value))); }
};
template <class T>
struct Printer<std::optional<T>> {
    static void print(std::ostream& to, const std::optional<T>& value) {
        if (value)
            view_test::print(to, *value);
        else
            to << "null";
    }
};
template <class... T>
struct Printer<std::variant<T...>> {
    static void print(std::ostream& to, const std::variant<T...>& value) {
        std::visit([&](const auto& held) { view_test::print(to, held); }, value);
    }
};
template <>
struct Printer<std::monostate> {
    static void print(std::ostream& to, std::monostate) { to << "{}"; }
};
template <>
struct Printer<taiyen::string> {
    static void print(std::ostream& to, const taiyen::string& value) { to << '"' << value << '"'; }
};
template <>
struct Printer<taiyen::u16string> {
    static void print(std::ostream& to, const taiyen::u16string& value) {
        to << '"';
        for (const char16_t c : value) to << (c == u'ä' ? std::string("ä") : std::string(1, static_cast<char>(c)));
        to << '"';
    }
};
template <>
struct Printer<Bolt> {
    static void print(std::ostream& to, const Bolt& b) {
        print_fields(to, {"name", "tags", "weight", "size", "is_new", "letter", "colour", "count", "value", "place", "code"}, b.name, b.tags,
                     b.weight, b.size, b.is_new, b.letter, static_cast<int>(b.colour), b.count, b.value, b.place, taiyen::string(b.code));
    }
};
template <>
struct Printer<Everything> {
    static void print(std::ostream& to, const Everything& e) {
        print_fields(to,
                     {"bolts", "names", "many", "words", "queue", "numbers", "list", "forward", "fast", "fast_words", "loose_words", "odd", "texts",
                      "tree", "small_tree", "numbers_in_order", "many_words", "still", "still_words"},
                     e.bolts, e.names, e.many, e.words, e.queue, e.numbers, e.list, e.forward, e.fast, e.fast_words, e.loose_words, e.odd, e.texts,
                     e.tree, e.small_tree, e.numbers_in_order, e.many_words, e.still, e.still_words);
    }
};

template <class T>
void print(std::ostream& to, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        to << (value ? "true" : "false");
    } else if constexpr (std::is_same_v<T, char>) {
        to << '"' << value << '"';
    } else if constexpr (std::is_arithmetic_v<T>) {
        char text[64];
        to << std::string_view(text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text));
    } else {
        Printer<T>::print(to, value);
    }
}

// ---- random changes

struct Changer {
    std::mt19937_64 random;

    std::uint64_t below(std::uint64_t end) { return random() % end; }
    taiyen::string text() { return taiyen::string(below(4) == 0 ? below(200) : below(20), static_cast<char>('a' + below(26))); }
    void change(Bolt& bolt) {
        bolt.name = text();
        if (below(3) == 0) bolt.tags.clear();
        bolt.tags.push_back(text());
        bolt.weight = static_cast<double>(static_cast<std::int64_t>(below(2000)) - 1000) / 7;
        bolt.size = static_cast<std::int16_t>(random());
        bolt.is_new = below(2) == 0;
        bolt.letter = static_cast<char>('a' + below(26));
        bolt.colour = static_cast<Colour>(below(3));
        if (below(2) == 0)
            bolt.count.reset();
        else
            bolt.count = static_cast<std::uint32_t>(random());
        switch (below(3)) {
            case 0: bolt.value = std::monostate(); break;
            case 1: bolt.value = static_cast<int>(random()); break;
            default: bolt.value.emplace<taiyen::string>(text(), bolt.name.get_allocator());
        }
        bolt.place = {static_cast<float>(below(100)) / 3, 0.5F, -1};
        std::memset(bolt.code, 0, sizeof bolt.code);
        std::memset(bolt.code, 'c', below(sizeof bolt.code));
    }
    void change(Everything& all) {
        const int key = static_cast<int>(below(60)) - 30;
        switch (below(34)) {
            case 0: change(all.bolts[text()]); break;
            case 1: all.bolts.erase(all.bolts.begin(), all.bolts.size() > 20 ? all.bolts.end() : all.bolts.begin()); break;
            case 2: all.names[key] = text(); break;
            case 3: all.names.erase(key); break;
            case 4: all.many.emplace(key, key + 1); break;
            case 5: all.many.erase(key); break;
            case 6: all.words.insert(text()); break;
            case 7: all.words.clear(); break;
            case 8: change(all.queue.emplace_back()); break;
            case 9: change(all.queue.emplace_front()); break;
            case 10:
                if (!all.queue.empty()) all.queue.pop_front();
                break;
            case 11:
                for (int i = 0; i < 150; ++i) all.numbers.push_front(i);
                break;
            case 12:
                for (int i = 0; i < 100 && !all.numbers.empty(); ++i) all.numbers.pop_back();
                break;
            case 13: all.numbers.push_back(key); break;
            case 14: all.list.push_front(random()); break;
            case 15: all.list.clear(); break;
            case 16: all.forward.push_front(static_cast<std::int8_t>(key)); break;
            case 17: all.forward.clear(); break;
            case 18: all.fast[key] = static_cast<double>(key) / 3; break;
            case 19: all.fast.erase(key); break;
            case 20: all.fast_words.insert(text()); break;
            case 21: all.loose_words.insert(text()); break;
            case 22: all.loose_words.clear(); break;
            case 23: all.odd[{key, 1}] = {'x', static_cast<long double>(key) / 4}; break;
            case 24: all.texts.emplace_back().push_back(u"t\u00e4xt"); break;
            case 25: all.texts.clear(); break;
            case 26: change(all.tree[text()]); break;
            case 27:
                for (int i = 0; i < 60; ++i) all.small_tree[static_cast<std::int16_t>(random() % 2000)] = static_cast<std::uint8_t>(i);
                break;
            case 28: all.small_tree.erase(all.small_tree.begin(), all.small_tree.end()); break;
            case 29:
                for (int i = 0; i < 40; ++i) all.numbers_in_order.insert(static_cast<double>(random() % 1000) / 8);
                break;
            case 30: all.many_words.emplace(text(), key); break;
            case 31: all.still[key] = text(); break;
            case 32: all.still_words.insert(text()); break;
            default: all.tree.clear();
        }
    }
};

std::string shown(const ArchiveHeap& heap, const ViewTextOptions& options = {}) {
    std::ostringstream to;
    write_json(to, View(heap).find("all").value(), options);
    return to.str();
}

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 16_MiB;
    return options;
}

BOOST_AUTO_TEST_SUITE(view)

BOOST_AUTO_TEST_CASE(it_shows_what_the_program_prints) {
    const std::uint64_t seed = test::seed_of_run();
    BOOST_TEST_CONTEXT("TAIYEN_SEED=" << seed) {
        const ScratchDirectory directory;
        Changer changer{std::mt19937_64(seed)};
        std::string last;
        {
            ArchiveHeap heap(create_only, directory / "a.tyn", small());
            Everything& all = heap.construct<Everything>("all");
            for (int i = 0; i < 600; ++i) {
                BOOST_TEST_REQUIRE(shown(heap) == printed(all));
                changer.change(all);
            }
            heap.snapshot();
            last = printed(all);
        }
        const ArchiveHeap heap(open_read_only, directory / "a.tyn");
        BOOST_TEST(shown(heap) == last);
    }
}

BOOST_AUTO_TEST_CASE(paths_lead_to_values) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    Everything& all = heap.construct<Everything>("all");
    Bolt& bolt = all.bolts["m8"];
    bolt.tags = {"long", "of steel"};
    bolt.weight = 0.25;
    bolt.count = 7;
    bolt.value.emplace<taiyen::string>("text", bolt.name.get_allocator());
    all.names[-3] = "minus three";
    all.list = {1, ~std::uint64_t{0}};
    const View view(heap);
    BOOST_TEST(view.names().size() == 1U);
    BOOST_TEST(!view.find("nobody").has_value());
    const ViewValue value = view.find("all").value();
    BOOST_TEST(value.get<double>("bolts[\"m8\"].weight") == 0.25);
    BOOST_TEST(value.get<std::string>("bolts[\"m8\"].tags[1]") == "of steel");
    BOOST_TEST(value.get<int>("bolts[\"m8\"].count") == 7);
    BOOST_TEST(value.get<std::string>("bolts[\"m8\"].value") == "text");
    BOOST_TEST(value.get<float>(".bolts[\"m8\"].place[2]") == 0.0F);
    BOOST_TEST(value.get<std::string>("names[-3]") == "minus three");
    BOOST_TEST(value.get<std::uint64_t>("list[1]") == ~std::uint64_t{0});
    BOOST_TEST(value.at("bolts").size() == 1U);
    for (const char* const nothing : {"bolts[\"m9\"]", "bolt", "list[2]", "list[\"1\"]", "names[4]", "bolts[\"m8\"].weight.x", "list.first"})
        BOOST_TEST(test::throws(errc::not_found, [&] { (void)value.at(nothing); }), nothing);
    for (const char* const no_path : {"bolts[\"m8", "bolts[", "bolts[]", "bolts..x", "bolts[1]x", "."})
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { (void)value.at(no_path); }), no_path);
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)value.get<int>("list[1]"); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)value.get<float>("bolts[\"m8\"].tags"); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)value.get<bool>("list[0]"); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)value.get<std::string>("list[0]"); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)value.elements(); }));
    all.bolts["m8"].weight = 1.0 / 3;
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)value.get<float>("bolts[\"m8\"].weight"); }));
}

struct Node {
    Node* next = nullptr;
    int number = 0;
};

BOOST_AUTO_TEST_CASE(pointers_and_arrays_of_objects_are_followed) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    Node& first = heap.construct<Node>("first");
    Node& second = *heap.make<Node>();
    first.next = &second;
    second.next = &first;
    second.number = 2;
    const ViewValue value = View(heap).find("first").value();
    BOOST_TEST(value.get<int>("next.number") == 2);
    BOOST_TEST(value.at("next.next").target()->offset() == value.offset());
    second.next = nullptr;
    BOOST_TEST(!value.at("next.next").target().has_value());
    BOOST_TEST(test::throws(errc::not_found, [&] { (void)value.at("next.next.number"); }));
    int outside = 0;
    second.next = reinterpret_cast<Node*>(&outside);
    BOOST_TEST(test::throws(errc::corrupt, [&] { (void)value.at("next.next").target(); }));
    second.next = nullptr;
}

BOOST_AUTO_TEST_CASE(options_cut_what_is_long_or_deep) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    heap.construct<taiyen::vector<int>>("numbers") = {1, 2, 3, 4};
    heap.construct<taiyen::map<int, taiyen::vector<int>>>("map")[1] = {1};
    const auto with = [&](const char* name, const ViewTextOptions& options) {
        std::ostringstream to;
        write_json(to, View(heap).find(name).value(), options);
        return to.str();
    };
    BOOST_TEST(with("numbers", {.elements = 2}) == "[1, 2, {\"more\": 2}]");
    BOOST_TEST(with("numbers", {.elements = 4}) == "[1, 2, 3, 4]");
    BOOST_TEST(with("map", {.depth = 1}) == "{\"1\": \"…\"}");
    BOOST_TEST(with("map", {.indent = 2}) == "{\n  \"1\": [\n    1\n  ]\n}");
}

/// Whatever stands in the file: it ends, and it reads nothing that is not the heap's (AddressSanitizer, and the fault handler of the span, would tell).
BOOST_AUTO_TEST_CASE(damaged_values_are_told_and_lead_nowhere) {
    const std::uint64_t seed = test::seed_of_run();
    BOOST_TEST_CONTEXT("TAIYEN_SEED=" << seed) {
        const ScratchDirectory directory;
        Changer changer{std::mt19937_64(seed)};
        ArchiveHeap heap(create_only, directory / "a.tyn", small());
        Everything& all = heap.construct<Everything>("all");
        for (int i = 0; i < 300; ++i) changer.change(all);
        const ViewTextOptions few{.elements = 40};  // what is damaged may hold anything, any number of times
        const std::string right = shown(heap, few);
        auto* const base = reinterpret_cast<std::byte*>(heap.core()->ranges().durable);
        std::vector<std::uint64_t> blocks;
        for_each_block(heap, [&](const auto& block) {
            blocks.push_back(block.offset);
            return true;
        });
        const std::uint64_t end = heap.core()->durable_extent();
        unsigned refused = 0;
        unsigned other = 0;
        for (int i = 0; i < 3000; ++i) {
            const std::uint64_t block = blocks[changer.below(blocks.size())];
            const std::uint64_t at =
                i % 2 == 0 ? reinterpret_cast<std::byte*>(&all) - base + changer.below(sizeof(Everything) / 8) * 8 : block + changer.below(8) * 8;
            if (at + 8 > end) continue;
            std::uint64_t before = 0;
            std::memcpy(&before, base + at, 8);
            std::uint64_t now = before;
            switch (changer.below(5)) {
                case 0: now ^= std::uint64_t{1} << changer.below(64); break;
                case 1: now = changer.random(); break;
                case 2: now = reinterpret_cast<std::uintptr_t>(base) + changer.below(end); break;
                case 3: now = reinterpret_cast<std::uintptr_t>(base) + blocks[changer.below(blocks.size())]; break;
                default: now = before + 8 * (changer.below(5) - 2);
            }
            std::memcpy(base + at, &now, 8);
            try {
                if (shown(heap, few) != right) ++other;
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::corrupt), error.what());
                ++refused;
            }
            std::memcpy(base + at, &before, 8);
        }
        BOOST_TEST(shown(heap, few) == right);
        BOOST_TEST(refused > 100U);
        BOOST_TEST(other > 100U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace view_test
