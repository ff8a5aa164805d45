// The contenders in a TransactionalHeap. Compiled twice: as it is, and with store hooks (TAIYEN_STORES), which gives make_taiyen_stores.

#include "key_values.hpp"

#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#ifdef TAIYEN_BENCH_FLAT_MAP
#include <boost/unordered/unordered_flat_map.hpp>
#endif
#ifdef TAIYEN_BENCH_ABSL
#include <absl/container/btree_map.h>
#endif

#ifdef TAIYEN_BENCH_TXN
#include <taiyen/txn/read_lock.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

// They are never saved while they are empty.
#ifdef TAIYEN_BENCH_FLAT_MAP
template <class... A>
inline constexpr bool taiyen::points_to_constant<boost::unordered_flat_map<A...>> = false;
#endif
#if defined(TAIYEN_BENCH_ABSL)
template <class... A>
inline constexpr bool taiyen::points_to_constant<absl::btree_map<A...>> = false;
#endif

namespace bench {

#ifdef TAIYEN_BENCH_ABSL
/// absl::btree_map with nodes of a page instead of 256 bytes: by the library's own parameters, which are no public interface.
template <class Key, class T, class Allocator>
class BtreeOfPages : public absl::container_internal::btree_map_container<
                         absl::container_internal::btree<absl::container_internal::map_params<Key, T, std::less<>, Allocator, 4096, false>>> {
    using Base = typename BtreeOfPages::btree_map_container;

public:
    using Base::Base;
};
#endif

namespace {

const char* name_of(taiyen::Capture capture) {
    return capture == taiyen::Capture::pages ? "pages" : capture == taiyen::Capture::stores ? "stores" : "declared";
}

template <class Map>
class Heap final : public HeapKeyValues {
public:
    Heap(const Setup& setup, const char* container, const taiyen::PersistentOptions& options)
        : HeapKeyValues(container + std::string(", ") + name_of(options.capture) + (setup.commit == Commit::sync ? "" : ", async"),
                        std::string("Capture::") + name_of(options.capture) + ", log of " + std::to_string(options.log_capacity >> 20U) + " MiB" +
                            (setup.commit == Commit::sync ? "" : ", Durability::async with the default window")),
          heap_(taiyen::open_only, filled(setup, options.capacity), options) {
        map_ = heap_.find<Map>("pairs");
        if (map_ == nullptr) throw std::runtime_error("the map that was loaded isn't there");
        declared_ = options.capture == taiyen::Capture::declared;
    }

    void update(Random& random, const Keys& keys, std::size_t transactions) override {
        for (std::size_t i = 0; i < transactions; ++i) {
            const Update next = next_update(random, keys);
            taiyen::Transaction transaction(heap_);
            store(transaction, map_->find(next.key), next.value);
            transaction.commit();
        }
    }

    std::uint64_t read(Random& random, const Keys& keys, std::size_t transactions) override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < transactions; ++i) {
            const std::uint64_t key = keys.pick(random);
            const taiyen::ReadLock lock(heap_);
            const auto found = map_->find(key);
            if (found == map_->end()) throw std::runtime_error("taiyen: a key is missing");
            sum += found->second[7];
        }
        return sum;
    }

    taiyen::TransactionalHeap& heap() override { return heap_; }

    std::vector<std::uint64_t> keys_on_pages(std::size_t pages) override {
        std::unordered_set<std::uintptr_t> all;
        for (auto&& pair : *map_) all.insert(page_of(pair));
        std::vector<std::uintptr_t> spread(all.begin(), all.end());
        std::sort(spread.begin(), spread.end());
        std::unordered_set<std::uintptr_t> chosen;
        for (std::size_t i = 0; i < std::min(pages, spread.size()); ++i) chosen.insert(spread[i * spread.size() / pages]);
        std::vector<std::uint64_t> keys;
        for (auto&& pair : *map_)
            if (chosen.contains(page_of(pair))) keys.push_back(pair.first);
        return keys;
    }

    std::size_t pages() override {
        std::unordered_set<std::uintptr_t> all;
        for (auto&& pair : *map_) all.insert(page_of(pair));
        return all.size();
    }

    void warm_up() override {
        std::unordered_set<std::uintptr_t> seen;
        auto at = map_->begin();
        while (at != map_->end()) {
            taiyen::Transaction transaction(heap_);
            for (int i = 0; i < 500 && at != map_->end(); ++at) {
                if (!seen.insert(page_of(*at)).second) continue;
                Value value = at->second;
                ++value[0];
                store(transaction, at, value);
                ++i;
            }
            transaction.commit();
        }
        heap_.snapshot();
    }

private:
    /// Loaded in random order, as a program would fill it, while it is an archive.
    static std::filesystem::path filled(const Setup& setup, std::size_t capacity) {
        std::filesystem::create_directories(setup.folder);
        std::filesystem::path path = setup.folder / "bench.tyn";
        if (setup.is_there) return path;
        taiyen::PersistentOptions options;
        options.capacity = capacity;
        taiyen::ArchiveHeap heap(taiyen::create_only, path, options);
        Map& map = made(heap, setup.keys, setup.ascending ? sorted_keys(setup.keys).front() : key_of(0));
        if (setup.ascending)
            for (const std::uint64_t key : sorted_keys(setup.keys)) map.emplace(key, first_value(key));
        else
            for (std::size_t i = 0; i < setup.keys; ++i) map.emplace(key_of(i), first_value(key_of(i)));
        heap.snapshot();
        heap.close();
        return path;
    }
    /// Empty ones of other libraries lead to constants of the program, so those begin with what they need.
    static Map& made(taiyen::ArchiveHeap& heap, std::size_t keys, std::uint64_t first_key) {
        if constexpr (requires(Map map) { map.key_comp(); }) {
            const std::pair<const std::uint64_t, Value> first(first_key, first_value(first_key));
            return heap.construct<Map>("pairs", &first, &first + 1);
        } else {
            return heap.construct<Map>("pairs", keys);
        }
    }
    /// The page on which most of the value lies.
    template <class Pair>
    static std::uintptr_t page_of(const Pair& pair) {
        return reinterpret_cast<std::uintptr_t>(&pair.second[12]) >> 12U;
    }
    template <class Place>
    void store(taiyen::Transaction& transaction, Place place, const Value& value) {
        if (place == map_->end()) throw std::runtime_error("taiyen: a key is missing");
        if (declared_) transaction.touch(&place->second, sizeof place->second);
        place->second = value;
    }

    taiyen::TransactionalHeap heap_;
    Map* map_ = nullptr;
    bool declared_ = false;
};

std::unique_ptr<HeapKeyValues> make(const Setup& setup, Container container, taiyen::PersistentOptions options) {
    options.durability = setup.commit == Commit::sync ? taiyen::Durability::sync : taiyen::Durability::async;
    if (container == Container::flat_map) {
#ifdef TAIYEN_BENCH_FLAT_MAP
        using Pair = std::pair<const std::uint64_t, Value>;
        using Map = boost::unordered_flat_map<std::uint64_t, Value, boost::hash<std::uint64_t>, std::equal_to<>, taiyen::persistent_allocator<Pair>>;
        return std::make_unique<Heap<Map>>(setup, "boost::unordered_flat_map", options);
#else
        throw std::runtime_error("built without it (libboost1.81-dev)");
#endif
    }
    if (container == Container::absl_btree_map) {
#ifdef TAIYEN_BENCH_ABSL
        using Pair = std::pair<const std::uint64_t, Value>;
        using Map = absl::btree_map<std::uint64_t, Value, std::less<>, taiyen::persistent_allocator<Pair>>;
        return std::make_unique<Heap<Map>>(setup, "absl::btree_map", options);
#else
        throw std::runtime_error("built without it (libabsl-dev)");
#endif
    }
    if (container == Container::absl_btree_map_pages) {
#ifdef TAIYEN_BENCH_ABSL
        using Pair = std::pair<const std::uint64_t, Value>;
        return std::make_unique<Heap<BtreeOfPages<std::uint64_t, Value, taiyen::persistent_allocator<Pair>>>>(setup, "B-tree, nodes of a page",
                                                                                                              options);
#else
        throw std::runtime_error("built without it (libabsl-dev)");
#endif
    }
    if (container == Container::btree_map)
        return std::make_unique<Heap<taiyen::btree_map<std::uint64_t, Value>>>(setup, "taiyen::btree_map", options);
    if (container == Container::flat_hash_map)
        return std::make_unique<Heap<taiyen::flat_hash_map<std::uint64_t, Value>>>(setup, "taiyen::flat_hash_map", options);
    if (container == Container::map) return std::make_unique<Heap<taiyen::map<std::uint64_t, Value>>>(setup, "taiyen::map", options);
    return std::make_unique<Heap<taiyen::unordered_map<std::uint64_t, Value>>>(setup, "taiyen::unordered_map", options);
}

}  // namespace

#ifdef TAIYEN_STORES
std::unique_ptr<HeapKeyValues> make_taiyen_stores(const Setup& setup, Container container, const taiyen::PersistentOptions& options) {
    taiyen::PersistentOptions changed = options;
    changed.capture = taiyen::Capture::stores;
    return make(setup, container, changed);
}
#else
std::unique_ptr<HeapKeyValues> make_taiyen(const Setup& setup, Container container, const taiyen::PersistentOptions& options) {
    return make(setup, container, options);
}
#endif
}  // namespace bench
#else
namespace bench {
#ifdef TAIYEN_STORES
std::unique_ptr<HeapKeyValues> make_taiyen_stores(const Setup&, Container, const taiyen::PersistentOptions&) { return nullptr; }
#else
std::unique_ptr<HeapKeyValues> make_taiyen(const Setup&, Container, const taiyen::PersistentOptions&) { return nullptr; }
#endif
}  // namespace bench
#endif
