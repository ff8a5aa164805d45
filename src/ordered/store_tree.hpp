#pragma once
/// StoreTree: the B+ tree behind OrderedStore, with optimistic lock coupling (Leis, Haubenschild, Neumann, "Optimistic lock coupling", IEEE Data Engineering Bulletin 42, 2019).
///
/// (T1) A search takes a node's version, reads, takes the child's version, and looks at the first one again: if it is the same, the child was the right one. Else the search begins again.
/// (T2) A writer searches in the same way and then locks the leaf, if it still has the version that was read. It locks two nodes only to split one, three only to merge two, and waits for none of them: if one has
///      changed it lets go of all and begins again. So there is no deadlock.
/// (T3) The root stays where it is: when it is split its content moves into two new nodes, and when it has one child it takes that one's content.
/// (T4) A writer allocates before it changes a node, so that one without memory leaves the tree as it was.
/// (T5) Nodes that were merged away, and blocks that were replaced, are marked or unlinked first, then wait until no reader can see them (store_memory.hpp).
/// Thread rule: safe, but for destroying and is_sound().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/epochs.hpp"
#include "ordered/store_memory.hpp"
#include "ordered/store_node.hpp"

namespace taiyen::ordered {

class StoreTree {
public:
    /// Throws: HeapFull.
    explicit StoreTree(heap::VolatileCore& core);
    StoreTree(const StoreTree&) = delete;
    StoreTree& operator=(const StoreTree&) = delete;
    ~StoreTree();

    // What a reader finds of a value: bytes inside, copied, or a block, which stays while a guard that was there before lives.
    struct Value {
        std::uint32_t bytes = 0;
        StoreBlock* block = nullptr;
        char inside[StoreNode::value_inside];

        std::string_view text() const noexcept { return block != nullptr ? block->text() : std::string_view(inside, bytes); }
    };
    /// False: there is no such key. Requires: an EpochGuard.
    bool find(std::string_view key, Value& value) const;

    /// True: the key is new. `replaces`: what it has is replaced. Throws: HeapFull.
    bool put(std::string_view key, std::string_view value, bool replaces);
    bool erase(std::string_view key);
    bool compare_exchange(std::string_view key, std::string_view expected, std::optional<std::string_view> desired);
    std::uint64_t fetch_add(std::string_view key, std::uint64_t added);

    /// Copies the leaf that has the key, or, `before`, the last one that may have a smaller one. Requires: an EpochGuard; `before`: the key isn't empty. `from_end`: the last leaf, whatever the key.
    void copy_leaf(std::string_view key, bool before, bool from_end, StoreNode& image) const;

    StoreMemory& memory() noexcept { return memory_; }
    std::uint32_t height() const noexcept { return root_->state().level() + 1; }
    bool is_sound() const;

private:
    /// Where a search has come to.
    struct Path {
        StoreReading reading;
        StoreReading parent;      ///< node null: it is the root
        std::uint32_t index = 0;  ///< in the parent
    };
    /// A leaf, and where the key is in it or would be.
    struct LeafPlace {
        StoreReading reading;
        std::string_view rest;
        StorePlace place{};
    };
    struct Payload;
    class Lock;
    struct Separator;
    class NewBlock;
    class NewNode;
    enum class Way { to_key, before_key, to_end };

    static bool begin(StoreNode* node, StoreReading& reading) noexcept;
    bool descend(std::string_view key, Way way, std::uint32_t level, Path& path) const noexcept;
    bool find_leaf(std::string_view key, LeafPlace& place) const noexcept;
    static bool is_value(const LeafPlace& place, std::string_view value, bool& is_same) noexcept;

    /// False: there is no room.
    static bool write_new(const LeafPlace& place, StoreBlock* long_key, const Payload& payload) noexcept;
    static bool write_again(const LeafPlace& place, const Payload& payload) noexcept;
    static void rebuild(StoreNode& node, std::uint32_t without) noexcept;
    static bool make_room(StoreNode& node, std::uint32_t wanted) noexcept;

    static std::uint32_t entry_bytes(std::string_view rest, const Payload& payload) noexcept;
    bool erase_at(const EpochGuard& guard, const LeafPlace& place) noexcept;
    void split(std::string_view key, std::uint32_t wanted);
    bool split_node(std::string_view key, const Path& path);
    void merge(const EpochGuard& guard, std::string_view key) noexcept;
    enum class Merged { retry, done, go_up };
    Merged merge_at(const EpochGuard& guard, std::string_view key, std::uint32_t level) noexcept;
    Merged pull_up(const EpochGuard& guard, const StoreReading& root) noexcept;
    Merged merge_siblings(const EpochGuard& guard, const Path& path, std::uint32_t left_index) noexcept;

    void free_below(StoreNode* node) noexcept;
    bool is_sound(const StoreNode& node, std::string_view lower, std::optional<std::string_view> upper, std::uint32_t level,
                  std::uint64_t& keys) const;

    mutable StoreMemory memory_;
    StoreNode* root_;
};

}  // namespace taiyen::ordered
