#pragma once
/// Durable maps from 8-byte keys to 100-byte values behind one small interface: taiyen's TransactionalHeap in its capture modes, and what people use now.
///
/// Each contender keeps its files in a folder of its own on the same file system and runs with its fastest settings of the durability that is asked for (or, to compare,
/// with its default ones); `settings()` says which. A contender that this program was built without is not made (nullptr), and `print_peers()` says so.
/// Thread rule: `update` and `read` may be called by several threads at once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../harness.hpp"

namespace taiyen {
class TransactionalHeap;
struct PersistentOptions;
}  // namespace taiyen

namespace bench {

/// 100 bytes without padding.
using Value = std::array<std::uint32_t, 25>;

/// Keys look random and are in no order; `number` says which one.
constexpr std::uint64_t key_of(std::uint64_t number) { return (number + 1) * 0x9e37'79b9'7f4a'7c15ULL; }

/// The keys that a run picks from.
class Keys {
public:
    explicit Keys(std::size_t count) : count_(count) {}
    explicit Keys(std::vector<std::uint64_t> some) : count_(some.size()), some_(std::move(some)) {}
    std::uint64_t pick(Random& random) const {
        const std::uint64_t number = random.below(count_);
        return some_.empty() ? key_of(number) : some_[number];
    }
    std::size_t count() const { return count_; }

private:
    std::size_t count_;
    std::vector<std::uint64_t> some_;
};

struct Update {
    std::uint64_t key;
    Value value;
};
/// A random key and 100 new bytes. Not inline: contenders compiled with store hooks call the same code as the others.
Update next_update(Random& random, const Keys& keys);
/// All keys from key_of(0) on, ascending, as stores load fastest.
std::vector<std::uint64_t> sorted_keys(std::size_t count);
/// The value that a key has after loading.
Value first_value(std::uint64_t key);

enum class Commit {
    sync,  ///< durable when a commit returns
    async  ///< some time later
};

enum class Settings {
    fastest,  ///< all that the durability allows, and past the first lap of the peer's log
    defaults  ///< as the peer comes, but for the durability
};

struct Setup {
    std::filesystem::path folder;  ///< made by the contender
    std::size_t keys = 0;
    Commit commit = Commit::sync;
    Settings settings = Settings::fastest;
    std::size_t memory = 0;  ///< bytes that the process has for data that doesn't fit into it; 0: it fits
    bool ascending = false;  ///< heaps are loaded in the order of the keys, as LMDB and RocksDB are
    bool is_there = false;   ///< a contender with this setup but for this one has made the files and closed them
};

class KeyValues {
public:
    KeyValues(std::string name, std::string settings) : name_(std::move(name)), settings_(std::move(settings)) {}
    virtual ~KeyValues() = default;
    const std::string& name() const { return name_; }
    const std::string& settings() const { return settings_; }
    /// So many transactions, each of which gives one key a new value.
    virtual void update(Random& random, const Keys& keys, std::size_t transactions) = 0;
    /// So many read transactions, each of which looks one key up. Throws if one is missing; returns the sum of what it read.
    virtual std::uint64_t read(Random& random, const Keys& keys, std::size_t transactions) = 0;

private:
    std::string name_;
    std::string settings_;
};

/// A contender of ours, with what only the heap knows.
class HeapKeyValues : public KeyValues {
public:
    using KeyValues::KeyValues;
    virtual taiyen::TransactionalHeap& heap() = 0;
    /// The keys whose nodes lie on `pages` pages that are spread over the whole container.
    virtual std::vector<std::uint64_t> keys_on_pages(std::size_t pages) = 0;
    /// Pages that hold nodes.
    virtual std::size_t pages() = 0;
    /// Writes to every page once, in transactions: from then on pages are in memory and private.
    virtual void warm_up() = 0;
};

std::unique_ptr<KeyValues> make_lmdb(const Setup& setup);
std::unique_ptr<KeyValues> make_sqlite(const Setup& setup);
std::unique_ptr<KeyValues> make_rocksdb(const Setup& setup);
std::unique_ptr<KeyValues> make_pmemobj(const Setup& setup);

/// `flat_map`: boost::unordered_flat_map; `absl_btree_map_pages`: absl::btree_map with nodes of a page. Throws if the program was built without them.
enum class Container { map, unordered_map, btree_map, flat_hash_map, flat_map, absl_btree_map, absl_btree_map_pages };
/// Options of the heap but for `durability`, which the setup says.
std::unique_ptr<HeapKeyValues> make_taiyen(const Setup& setup, Container container, const taiyen::PersistentOptions& options);
/// The same in code that announces its stores, with Capture::stores.
std::unique_ptr<HeapKeyValues> make_taiyen_stores(const Setup& setup, Container container, const taiyen::PersistentOptions& options);

/// What `make` makes; null, and a line saying why, if it fails: the others run without it.
template <class Make>
auto make_if_possible(const std::string& name, Make&& make) -> decltype(make()) {
    try {
        return make();
    } catch (const std::exception& error) {
        std::printf("%s: not measured: %s\n", name.c_str(), error.what());
        return nullptr;
    }
}

/// A line for each contender with its settings, and one for each peer that this program was built without.
void print_contenders(const std::vector<const KeyValues*>& contenders);

enum class Spread {
    all_processors,
    one_processor  ///< all threads take turns on the first one
};
/// Updates by so many threads at once for about so long; transactions per second.
double update_rate(KeyValues& store, const Keys& keys, std::size_t threads, double seconds, Spread spread = Spread::all_processors);

}  // namespace bench
