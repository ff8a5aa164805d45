#include "ordered/store_tree.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "txn/waiting.hpp"

namespace taiyen::ordered {
namespace {

constexpr std::uint32_t nothing_left_out = StoreNode::count_max;
/// A node that has less is merged with a neighbour, if both leave some room in one.
constexpr std::uint32_t thin_bytes = StoreNode::bytes / 3;
constexpr std::uint32_t merged_bytes_max = StoreNode::bytes - StoreNode::bytes / 10;

bool is_thin(StoreState state) { return StoreNode::filled(state) < thin_bytes; }

/// Waits a little longer each time.
class Attempts {
public:
    void again() noexcept { txn::spin(++turns_); }

private:
    int turns_ = 0;
};

}  // namespace

/// What goes into a body as value. Owns its block until that is in the tree.
struct StoreTree::Payload {
    Payload(StoreMemory& memory, std::string_view value) : memory_(memory) {
        if (value.size() > StoreNode::value_inside) {
            block = memory.make_block(value);
            data = reinterpret_cast<const char*>(&block);
            code = StoreSlot::outside;
        } else {
            data = value.data();
            code = static_cast<std::uint32_t>(value.size());
        }
    }
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;
    ~Payload() {
        if (block != nullptr) memory_.free_block(block);
    }
    std::uint32_t bytes() const noexcept { return code == StoreSlot::outside ? sizeof block : code; }
    void release() noexcept { block = nullptr; }

    const char* data = nullptr;
    std::uint32_t code = 0;
    StoreBlock* block = nullptr;

private:
    StoreMemory& memory_;
};

/// A block that nobody else has yet.
class StoreTree::NewBlock {
public:
    explicit NewBlock(StoreMemory& memory) noexcept : memory_(memory) {}
    NewBlock(const NewBlock&) = delete;
    NewBlock& operator=(const NewBlock&) = delete;
    ~NewBlock() {
        if (block_ != nullptr) memory_.free_block(block_);
    }
    void make(std::string_view text) { block_ = memory_.make_block(text); }
    StoreBlock* get() const noexcept { return block_; }
    StoreBlock* release() noexcept { return std::exchange(block_, nullptr); }

private:
    StoreMemory& memory_;
    StoreBlock* block_ = nullptr;
};

class StoreTree::NewNode {
public:
    explicit NewNode(StoreMemory& memory) : memory_(memory), node_(memory.take_node()) {}
    NewNode(const NewNode&) = delete;
    NewNode& operator=(const NewNode&) = delete;
    ~NewNode() {
        if (node_ != nullptr) memory_.free_node(node_);
    }
    StoreNode& operator*() const noexcept { return *node_; }
    StoreNode* release() noexcept { return std::exchange(node_, nullptr); }

private:
    StoreMemory& memory_;
    StoreNode* node_;
};

/// A node's lock, if the node has the version that was read.
class StoreTree::Lock {
public:
    explicit Lock(const StoreReading& reading) noexcept : node_(reading.node), version_(reading.version) {
        planted_step();
        if (planted(Bug::store_locks_any_version)) version_ = node_->version() & ~StoreNode::locked;
        is_held_ = node_->try_lock(version_);
        planted_step();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { unlock(); }
    explicit operator bool() const noexcept { return is_held_; }
    /// The version changes at the end.
    void will_change() noexcept { bits_ = planted(Bug::store_keeps_version) ? 0 : StoreNode::change; }
    void will_die() noexcept { bits_ = StoreNode::change | StoreNode::obsolete; }
    void unlock() noexcept {
        if (std::exchange(is_held_, false)) node_->set_version(version_ + bits_);
    }

private:
    StoreNode* node_;
    std::uint64_t version_;
    std::uint64_t bits_ = 0;
    bool is_held_ = false;
};

StoreTree::StoreTree(heap::VolatileCore& core) : memory_(core), root_(memory_.take_node()) { root_->begin_image(0, {{}, nullptr}, nullptr); }

StoreTree::~StoreTree() { free_below(root_); }

void StoreTree::free_below(StoreNode* node) noexcept {
    const StoreState state = node->state();
    const auto free = [this](StoreBlock* block) {
        if (block != nullptr) memory_.free_block(block);
    };
    for (std::uint32_t i = 0; i != state.count(); ++i) {
        const StoreSlot slot = node->slot(i);
        free(node->long_key(slot));
        free(node->long_value(slot));
        if (state.level() != 0) free_below(node->child(i));
    }
    free(node->long_lower());
    free(node->long_upper());
    memory_.free_node(node);
}

// Searching.

/// False: the node is gone.
bool StoreTree::begin(StoreNode* node, StoreReading& reading) noexcept {
    std::uint64_t version = node->version();
    for (int turn = 1; (version & StoreNode::locked) != 0; ++turn) {
        txn::spin(turn);
        version = node->version();
    }
    reading.node = node;
    reading.version = version;
    reading.state = node->state();
    return (version & StoreNode::obsolete) == 0;
}

/// Goes down to a node of that level, the root if that lies lower. False: somebody changed a node on the way. What is returned of the node itself is not proven yet.
bool StoreTree::descend(std::string_view key, Way way, std::uint32_t level, Path& path) const noexcept {
    path = {};
    if (!begin(root_, path.reading)) return false;
    while (path.reading.state.level() > level) {
        const StoreReading here = path.reading;
        std::uint32_t index = 0;
        if (way == Way::to_end) {
            index = here.state.count() - 1;
        } else {
            if (here.state.prefix() > key.size()) return false;
            const std::optional<StorePlace> place = search(here, key.substr(here.state.prefix()));
            if (!place) return false;
            index = place->is_same && way == Way::to_key ? place->index : place->index - 1;
        }
        if (index >= here.state.count()) return false;
        const StoreSlot slot = here.node->slot(index);
        if (slot.offset + slot.body_bytes() > StoreNode::bytes || slot.value_bytes() != sizeof(StoreNode*)) return false;
        auto* const child = reinterpret_cast<StoreNode*>(here.node->load_bytes(slot.value_offset(), sizeof(StoreNode*)));
        if (!here.is_valid()) return false;
        if (here.state.level() == 1) {
            // All lines of a leaf's slots are fetched at once.
            for (std::uint32_t line = 0; line != 24; ++line) __builtin_prefetch(child->at(line * 64));
        }
        planted_step();
        if (!begin(child, path.reading)) return false;
        if (!here.is_valid() && !planted(Bug::store_trusts_child)) return false;
        path.parent = here;
        path.index = index;
    }
    return true;
}

bool StoreTree::find_leaf(std::string_view key, LeafPlace& place) const noexcept {
    Path path;
    if (!descend(key, Way::to_key, 0, path) || path.reading.state.prefix() > key.size()) return false;
    place.reading = path.reading;
    place.rest = key.substr(path.reading.state.prefix());
    const std::optional<StorePlace> found = search(path.reading, place.rest);
    if (!found) return false;
    place.place = *found;
    return true;
}

bool StoreTree::find(std::string_view key, Value& value) const {
    for (Attempts attempts;; attempts.again()) {
        LeafPlace place;
        if (!find_leaf(key, place)) continue;
        planted_step();
        const StoreNode& leaf = *place.reading.node;
        if (place.place.is_same) {
            const StoreSlot slot = leaf.slot(place.place.index);
            if (slot.offset + slot.body_bytes() > StoreNode::bytes) continue;
            if (slot.value == StoreSlot::outside) {
                value.block = reinterpret_cast<StoreBlock*>(leaf.load_bytes(slot.value_offset(), sizeof value.block));
            } else {
                if (slot.value > sizeof value.inside) continue;
                value.block = nullptr;
                value.bytes = slot.value;
                leaf.copy_out(value.inside, slot.value_offset(), slot.value);
            }
        }
        if (place.reading.is_valid() || planted(Bug::store_trusts_value)) return place.place.is_same;
    }
}

void StoreTree::copy_leaf(std::string_view key, bool before, bool from_end, StoreNode& image) const {
    for (Attempts attempts;; attempts.again()) {
        Path path;
        if (!descend(key, from_end ? Way::to_end : before ? Way::before_key : Way::to_key, 0, path)) continue;
        planted_step();
        image.copy(*path.reading.node, path.reading.state);
        if (path.reading.is_valid() || planted(Bug::store_trusts_copy)) return;
    }
}

// Changing a node that is locked, or private.

/// Bodies side by side again, one entry left out.
void StoreTree::rebuild(StoreNode& node, std::uint32_t without) noexcept {
    StoreNode image;
    const StoreNode::Fence lower{node.lower(), node.long_lower()};
    const auto upper_text = node.upper();
    const StoreNode::Fence upper{upper_text.value_or(""), node.long_upper()};
    const StoreState state = node.state();
    image.begin_image(state.level(), lower, upper_text ? &upper : nullptr);
    for (std::uint32_t i = 0; i != state.count(); ++i)
        if (i != without) TAIYEN_CHECK(image.append_from(node, i));
    node.publish(image);
}

/// False: even side by side the bodies leave less.
bool StoreTree::make_room(StoreNode& node, std::uint32_t wanted) noexcept {
    const StoreState state = node.state();
    if (StoreNode::gap(state) >= wanted) return true;
    if (StoreNode::room(state) < wanted) return false;
    rebuild(node, nothing_left_out);
    return true;
}

bool StoreTree::write_new(const LeafPlace& place, StoreBlock* long_key, const Payload& payload) noexcept {
    const StoreSlot slot{0, 0, long_key != nullptr ? StoreSlot::outside : static_cast<std::uint32_t>(place.rest.size()), payload.code};
    if (!make_room(*place.reading.node, StoreNode::slot_bytes + slot.body_bytes())) return false;
    place.reading.node->add(place.place.index, place.rest, long_key, payload.data, payload.code);
    return true;
}

bool StoreTree::write_again(const LeafPlace& place, const Payload& payload) noexcept {
    StoreNode& node = *place.reading.node;
    StoreSlot slot = node.slot(place.place.index);
    StoreState state = node.state();
    const std::uint32_t before = slot.body_bytes();
    StoreBlock* const long_key = node.long_key(slot);
    slot.value = payload.code;
    const std::uint32_t bytes = slot.body_bytes();
    if (bytes <= before) {
        node.copy_in(slot.value_offset(), payload.data, payload.bytes());
    } else if (StoreNode::gap(state) >= bytes) {
        state = state.plus(0, -std::int64_t{bytes}, 0);
        slot.offset = state.begin();
        node.write_body(slot, place.rest, long_key, payload.data);
    } else if (StoreNode::room(state) + before >= bytes) {
        rebuild(node, place.place.index);
        node.add(place.place.index, place.rest, long_key, payload.data, payload.code);
        return true;
    } else {
        return false;
    }
    node.set_slot_word(place.place.index, slot.word());
    node.set_state(state.plus(0, 0, std::int64_t{bytes} - before));
    return true;
}

// Calls that change something.

/// The most that it takes in a leaf.
std::uint32_t StoreTree::entry_bytes(std::string_view rest, const Payload& payload) noexcept {
    return StoreNode::slot_bytes + static_cast<std::uint32_t>(std::min<std::size_t>(rest.size(), StoreNode::key_inside)) + payload.bytes();
}

bool StoreTree::put(std::string_view key, std::string_view value, bool replaces) {
    Payload payload(memory_, value);
    NewBlock long_key(memory_);
    const EpochGuard guard;
    for (Attempts attempts;; attempts.again()) {
        LeafPlace place;
        if (!find_leaf(key, place)) continue;
        const bool is_same = place.place.is_same;
        if (is_same && !replaces) {
            if (!place.reading.is_valid()) continue;
            return false;
        }
        const bool is_long = !is_same && place.rest.size() > StoreNode::key_inside;
        if (is_long && long_key.get() == nullptr) long_key.make(key);
        StoreNode& leaf = *place.reading.node;
        Lock lock(place.reading);
        if (!lock) continue;
        if (is_same) {
            StoreBlock* const before = leaf.long_value(leaf.slot(place.place.index));
            if (write_again(place, payload)) {
                payload.release();
                lock.will_change();
                lock.unlock();
                memory_.retire(guard.slot(), before);
                return false;
            }
        } else if (write_new(place, is_long ? long_key.get() : nullptr, payload)) {
            if (is_long) long_key.release();
            payload.release();
            lock.will_change();
            lock.unlock();
            memory_.count_keys(guard.slot(), 1);
            return true;
        }
        lock.unlock();
        split(key, entry_bytes(place.rest, payload));
    }
}

bool StoreTree::erase_at(const EpochGuard& guard, const LeafPlace& place) noexcept {
    StoreNode& leaf = *place.reading.node;
    Lock lock(place.reading);
    if (!lock) return false;
    const StoreSlot slot = leaf.slot(place.place.index);
    StoreBlock* const long_key = leaf.long_key(slot);
    StoreBlock* const long_value = leaf.long_value(slot);
    lock.will_change();
    leaf.remove(place.place.index);
    lock.unlock();
    memory_.count_keys(guard.slot(), -1);
    memory_.retire(guard.slot(), long_key);
    memory_.retire(guard.slot(), long_value);
    return true;
}

bool StoreTree::erase(std::string_view key) {
    const EpochGuard guard;
    for (Attempts attempts;; attempts.again()) {
        LeafPlace place;
        if (!find_leaf(key, place)) continue;
        if (!place.place.is_same) {
            if (!place.reading.is_valid()) continue;
            return false;
        }
        if (!erase_at(guard, place)) continue;
        merge(guard, key);
        return true;
    }
}

/// False: somebody changes the node.
bool StoreTree::is_value(const LeafPlace& place, std::string_view value, bool& is_same) noexcept {
    const StoreNode& leaf = *place.reading.node;
    const StoreSlot slot = leaf.slot(place.place.index);
    if (slot.offset + slot.body_bytes() > StoreNode::bytes) return false;
    if (slot.value == StoreSlot::outside) {
        const auto* const block = reinterpret_cast<const StoreBlock*>(leaf.load_bytes(slot.value_offset(), sizeof(StoreBlock*)));
        if (!place.reading.is_valid()) return false;
        is_same = block->text() == value;
        return true;
    }
    char inside[StoreNode::value_inside];
    if (slot.value > sizeof inside) return false;
    leaf.copy_out(inside, slot.value_offset(), slot.value);
    is_same = std::string_view(inside, slot.value) == value;
    return place.reading.is_valid();
}

bool StoreTree::compare_exchange(std::string_view key, std::string_view expected, std::optional<std::string_view> desired) {
    Payload payload(memory_, desired.value_or(""));
    const EpochGuard guard;
    for (Attempts attempts;; attempts.again()) {
        LeafPlace place;
        if (!find_leaf(key, place)) continue;
        bool is_expected = false;
        if (place.place.is_same ? !is_value(place, expected, is_expected) : !place.reading.is_valid()) continue;
        if (!is_expected) return false;
        if (!desired) {
            if (!erase_at(guard, place)) continue;
            merge(guard, key);
            return true;
        }
        StoreNode& leaf = *place.reading.node;
        Lock lock(place.reading);
        if (!lock) continue;
        StoreBlock* const before = leaf.long_value(leaf.slot(place.place.index));
        if (write_again(place, payload)) {
            payload.release();
            lock.will_change();
            lock.unlock();
            memory_.retire(guard.slot(), before);
            return true;
        }
        lock.unlock();
        split(key, entry_bytes(place.rest, payload));
    }
}

std::uint64_t StoreTree::fetch_add(std::string_view key, std::uint64_t added) {
    std::uint64_t value = 0;
    const EpochGuard guard;
    for (Attempts attempts;; attempts.again()) {
        LeafPlace place;
        if (!find_leaf(key, place)) continue;
        if (!place.place.is_same) {
            if (place.reading.is_valid() && put(key, {reinterpret_cast<const char*>(&added), sizeof added}, false)) return 0;
            continue;
        }
        StoreNode& leaf = *place.reading.node;
        Lock lock(place.reading);
        if (!lock) continue;
        const StoreSlot slot = leaf.slot(place.place.index);
        if (slot.value != sizeof value) {
            const std::uint64_t bytes = slot.value == StoreSlot::outside ? leaf.long_value(slot)->bytes : slot.value;
            throw Error(errc::type_mismatch, "fetch_add counts in values of 8 bytes, and the key's value has " + std::to_string(bytes) +
                                                 "; set another value, or use another key");
        }
        lock.will_change();
        std::memcpy(&value, leaf.at(slot.value_offset()), sizeof value);
        const std::uint64_t sum = value + added;
        leaf.copy_in(slot.value_offset(), reinterpret_cast<const char*>(&sum), sizeof sum);
        return value;
    }
}

// Splitting.

/// A key between two nodes, and the blocks for it where it is long.
struct StoreTree::Separator {
    Separator(StoreMemory& memory) noexcept : left_upper(memory), right_lower(memory), entry(memory) {}
    void choose(std::string key, std::size_t parent_prefix) {
        text = std::move(key);
        if (text.size() > StoreNode::key_inside) {
            left_upper.make(text);
            right_lower.make(text);
        }
        if (text.size() - parent_prefix > StoreNode::key_inside) entry.make(text);
    }
    StoreNode::Fence fence(const NewBlock& block) const noexcept { return {text, block.get()}; }
    void release() noexcept {
        left_upper.release();
        right_lower.release();
        entry.release();
    }

    std::string text;
    NewBlock left_upper;
    NewBlock right_lower;
    NewBlock entry;
};

namespace {

std::string key_of(const StoreNode& node, std::uint32_t index) {
    const StoreSlot slot = node.slot(index);
    if (const StoreBlock* const block = node.long_key(slot)) return std::string(block->text());
    std::string key(node.lower().substr(0, node.state().prefix()));
    const std::uint32_t head = __builtin_bswap32(slot.head);
    key.append(reinterpret_cast<const char*>(&head), std::min(4U, slot.key));
    if (slot.key > 4) key.append(node.at(slot.offset), slot.key - 4);
    return key;
}

}  // namespace

/// Makes room for `wanted` bytes in the key's leaf by splitting it, or a node above it that a separator may not fit into.
void StoreTree::split(std::string_view key, std::uint32_t wanted) {
    for (Attempts attempts;; attempts.again()) {
        Path path;
        bool is_split = false;
        std::uint32_t level = root_->state().level();
        for (;; --level) {
            if (!descend(key, Way::to_key, level, path) || path.reading.state.level() != level) break;
            if (level == 0 && StoreNode::room(path.reading.state) >= wanted) {
                if (path.reading.is_valid()) return;
                break;
            }
            if (level != 0 && StoreNode::room(path.reading.state) >= StoreNode::separator_max) continue;
            is_split = split_node(key, path);
            break;
        }
        if (is_split && level == 0) return;
    }
}

/// False: somebody changed a node meanwhile. Throws: HeapFull, std::bad_alloc, and nothing has changed.
bool StoreTree::split_node(std::string_view key, const Path& path) {
    const bool is_root = path.parent.node == nullptr;
    std::optional<Lock> parent_lock;
    if (!is_root) {
        if (StoreNode::room(path.parent.state) < StoreNode::separator_max) return false;
        parent_lock.emplace(path.parent);
        if (!*parent_lock) return false;
    }
    Lock lock(path.reading);
    if (!lock) return false;
    StoreNode& node = *path.reading.node;
    const StoreState state = node.state();
    const std::uint32_t count = state.count();
    const std::uint32_t level = state.level();

    // All stay in the left one where keys ascend, if the fence between has room there, too; else half of the bytes.
    const StorePlace place = *search({&node, node.version(), state}, key.substr(state.prefix()));
    std::uint32_t at = level != 0 ? count - 1 : count;
    const auto separator_at = [&] {
        std::string text = at == count ? std::string(key) : key_of(node, at);
        if (level == 0) text.resize(shared_bytes(key_of(node, at - 1), text) + 1);
        return text;
    };
    std::string text;
    if (place.index >= at) text = separator_at();
    if (place.index < at || text.size() > StoreNode::room(state)) {
        at = 0;
        for (std::uint32_t sum = 0; sum < StoreNode::filled(state) / 2; ++at) sum += StoreNode::slot_bytes + node.slot(at).body_bytes();
        at = std::clamp(at, 1U, count - 1);
        text = separator_at();
    }
    Separator separator(memory_);
    separator.choose(std::move(text), is_root ? 0 : path.parent.state.prefix());

    NewNode right(memory_);
    std::optional<NewNode> left;
    if (is_root) left.emplace(memory_);
    StoreNode left_image;
    const std::optional<std::string_view> upper_text = node.upper();
    const StoreNode::Fence upper{upper_text.value_or(""), node.long_upper()};
    const StoreNode::Fence right_lower = separator.fence(separator.right_lower);
    const StoreNode::Fence left_upper = separator.fence(separator.left_upper);
    (*right).begin_image(level, right_lower, upper_text ? &upper : nullptr);
    left_image.begin_image(level, {node.lower(), node.long_lower()}, &left_upper);
    for (std::uint32_t i = 0; i != count; ++i) TAIYEN_CHECK((i < at ? left_image : *right).append_from(node, i));

    lock.will_change();
    StoreNode* const right_node = right.release();
    const auto* const right_bytes = reinterpret_cast<const char*>(&right_node);
    if (is_root) {
        StoreNode* const left_node = left->release();
        left_node->publish(left_image);
        StoreNode root_image;
        root_image.begin_image(level + 1, {{}, nullptr}, nullptr);
        root_image.add(0, {}, nullptr, reinterpret_cast<const char*>(&left_node), sizeof left_node);
        root_image.add(1, separator.text, separator.entry.get(), right_bytes, sizeof right_node);
        node.publish(root_image);
    } else {
        parent_lock->will_change();
        StoreNode& parent = *path.parent.node;
        node.publish(left_image);
        const std::string_view parent_rest = std::string_view(separator.text).substr(path.parent.state.prefix());
        TAIYEN_CHECK(make_room(parent, StoreNode::separator_max));
        parent.add(path.index + 1, parent_rest, separator.entry.get(), right_bytes, sizeof right_node);
    }
    separator.release();
    return true;
}

// Merging.

void StoreTree::merge(const EpochGuard& guard, std::string_view key) noexcept {
    Attempts attempts;
    for (std::uint32_t level = 0;;) {
        switch (merge_at(guard, key, level)) {
            case Merged::retry: attempts.again(); break;
            case Merged::go_up: ++level; break;
            case Merged::done: return;
        }
    }
}

/// Merges the node of that level that has the key with a neighbour, if it is thin and that has room.
StoreTree::Merged StoreTree::merge_at(const EpochGuard& guard, std::string_view key, std::uint32_t level) noexcept {
    Path path;
    if (!descend(key, Way::to_key, level, path)) return Merged::retry;
    const StoreReading& here = path.reading;
    if (path.parent.node == nullptr) {
        if (here.state.level() == 0 || here.state.count() != 1) return here.is_valid() ? Merged::done : Merged::retry;
        return pull_up(guard, here);
    }
    if (!is_thin(here.state)) return here.is_valid() ? Merged::done : Merged::retry;
    if (path.parent.state.count() == 1) return path.parent.is_valid() ? Merged::go_up : Merged::retry;
    if (path.index + 1 < path.parent.state.count()) {
        const Merged with_next = merge_siblings(guard, path, path.index);
        if (with_next != Merged::done) return with_next;
    }
    return path.index != 0 ? merge_siblings(guard, path, path.index - 1) : Merged::done;
}

/// The root takes its only child's content.
StoreTree::Merged StoreTree::pull_up(const EpochGuard& guard, const StoreReading& root) noexcept {
    Lock root_lock(root);
    if (!root_lock) return Merged::retry;
    StoreReading child;
    StoreNode* const only = root_->child(0);
    child.node = only;
    child.version = only->version();
    if ((child.version & StoreNode::locked) != 0) return Merged::retry;
    Lock child_lock(child);
    if (!child_lock) return Merged::retry;
    root_lock.will_change();
    child_lock.will_die();
    root_->publish(*only);
    child_lock.unlock();
    root_lock.unlock();
    memory_.retire(guard.slot(), only);
    return Merged::retry;  // that may be an only one, too
}

/// Merges two children that lie side by side. Done: they don't fit into one.
StoreTree::Merged StoreTree::merge_siblings(const EpochGuard& guard, const Path& path, std::uint32_t left_index) noexcept {
    // The other one is reached by the parent's words, which count if the parent is as it was.
    const std::uint32_t other_index = left_index == path.index ? left_index + 1 : left_index;
    const StoreSlot other_slot = path.parent.node->slot(other_index);
    if (other_slot.offset + other_slot.body_bytes() > StoreNode::bytes || other_slot.value_bytes() != sizeof(StoreNode*)) return Merged::retry;
    auto* const other = reinterpret_cast<StoreNode*>(path.parent.node->load_bytes(other_slot.value_offset(), sizeof(StoreNode*)));
    if (!path.parent.is_valid()) return Merged::retry;
    StoreReading other_reading;
    if (!begin(other, other_reading) || !path.parent.is_valid()) return Merged::retry;
    const std::uint32_t limit = path.reading.state.count() == 0 || other_reading.state.count() == 0 ? StoreNode::bytes : merged_bytes_max;
    if (StoreNode::filled(path.reading.state) + StoreNode::filled(other_reading.state) > limit)
        return path.reading.is_valid() ? Merged::done : Merged::retry;

    Lock parent_lock(path.parent);
    if (!parent_lock) return Merged::retry;
    Lock lock(path.reading);
    if (!lock) return Merged::retry;
    Lock other_lock(other_reading);
    if (!other_lock) return Merged::retry;
    StoreNode& parent = *path.parent.node;
    const bool is_left = left_index == path.index;
    StoreNode& left = is_left ? *path.reading.node : *other;
    StoreNode& right = is_left ? *other : *path.reading.node;
    const std::optional<std::string_view> upper_text = right.upper();
    const StoreNode::Fence upper{upper_text.value_or(""), right.long_upper()};
    StoreNode image;
    image.begin_image(left.state().level(), {left.lower(), left.long_lower()}, upper_text ? &upper : nullptr);
    for (const StoreNode* const from : {&left, &right})
        for (std::uint32_t i = 0; i != from->state().count(); ++i)
            if (!image.append_from(*from, i)) return Merged::done;
    if (StoreNode::filled(image.state()) > limit) return Merged::done;

    StoreBlock* const between[] = {left.long_upper(), right.long_lower(), parent.long_key(parent.slot(left_index + 1))};
    parent_lock.will_change();
    (is_left ? lock : other_lock).will_change();
    (is_left ? other_lock : lock).will_die();
    left.publish(image);
    parent.remove(left_index + 1);
    lock.unlock();
    other_lock.unlock();
    parent_lock.unlock();
    memory_.retire(guard.slot(), &right);
    for (StoreBlock* const block : between) memory_.retire(guard.slot(), block);
    return Merged::go_up;
}

// Proof.

bool StoreTree::is_sound() const {
    std::uint64_t keys = 0;
    return is_sound(*root_, {}, std::nullopt, root_->state().level(), keys) && keys == memory_.keys();
}

bool StoreTree::is_sound(const StoreNode& node, std::string_view lower, std::optional<std::string_view> upper, std::uint32_t level,
                         std::uint64_t& keys) const {
    const StoreState state = node.state();
    if ((node.version() & (StoreNode::locked | StoreNode::obsolete)) != 0 || state.level() != level) return false;
    if (node.lower() != lower || node.upper() != upper) return false;
    if (state.prefix() != (upper ? shared_bytes(lower, *upper) : 0)) return false;
    std::size_t used = node.long_lower() != nullptr ? sizeof(StoreBlock*) : lower.size();
    if (upper) used += node.long_upper() != nullptr ? sizeof(StoreBlock*) : upper->size();
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i != state.count(); ++i) {
        const StoreSlot slot = node.slot(i);
        if (slot.body_bytes() != 0 && slot.offset < state.begin()) return false;
        used += slot.body_bytes();
        texts.push_back(key_of(node, i));
        if (texts.back() < lower || (upper && texts.back() >= *upper) || (i != 0 && texts[i - 1] >= texts[i])) return false;
        if (slot.head != head_of_rest(std::string_view(texts.back()).substr(state.prefix()))) return false;
    }
    if (used != state.used() || StoreNode::slots_offset + state.count() * StoreNode::slot_bytes > state.begin()) return false;
    if (level == 0) {
        keys += state.count();
        return true;
    }
    if (state.count() == 0 || texts[0] != lower) return false;
    for (std::uint32_t i = 0; i != state.count(); ++i) {
        const std::optional<std::string_view> next = i + 1 == state.count() ? upper : texts[i + 1];
        if (!is_sound(*node.child(i), texts[i], next, level - 1, keys)) return false;
    }
    return true;
}

}  // namespace taiyen::ordered
