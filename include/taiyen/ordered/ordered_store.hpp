#pragma once
/// OrderedStore: byte strings by byte strings, in order, in a volatile heap; any number of threads read and write it.
///
/// A B+ tree of 4 KiB nodes with optimistic locks: readers take no lock and write nothing that others read; writers lock the nodes that they change. Guide: doc/ordered_store.md.
/// Order: that of std::string_view, by unsigned bytes. Keys are kept whole, up to 64 KiB; the empty key is a key. Values are as long as the heap has room; an empty value is a value.
/// Each call is atomic: it takes effect at one moment between its beginning and its end. Scans and batches are not: see there.
/// Durability: none. Thread rule: safe, but for moving, destroying and is_sound(), which no other call may overlap. Views and cursors belong to the thread that made them.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/volatile_heap.hpp>

namespace taiyen {

struct EpochSlot;
namespace ordered {
class StoreCursor;
class StoreTree;

template <class Visitor>
bool goes_on(Visitor& visit, std::string_view key, std::string_view value) {
    if constexpr (std::is_void_v<std::invoke_result_t<Visitor&, std::string_view, std::string_view>>) {
        visit(key, value);
        return true;
    } else {
        return static_cast<bool>(visit(key, value));
    }
}
}  // namespace ordered

/// Figures about a store. Exact while nobody changes it.
struct OrderedStoreStats {
    std::uint64_t keys = 0;
    std::uint64_t nodes = 0;       ///< those that wait to be freed included
    std::uint64_t node_bytes = 0;  ///< of the heap, free nodes included
    std::uint64_t retired = 0;     ///< nodes, values and keys that wait until no reader can see them
    std::uint32_t height = 0;      ///< levels of nodes
};

/// What is called with (key, value), both std::string_view, valid during the call. It may return false to end.
template <class F>
concept OrderedStoreVisitor = std::invocable<F&, std::string_view, std::string_view>;

class TAIYEN_EXPORT OrderedStore {
public:
    static constexpr std::size_t key_bytes_max = 65'536;
    using Element = std::pair<std::string, std::string>;

    /// Takes its memory from the heap, which other stores and containers may use as well: capacity, page size and NUMA node are the heap's. The heap must stay open until the store is destroyed.
    /// Throws: HeapFull, Error{closed}.
    explicit OrderedStore(VolatileHeap& heap);
    OrderedStore(OrderedStore&&) noexcept;
    OrderedStore& operator=(OrderedStore&&) noexcept;
    OrderedStore(const OrderedStore&) = delete;
    OrderedStore& operator=(const OrderedStore&) = delete;
    /// Gives all memory back to the heap. Requires: no views and cursors. Complexity: linear.
    ~OrderedStore();

    // One key. Each call throws std::bad_alloc when the thread's first one finds no memory. Keys longer than key_bytes_max: nobody has them, and what would store one throws Error{invalid_argument}.
    // Complexity: logarithmic, and linear in the bytes of key and value.
    class View;
    /// False in a view of no value: there is no such key.
    View view(std::string_view key) const;
    /// A copy. Empty: there is no such key.
    std::optional<std::string> get(std::string_view key) const;
    /// Copies as many bytes of the value as the buffer has room for. Returns its length. Empty: there is no such key.
    std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) const;
    bool contains(std::string_view key) const;
    /// Stores or replaces. True: the key is new. Throws: HeapFull, and nothing has changed.
    bool set(std::string_view key, std::string_view value);
    /// Stores if there is no such key. True: it did. Throws: HeapFull, and nothing has changed.
    bool insert(std::string_view key, std::string_view value);
    /// True: it was there. Needs no memory.
    bool erase(std::string_view key);
    /// Replaces `expected` by `desired`, each absent where it is std::nullopt. True: it did. Throws: HeapFull, and nothing has changed.
    bool compare_exchange(std::string_view key, std::optional<std::string_view> expected, std::optional<std::string_view> desired);
    /// Adds to a value of 8 bytes, a number in this processor's byte order; it wraps. Returns what it was. No such key: stores `added` and returns 0. Throws: HeapFull, Error{type_mismatch}: the value has another length.
    std::int64_t fetch_add(std::string_view key, std::int64_t added);

    class Batch;
    /// In the order of keys, those of one key as they were added. Each is atomic, the batch is not: others may see some of it. Throws: HeapFull; a smaller key's were applied then, a greater one's not.
    void apply(const Batch& batch);

    // Many keys, in order. A leaf of about a hundred keys is read as it was at one moment, the next one as it is later. What is there all the time is met exactly once, what comes or goes meanwhile once or not at all.
    // The visitor may change the store. Throws: std::bad_alloc, and what the visitor throws.
    class Cursor;
    Cursor cursor() const;
    /// Keys from `from` on, ascending.
    template <OrderedStoreVisitor F>
    void scan(std::string_view from, F&& visit) const;
    /// The first `count` of them.
    std::vector<Element> scan(std::string_view from, std::size_t count) const;
    /// Keys up to `from`, `from` included, descending. std::nullopt: from the greatest on.
    template <OrderedStoreVisitor F>
    void scan_reverse(std::optional<std::string_view> from, F&& visit) const;
    std::vector<Element> scan_reverse(std::optional<std::string_view> from, std::size_t count) const;
    /// Keys that begin so, ascending.
    template <OrderedStoreVisitor F>
    void prefix(std::string_view prefix, F&& visit) const;
    /// How many keys there are from `from` on, before `to`. std::nullopt: to the end. Complexity: linear in the leaves.
    std::uint64_t count(std::string_view from = {}, std::optional<std::string_view> to = std::nullopt) const;

    /// Exact while nobody changes the store. Complexity: constant.
    std::uint64_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }
    OrderedStoreStats stats() const;
    /// Frees what no reader can see any more. Others do so from time to time.
    void trim() noexcept;
    /// Proves the whole tree. Complexity: linear.
    bool is_sound() const;

private:
    std::unique_ptr<ordered::StoreTree> tree_;
};

/// A value, as it is for as long as the view lives. Others may replace or erase it meanwhile; its memory is freed afterwards. While a thread has one, nothing that is taken out of any store meanwhile is freed: keep it short.
class TAIYEN_EXPORT OrderedStore::View {
public:
    View() = default;
    View(View&&) noexcept;
    View& operator=(View&&) noexcept;
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View();
    explicit operator bool() const noexcept { return slot_ != nullptr; }
    /// Requires: there is a value.
    std::string_view value() const noexcept { return {block_ != nullptr ? block_ : inside_, bytes_}; }

private:
    friend class OrderedStore;
    EpochSlot* slot_ = nullptr;    ///< null: nothing is kept
    const char* block_ = nullptr;  ///< null: the value lies here
    std::size_t bytes_ = 0;
    char inside_[128];
};

/// Sets and erasures, to be applied together.
class OrderedStore::Batch {
public:
    /// Throws: std::bad_alloc.
    void set(std::string_view key, std::string_view value) { operations_.push_back({std::string(key), std::string(value)}); }
    void erase(std::string_view key) { operations_.push_back({std::string(key), std::nullopt}); }
    void clear() noexcept { operations_.clear(); }
    std::size_t size() const noexcept { return operations_.size(); }

private:
    friend class OrderedStore;
    struct Operation {
        std::string key;
        std::optional<std::string> value;  ///< empty: the key is erased
    };
    std::vector<Operation> operations_;
};

/// A place in a store, before a copy of the leaf there. As a view, it keeps back memory of all stores: from one call that moves it to the next.
class TAIYEN_EXPORT OrderedStore::Cursor {
public:
    Cursor(Cursor&&) noexcept;
    Cursor& operator=(Cursor&&) noexcept;
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;
    ~Cursor();

    // Each returns whether it stands at a key now. Throws: std::bad_alloc.
    bool seek(std::string_view key);          ///< the first one that is not less
    bool seek_at_most(std::string_view key);  ///< the last one that is not greater
    bool seek_first() { return seek({}); }
    bool seek_last();
    /// Requires: it stands at a key.
    bool next();
    bool previous();
    explicit operator bool() const noexcept;
    // Until it moves. Requires: it stands at a key.
    std::string_view key() const noexcept;
    std::string_view value() const noexcept;

private:
    friend class OrderedStore;
    explicit Cursor(std::unique_ptr<ordered::StoreCursor> cursor) noexcept;
    std::unique_ptr<ordered::StoreCursor> cursor_;
};

template <OrderedStoreVisitor F>
void OrderedStore::scan(std::string_view from, F&& visit) const {
    Cursor at = cursor();
    for (bool is_there = at.seek(from); is_there && ordered::goes_on(visit, at.key(), at.value());) is_there = at.next();
}
template <OrderedStoreVisitor F>
void OrderedStore::scan_reverse(std::optional<std::string_view> from, F&& visit) const {
    Cursor at = cursor();
    for (bool is_there = from ? at.seek_at_most(*from) : at.seek_last(); is_there && ordered::goes_on(visit, at.key(), at.value());)
        is_there = at.previous();
}
template <OrderedStoreVisitor F>
void OrderedStore::prefix(std::string_view prefix, F&& visit) const {
    scan(prefix, [&](std::string_view key, std::string_view value) { return key.starts_with(prefix) && ordered::goes_on(visit, key, value); });
}

}  // namespace taiyen
