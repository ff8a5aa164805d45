// Objects of types that only this file knows; compiled without debug information, as if another program had made them.
#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include <taiyen/taiyen.hpp>

namespace other {

enum class Metal : std::uint8_t { steel = 3 };
struct Bolt {
    taiyen::string name;
    Metal metal = Metal::steel;
    std::optional<double> weight;
    std::variant<int, taiyen::string> code;
    const Bolt* like = nullptr;
    std::array<short, 2> ends{};
    bool is_cut = false;
};
struct Store {
    taiyen::map<taiyen::string, Bolt> bolts;
    taiyen::vector<int> numbers;
    taiyen::vector<bool> flags;
    taiyen::deque<int> queue;
    taiyen::list<char> letters;
    taiyen::forward_list<int> chain;
    taiyen::unordered_map<int, int> table;
    taiyen::btree_map<int, taiyen::string> tree;
    taiyen::ordered_map<int, int> apart;
    taiyen::flat_hash_map<int, int> flat;
    std::pair<int, float> pair;
    std::tuple<long, char> tuple;
};

}  // namespace other

void make_others(taiyen::SnapshotHeap& heap) {
    auto& store = heap.construct<other::Store>("store");
    other::Bolt& bolt = store.bolts["m8"];
    bolt.name = "a \"hexagon\" bolt that is longer than a small buffer";
    bolt.weight = 1.5;
    bolt.code.emplace<taiyen::string>("DIN 933");
    bolt.ends = {8, -40};
    store.bolts["m9"].like = &bolt;
    store.bolts["m9"].is_cut = true;
    store.numbers = {1, -2, 3};
    store.flags = {true, false, true};
    for (int i = 0; i < 300; ++i) store.queue.push_back(i);
    for (int i = 0; i < 297; ++i) store.queue.pop_front();
    store.letters = {'x', 'y'};
    store.chain = {5, 6};
    store.table = {{7, 70}};
    for (int i = 0; i < 200; ++i) store.tree.emplace(i, std::to_string(i));
    for (int i = 0; i < 198; ++i) store.tree.erase(i);
    store.apart = {{2, 20}, {1, 10}};
    store.flat = {{9, 90}};
    store.pair = {4, 0.25F};
    store.tuple = {-5, 'z'};
}
