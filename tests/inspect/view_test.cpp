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
#include "inspect/printed.hpp"
#include "inspect/view_memory.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
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
    taiyen::vector<bool> bits;
    taiyen::vector<taiyen::vector<bool>> rows_of_bits;
    taiyen::basic_string<unsigned char> octets;
    taiyen::multiset<int> bag;
    taiyen::unordered_multimap<int, taiyen::string> loose;
    taiyen::unordered_multiset<int> loose_bag;
    taiyen::btree_multiset<int> many_numbers;
    taiyen::ordered_multimap<int, int> still_many;
    taiyen::ordered_multiset<int> still_bag;
    taiyen::map<bool, int> by_flag;
};

// ---- as the program prints it

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
        print_fields(
            to, {"bolts",        "names",  "many",  "words", "queue",      "numbers",          "list",       "forward",   "fast",        "fast_words",
                 "loose_words",  "odd",    "texts", "tree",  "small_tree", "numbers_in_order", "many_words", "still",     "still_words", "bits",
                 "rows_of_bits", "octets", "bag",   "loose", "loose_bag",  "many_numbers",     "still_many", "still_bag", "by_flag"},
            e.bolts, e.names, e.many, e.words, e.queue, e.numbers, e.list, e.forward, e.fast, e.fast_words, e.loose_words, e.odd, e.texts, e.tree,
            e.small_tree, e.numbers_in_order, e.many_words, e.still, e.still_words, e.bits, e.rows_of_bits, e.octets, e.bag, e.loose, e.loose_bag,
            e.many_numbers, e.still_many, e.still_bag, e.by_flag);
    }
};

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
        switch (below(44)) {
            case 34: all.bits.push_back(below(2) == 0); break;
            case 35:
                for (int i = 0; i < 70; ++i) all.bits.push_back(i % 3 == 0);
                if (all.bits.size() > 500) all.bits.clear();
                break;
            case 36: all.rows_of_bits.emplace_back(below(130), true).push_back(false); break;
            case 37: all.octets.push_back(static_cast<unsigned char>(key)); break;
            case 38: all.bag.insert(key); break;
            case 39: all.loose.emplace(key / 10, text()); break;
            case 40: all.loose_bag.insert(key / 10); break;
            case 41: all.many_numbers.insert(key / 10); break;
            case 42: all.still_many.emplace(key / 10, key); break;
            case 43:
                all.still_bag.insert(key / 10);
                all.by_flag[below(2) == 0] = key;
                if (all.rows_of_bits.size() > 30) all.rows_of_bits.clear();
                break;
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
    // That is no damage: what the program has elsewhere is shown as such.
    BOOST_TEST(value.at("next.next").outside().value() == reinterpret_cast<std::uintptr_t>(&outside));
    BOOST_TEST(!value.at("next").outside().has_value());
    std::ostringstream json;
    write_json(json, value.at("next").held());
    BOOST_TEST(json.str() == "{\"next\": {\"outside\": " + std::to_string(reinterpret_cast<std::uintptr_t>(&outside)) + "}, \"number\": 2}");
    std::ostringstream tree;
    write_tree(tree, "next", value.at("next").held());
    BOOST_TEST(tree.str() == "next: view_test::view::Node\n  next: out of the heap (view_test::view::Node*)\n  number: 2\n");
    second.next = nullptr;

    auto* const several = static_cast<Node*>(heap.allocate(3 * sizeof(Node)));
    for (int i = 0; i < 3; ++i) new (several + i) Node{nullptr, i + 3};
    heap.construct<Node>("shape of it");
    heap::add_named(*heap.core(), "several", {several, sizeof(Node), 3, heap::find_named(*heap.core(), "first")->fingerprint});
    BOOST_TEST(View(heap).find("several").value().get<int>("[2].number") == 5);
    BOOST_TEST(View(heap).find("several").value().size() == 3U);
}

BOOST_AUTO_TEST_CASE(patterns_lead_to_what_is_like_them) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    Everything& all = heap.construct<Everything>("all");
    for (int i = 0; i < 5; ++i) {
        Bolt& bolt = all.bolts[taiyen::string(("m" + std::to_string(i)).c_str())];
        bolt.weight = i - 1.5;
        bolt.size = static_cast<std::int16_t>(i);
        bolt.is_new = i % 2 == 0;
        bolt.tags = {"steel", i < 2 ? "short" : "a \"long\" one"};
        if (i > 2) bolt.count = static_cast<std::uint32_t>(i);
        if (i == 1) bolt.value = 7;
    }
    all.list = {5, ~std::uint64_t{0}, 9};
    all.odd[{1, 2}] = {'x', 2.5L};
    all.bits = {true, false, true};
    const ViewValue value = View(heap).find("all").value();
    const auto found = [&](const char* pattern, std::size_t most = 100) {
        std::string paths;
        value.for_each(pattern, [&](std::string_view path, const ViewValue& there) {
            BOOST_TEST(value.at(path).offset() == there.offset());
            paths += (paths.empty() ? "" : " ") + std::string(path);
            return --most != 0;
        });
        return paths;
    };
    BOOST_TEST(found("bolts[*].weight > 0.5") == R"(bolts["m3"].weight bolts["m4"].weight)");
    BOOST_TEST(found("bolts[*].weight>=0.5") == R"(bolts["m2"].weight bolts["m3"].weight bolts["m4"].weight)");
    BOOST_TEST(found("bolts[*].weight < -1") == R"(bolts["m0"].weight)");
    BOOST_TEST(found("bolts[*].size != 2", 2) == R"(bolts["m0"].size bolts["m1"].size)");
    BOOST_TEST(found("bolts[*].is_new == true", 1) == R"(bolts["m0"].is_new)");
    BOOST_TEST(found(R"(bolts[*].tags[*] == "a \"long\" one")", 2) == R"(bolts["m2"].tags[1] bolts["m3"].tags[1])");
    BOOST_TEST(found("bolts[*].count <= 4") == R"(bolts["m3"].count bolts["m4"].count)");  // the others have none
    BOOST_TEST(found("bolts[*].tags[7]") == "");
    BOOST_TEST(found("list[*] > 6") == "list[1] list[2]");
    BOOST_TEST(found("list[*] == 18446744073709551615") == "list[1]");
    BOOST_TEST(found("list[*] > -1") == "list[0] list[1] list[2]");
    BOOST_TEST(found("list[1] > 6") == "list[1]");
    BOOST_TEST(found("list[0] > 6") == "");
    BOOST_TEST(found("odd[*].second[*]") == "odd[0].second[0] odd[0].second[1]");
    BOOST_TEST(found("bits[*] == false") == "bits[1]");
    BOOST_TEST(found("bolts[\"m1\"].weight") == "bolts[\"m1\"].weight");
    for (const char* const no_path : {"list[*] > ", "list[*] = 3", "list[*] > x", "list[*] == \"x", "list[*", "list[*] ! 3"})
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { (void)found(no_path); }), no_path);
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)found("bolts[*].tags > 3"); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { (void)found("bolts[*].name > 3"); }));
    BOOST_TEST(test::throws(errc::not_found, [&] { (void)found("bolts[*].wieght > 3"); }));
    BOOST_TEST(test::throws(errc::not_found, [&] { (void)found("nothing[*]"); }));
    for (const char* const many : {"list[*]", "list[0] > 6"}) BOOST_TEST(test::throws(errc::invalid_argument, [&] { (void)value.at(many); }), many);
    BOOST_TEST(!ViewValue::is_pattern(R"(bolts["[*] > 3"])"));
}

struct Within {
    taiyen::vector<Within> inner;
};

BOOST_AUTO_TEST_CASE(many_bits_are_led_to) {
    const ScratchDirectory directory;
    PersistentOptions options;
    options.capacity = 4_MiB;
    ArchiveHeap heap(create_only, directory / "a.tyn", options);
    auto& bits = heap.construct<taiyen::vector<bool>>("bits", std::size_t{15'000'000});
    bits[7'654'321] = true;
    const ViewValue value = View(heap).find("bits").value();
    int count = 0;
    value.for_each("[7654321] == true", [&](std::string_view, const ViewValue&) { return ++count != 0; });
    BOOST_TEST(count == 1);
}

struct Mixed {
    taiyen::vector<float> floats;
    taiyen::vector<double> doubles;
    taiyen::vector<long double> long_doubles;
    taiyen::vector<std::variant<int, taiyen::vector<int>, Within>> values;
    taiyen::vector<Mixed*> others;
};

BOOST_AUTO_TEST_CASE(numbers_are_compared_as_what_is_written_is_in_their_type) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    Mixed& mixed = heap.construct<Mixed>("mixed");
    mixed.floats = {0.1F, 1.98F, 16777216.0F};
    mixed.doubles = {0.1, 1.98, 1e300};
    mixed.long_doubles = {0.1L, 1.98L};
    mixed.values.emplace_back(7);
    mixed.values.emplace_back(taiyen::vector<int>({1, 2}, mixed.values.get_allocator()));
    mixed.values.emplace_back().emplace<Within>();
    mixed.others.assign(50, &mixed);
    const ViewValue value = View(heap).find("mixed").value();
    const auto found = [&](const char* pattern) {
        std::string paths;
        value.for_each(pattern, [&](std::string_view path, const ViewValue&) {
            paths += (paths.empty() ? "" : " ") + std::string(path);
            return true;
        });
        return paths;
    };
    for (const std::string_view row : {"floats", "doubles", "long_doubles"}) {
        const std::string name(row);
        BOOST_TEST(found((name + "[*] == 1.98").c_str()) == name + "[1]");
        BOOST_TEST(found((name + "[*] < 1.98").c_str()) == name + "[0]");
        BOOST_TEST(found((name + "[*] <= 0.1").c_str()) == name + "[0]");
        BOOST_TEST(found((name + "[*] > 1e4000").c_str()) == "");
        BOOST_TEST(found((name + "[*] < 1e-4000").c_str()) == "");
    }
    BOOST_TEST(found("floats[*] > 16777215.5") == "floats[2]");
    BOOST_TEST(found("doubles[*] >= 1e300") == "doubles[2]");
    // What others have, and one hasn't got, leaves it out.
    BOOST_TEST(found("values[*][*]") == "values[1][0] values[1][1]");
    BOOST_TEST(found("values[*].inner[*]") == "");
    // Behind pointers the same counts as often as it is led to.
    std::uint64_t count = 0;
    value.for_each("others[*].others[*].others[*].floats[*] == 0.1", [&](std::string_view, const ViewValue&) { return ++count != 0; });
    BOOST_TEST(count == 125'000U);
}

/// What is printed for people, put together, leads where it says.
BOOST_AUTO_TEST_CASE(labels_are_paths) {
    const ScratchDirectory directory;
    Changer changer{std::mt19937_64(test::seed_of_run())};
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    Everything& all = heap.construct<Everything>("all");
    for (int i = 0; i < 200; ++i) changer.change(all);
    for (const char* const key : {"a\nb", "quote \" and \\", "", "\u0085\x7f\u00e4\u20ac", "dot.and[bracket]"}) changer.change(all.bolts[key]);
    const ViewValue whole = View(heap).find("all").value();
    std::ostringstream to;
    write_tree(to, "all", whole, {.indent = 1});
    std::istringstream lines(to.str());
    std::vector<std::string> path;
    std::size_t leaves = 0;
    for (std::string line; std::getline(lines, line);) {
        for (const char c : line) BOOST_REQUIRE((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
        BOOST_REQUIRE(line.find("\xc2\x85") == std::string::npos);
        const std::size_t depth = line.find_first_not_of(' ');
        std::size_t end = depth;  // of the label, which may hold a text in quotes
        bool is_quoted = false;
        for (; line[end] != ':' || is_quoted; ++end)
            if (is_quoted && line[end] == '\\')
                ++end;
            else if (line[end] == '"')
                is_quoted = !is_quoted;
        path.resize(depth);
        path.push_back(line.substr(depth, end - depth));
        std::string joined;
        bool has_many = false;
        for (std::size_t i = 1; i < path.size(); ++i) {
            joined += joined.empty() || path[i].starts_with('[') ? path[i] : "." + path[i];
            has_many = has_many || path[i] == "many" || path[i] == "many_words" || path[i] == "loose" || path[i] == "still_many";
        }
        if (joined.empty() || has_many) continue;
        std::ostringstream there;
        write_tree(there, path.back(), whole.at(joined), {.indent = 1});
        BOOST_TEST_REQUIRE(there.str().substr(0, there.str().find('\n')) == line.substr(depth));
        ++leaves;
    }
    BOOST_TEST(leaves > 100U);
}

BOOST_AUTO_TEST_CASE(a_text_is_read_in_pieces_and_cut_between_characters) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    std::string text(65'535, 'x');
    for (int i = 0; i < 70'000; ++i) text += i % 2 == 0 ? "\u20ac" : "\U0001f600";
    heap.construct<taiyen::string>("text").assign(text.begin(), text.end());
    auto& wide = heap.construct<taiyen::u16string>("wide");
    for (int i = 0; i < 40'000; ++i) wide += i % 3 == 0 ? u"\U0001f600" : u"\u20ac";
    heap.construct<taiyen::string>("bad") = "a\xff\xe2\x82";
    const View view(heap);
    BOOST_TEST((view.find("text").value().text() == text));
    const std::string all = view.find("wide").value().text();
    BOOST_TEST(all.size() == 13'334U * 4 + 26'666U * 3);
    BOOST_TEST(all.starts_with("\U0001f600\u20ac\u20ac\U0001f600"));
    const auto json = [&](const char* name, std::uint64_t bytes) {
        std::ostringstream to;
        write_json(to, view.find(name).value(), {.text_bytes = bytes});
        return to.str();
    };
    BOOST_TEST((json("text", ~std::uint64_t{0}) == '"' + text + '"'));
    BOOST_TEST(json("bad", 100) == "\"a\ufffd\ufffd\ufffd\"");
    BOOST_TEST(json("text", 2) == "\"xx\u2026\"");
    BOOST_TEST(json("wide", 6) == "\"\U0001f600\u2026\"");
    BOOST_TEST(json("wide", 7) == "\"\U0001f600\u20ac\u2026\"");
    std::ostringstream tree;
    write_tree(tree, "text", view.find("text").value(), {.text_bytes = 3});
    BOOST_TEST(tree.str() == "text: \"xxx\u2026\", " + std::to_string(text.size()) + " characters\n");
}

/// Leaves hold keys and values without what pads a pair.
BOOST_AUTO_TEST_CASE(a_tree_may_fill_its_heap) {
    const ScratchDirectory directory;
    PersistentOptions options;
    options.capacity = 256_MiB;
    ArchiveHeap heap(create_only, directory / "a.tyn", options);
    auto& tree = heap.construct<taiyen::btree_map<std::int64_t, std::uint8_t>>("tree");
    for (std::int64_t i = 0; i < 1'000'000; ++i) tree.emplace_hint(tree.end(), i, static_cast<std::uint8_t>(i));
    const ViewValue value = View(heap).find("tree").value();
    BOOST_TEST(value.size() == tree.size());
    std::int64_t next = 0;
    for (const ViewValue& element : value.elements())
        if (next++ % 1000 == 0) BOOST_REQUIRE(element.part(0).get<std::int64_t>() == next - 1);
    BOOST_TEST(next == 1'000'000);
    std::ostringstream to;
    write_json(to, value);  // it is not taken for one that lies within itself
    BOOST_TEST(to.str().ends_with("\"999999\": 63}"));
}

/// A few values that lie within each other would be shown for ever.
BOOST_AUTO_TEST_CASE(values_that_lie_within_each_other_are_damage) {
    const ScratchDirectory directory;
    PersistentOptions options;
    options.capacity = 256_KiB;
    ArchiveHeap heap(create_only, directory / "a.tyn", options);
    auto& within = heap.construct<Within>("within");
    within.inner.resize(2);
    auto* const inside = &within.inner[0];
    for (int i = 0; i < 2; ++i) std::memcpy(static_cast<void*>(&inside[i]), &within, sizeof within);
    std::ostringstream to;
    BOOST_TEST(test::throws(errc::corrupt, [&] { write_json(to, View(heap).find("within").value(), {.depth = 1000}); }));
    std::string pattern = "inner[*]";
    for (int i = 0; i < 18; ++i) pattern += ".inner[*]";
    const auto nothing_more = [](std::string_view, const ViewValue&) { return true; };
    BOOST_TEST(test::throws(errc::corrupt, [&] { View(heap).find("within").value().for_each(pattern, nothing_more); }));
    std::memset(static_cast<void*>(inside), 0, 2 * sizeof within);

    // Types of no bytes, each two of the next one.
    auto shape = std::make_shared<Shape>();
    for (std::uint32_t i = 0; i < 40; ++i) shape->nodes.push_back({ShapeKind::tuple, false, false, 0, 1, 0, {}, {{"", 0, i + 1}, {"", 0, i + 1}}});
    shape->nodes.push_back({ShapeKind::structure, false, false, 0, 1, 0, {}, {}});
    const ViewValue nothing = inspect::ViewAccess::object(HeapAccess::file(heap), shape, 0, 1);
    BOOST_TEST(test::throws(errc::corrupt, [&] { write_json(to, nothing); }));
    BOOST_TEST(test::throws(errc::corrupt, [&] { write_tree(to, "nothing", nothing, {.depth = 1000, .indent = 0}); }));
}

BOOST_AUTO_TEST_CASE(bits_that_end_between_words_are_damage) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    auto& bits = heap.construct<taiyen::vector<bool>>("bits");
    bits.resize(100);
    const ViewValue value = View(heap).find("bits").value();
    BOOST_TEST(value.size() == 100U);
    std::uint64_t words[sizeof bits / 8];
    std::memcpy(words, static_cast<const void*>(&bits), sizeof words);
    constexpr std::size_t last = sizeof words / 8;
    std::uint64_t damaged[last];
    std::memcpy(damaged, words, sizeof words);
    damaged[last - 4] = 63;                     // the first bit
    damaged[last - 3] = damaged[last - 5] + 1;  // the end
    damaged[last - 2] = 0;
    std::memcpy(static_cast<void*>(&bits), damaged, sizeof words);
    BOOST_TEST(test::throws(errc::corrupt, [&] { (void)value.size(); }));
    std::memcpy(static_cast<void*>(&bits), words, sizeof words);
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
                i % 2 == 0 ? static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&all) - base) + changer.below(sizeof(Everything) / 8) * 8
                           : block + changer.below(8) * 8;
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
