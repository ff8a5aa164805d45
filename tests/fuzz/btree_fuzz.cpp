// B-trees: programs of insertions, erasures and ranges, one by one and by the hundred, are what the standard library's containers make of them.
//
// First byte: the kind of tree. Then steps: a byte for the kind, two for a key, one for how many more keys, one for how far apart they are.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/ordered/btree_map.hpp>

#include "fuzz/input.hpp"

namespace {

using namespace taiyen;
using taiyen::fuzz::Input;

template <class Pair>
using Memory = std::allocator<Pair>;

struct Numbers {
    using Tree = btree_map<std::uint32_t, std::uint16_t, std::less<>, Memory<std::pair<const std::uint32_t, std::uint16_t>>>;
    using Model = std::map<std::uint32_t, std::uint16_t>;
    static std::uint32_t key(std::uint64_t number) { return static_cast<std::uint32_t>(number * 65'537); }
};
struct Texts {
    using Tree = btree_multimap<std::string, std::uint16_t, ranked<>, Memory<std::pair<const std::string, std::uint16_t>>>;
    using Model = std::multimap<std::string, std::uint16_t>;
    static std::string key(std::uint64_t number) { return std::string(number % 4 == 0 ? "" : "prefixed ") + std::to_string(number / 2); }
};
struct Descending {
    using Key = std::pair<std::int16_t, std::uint8_t>;
    using Tree = btree_map<Key, std::uint16_t, std::greater<>, Memory<std::pair<const Key, std::uint16_t>>>;
    using Model = std::map<Key, std::uint16_t, std::greater<>>;
    static Key key(std::uint64_t number) { return {static_cast<std::int16_t>(number >> 4U), static_cast<std::uint8_t>(number % 16)}; }
};
struct Equals {
    using Tree = btree_multimap<std::uint8_t, std::uint16_t, std::less<>, Memory<std::pair<const std::uint8_t, std::uint16_t>>>;
    using Model = std::multimap<std::uint8_t, std::uint16_t>;
    static std::uint8_t key(std::uint64_t number) { return static_cast<std::uint8_t>(number % 7); }
};

template <class A, class B>
bool same(const A& a, const B& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return x.first == y.first && x.second == y.second; });
}

template <class Kind>
void program(Input& input) {
    typename Kind::Tree tree;
    typename Kind::Model model;
    std::uint16_t value = 0;
    for (int i = 0; i < 100 && !input.empty(); ++i) {
        const std::uint64_t how = input.number(1);
        const std::uint64_t first = input.number(2);
        const std::uint64_t count = input.number(1);
        const std::uint64_t stride = input.number(1);
        const auto key = Kind::key(first);
        switch (how % 8) {
            case 0:
            case 1:
                for (std::uint64_t k = 0; k <= count; ++k, ++value) {
                    tree.emplace(Kind::key(first + k * stride), value);
                    model.emplace(Kind::key(first + k * stride), value);
                }
                break;
            case 2:
                for (std::uint64_t k = 0; k <= count; ++k)
                    TAIYEN_CHECK(tree.erase(Kind::key(first + k * stride)) == model.erase(Kind::key(first + k * stride)));
                break;
            case 3: {
                auto last = Kind::key(first + count * stride);
                if (model.key_comp()(last, key)) break;
                tree.erase(tree.lower_bound(key), tree.upper_bound(last));
                model.erase(model.lower_bound(key), model.upper_bound(last));
                break;
            }
            case 4: {  // with a hint that is good, or near
                auto hint = tree.lower_bound(key);
                auto model_hint = model.lower_bound(key);
                if (count % 2 == 1 && model_hint != model.end()) {
                    ++hint;
                    ++model_hint;
                }
                tree.emplace_hint(hint, key, value);
                model.emplace_hint(model_hint, key, value);
                ++value;
                break;
            }
            case 5: {
                auto at = tree.lower_bound(key);
                auto model_at = model.lower_bound(key);
                for (std::uint64_t k = 0; k <= count && model_at != model.end(); ++k) {
                    at = tree.erase(at);
                    model_at = model.erase(model_at);
                    TAIYEN_CHECK((at == tree.end()) == (model_at == model.end()) && (model_at == model.end() || at->second == model_at->second));
                }
                break;
            }
            case 6: {
                const auto is_gone = [&](const auto& element) { return element.second % (stride + 1) == count % (stride + 1); };
                TAIYEN_CHECK(erase_if(tree, is_gone) == std::erase_if(model, is_gone));
                break;
            }
            default: {
                typename Kind::Tree copy = tree;
                TAIYEN_CHECK(copy.is_sound() && copy == tree);
                tree = std::move(copy);
                TAIYEN_CHECK(tree.count(key) == model.count(key));
                if constexpr (requires { tree.rank(key); }) {
                    const auto rank = std::distance(model.begin(), model.lower_bound(key));
                    TAIYEN_CHECK(tree.rank(key) == static_cast<std::size_t>(rank) && tree.select(tree.rank(key)) == tree.lower_bound(key));
                }
            }
        }
        TAIYEN_CHECK(tree.size() == model.size());
    }
    TAIYEN_CHECK(tree.is_sound() && same(tree, model));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    switch (input.number(1) % 4) {
        case 0: program<Numbers>(input); break;
        case 1: program<Texts>(input); break;
        case 2: program<Descending>(input); break;
        default: program<Equals>(input);
    }
    return 0;
}
