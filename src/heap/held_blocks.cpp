#include "heap/held_blocks.hpp"

#include <algorithm>
#include <unordered_set>

#include "heap/word_walk.hpp"

namespace taiyen::heap {

// What is lent

/// Boost.Container has behind an allocator, sizes being no pointers, though some would lead to a block:
///
///   vectors, flat sets and maps     begin, size, room                   (of a small vector begin may be the place behind these words)
///   string                          twice the size, room, begin
///   list, slist, trees              size, up to three links
///   deque                           map, its size, iterators            (behind its second allocator; the first has that one in front of these, a word of zeros)
///
/// A container that looks like another one costs what (H2) says.
void HeldBlocks::lend_by_distances(std::uintptr_t home) noexcept {
    constexpr std::uint64_t nowhere = 1;
    const ByteCount extent = core_.durable_extent();
    std::array<std::uint64_t, distance_head_words.size()> words;
    std::array<std::uintptr_t, distance_head_words.size()> blocks{};  // 0: the word leads to no begin of a block
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::uintptr_t place = home + distance_head_words[i];
        const bool is_there = place - base() < extent && base() + extent - place >= sizeof place;
        words[i] = is_there ? word_at(place) : nowhere;
        const std::uintptr_t block = distance_target(place, words[i]);
        if (block != place && block != home && block - base() < extent && is_live(block)) blocks[i] = block;
    }
    const auto has_room = [&](std::size_t i, std::uint64_t count, std::uint64_t bytes_each) {
        return blocks[i] != 0 && count <= core_.engine().usable_size(reinterpret_cast<const void*>(blocks[i])) / bytes_each;
    };
    const std::uint64_t first = words[0];
    const std::uint64_t second = words[1];
    const std::uint64_t third = words[2];
    const auto pointers = [&]() -> std::array<bool, distance_head_words.size()> {
        const bool is_within = distance_target(home + distance_head_words[0], first) == home + distance_head_words[3] && second <= third;
        if (is_within && (blocks[1] == 0 || blocks[2] == 0)) return {};
        if (second <= third && has_room(0, third, 1)) return {true, false, false, false};
        if (first % 2 == 0 && first / 2 <= second && has_room(2, second, 1)) return {false, false, true, false};
        if (second != 0 && has_room(0, second, sizeof home) && blocks[3] != 0) return {true, false, true, true};
        if (first == 0 && third != 0 && has_room(1, third, sizeof home)) return {false, true, false, true};
        return {false, true, true, true};
    }
    ();
    for (std::size_t i = 0; i < words.size(); ++i)
        if (pointers[i] && blocks[i] != 0) suspect(blocks[i]);
}

void HeldBlocks::lend(std::uintptr_t home) noexcept {
    if (core_.links() == Links::distances) {
        lend_by_distances(home);
    } else {
        const ByteCount extent = core_.durable_extent();
        const std::uintptr_t behind = base() + extent;
        const bool is_tree = home + end_word + 3 * sizeof home <= behind && is_tree_at(home);
        for (const std::uintptr_t distance : head_words) {
            const std::uintptr_t source = home + distance;
            if (source - base() > extent || behind - source < sizeof source) continue;
            const std::uintptr_t block = word_at(source);
            if (distance != end_word && is_tree) continue;
            if (distance == end_word && !is_tree && (is_end_of_vector(home, block) || is_string_within(home))) continue;
            if (block % 8 == 0 && block - base() < extent && block != home + distance + 2 * sizeof block && is_live(block)) suspect(block);
        }
    }
    has_lent_.store(true, std::memory_order_relaxed);
    note(home);  // what it gets next may be allocated outside
}

/// Begin, end, end of the room; or begin, 0, end, of bits. What begins at the end is somebody else's block.
bool HeldBlocks::is_end_of_vector(std::uintptr_t home, std::uintptr_t end) const noexcept {
    const std::uintptr_t begin = word_at(home + head_words[0]);
    const std::uintptr_t middle = word_at(home + middle_word);
    return begin - base() < core_.durable_extent() && begin <= end && (middle == 0 || (begin <= middle && middle <= end));
}

/// A string that lies within its object, whose bytes behind the text are whatever was there before.
bool HeldBlocks::is_string_within(std::uintptr_t home) const noexcept { return word_at(home + head_words[0]) == home + end_word; }

/// Before its nodes a tree has a comparison, most often without any bytes that somebody writes: what lies there is no pointer, and may look like anything. The header is red, the root black and knows the header;
/// without nodes the header leads to itself.
bool HeldBlocks::is_tree_at(std::uintptr_t home) const noexcept {
    const std::uintptr_t header = home + middle_word;
    const std::uintptr_t root = word_at(home + end_word);
    if (root == 0) return word_at(header + 16) == header && word_at(header + 24) == header;
    const auto colour_at = [](std::uintptr_t node) { return static_cast<std::uint32_t>(word_at(node)); };
    const std::uintptr_t parent = root + sizeof root;
    if (root % 8 != 0 || parent - base() > core_.durable_extent() - sizeof parent) return false;
    return word_at(parent) == header && colour_at(header) == 0 && colour_at(root) == 1;  // the parent first: it shows that the root lies in the heap
}

/// A deque that is being destroyed copies its allocator to free its map, when its nodes are free already: the next owner of their place has lent nothing. So it is with pointers that a constructor has not written yet.
bool HeldBlocks::is_live(std::uintptr_t block) const noexcept { return core_.engine().is_block(reinterpret_cast<const void*>(block)); }

/// What there is no memory to remember, `close()` doesn't know.
void HeldBlocks::suspect(std::uintptr_t block) noexcept {
    has_lent_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    try {
        if (suspects_.size() < suspects_max && suspects_.try_emplace(block, core_.scope_serial()).second) {
            if (new_suspects_.size() < looked_into_max) new_suspects_.push_back(block);
        }
    } catch (const std::bad_alloc&) {}
    count();
}

// What comes back

void HeldBlocks::note(std::uintptr_t home) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (watched_.size() == watched_max) {  // the newest may be in the middle of their moves
            const std::size_t done = watched_max / 2;
            look_at(std::span(watched_).first(done));
            watched_.erase(watched_.begin(), watched_.begin() + done);
        }
        watched_.push_back(home);
        watches_.store(true, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {}
}

void HeldBlocks::settle() noexcept {
    if (!watches_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    look_at(watched_);
    for (const std::uintptr_t block : new_suspects_)
        if (suspects_.contains(block) && is_linked_within(block)) suspects_.erase(block);
    watched_.clear();
    new_suspects_.clear();
    watches_.store(false, std::memory_order_relaxed);
    count();
}

/// The first node of a deque is where its begin is, until that moves on; then it is where its node begins.
void HeldBlocks::look_at(std::span<const std::uintptr_t> homes) noexcept {
    if (suspects_.empty()) return;
    const ByteCount extent = core_.durable_extent();
    const WordsFrom words{reinterpret_cast<const std::byte*>(base())};
    for (const std::uintptr_t home : homes) {
        const std::uint64_t from = std::max(base(), home - bytes_before) - base();
        for_each_word(words, from, std::min<std::uint64_t>(extent, home - base() + bytes_behind), [&](std::uint64_t place, std::uint64_t word) {
            const std::uint64_t target = target_of(core_.links(), base(), place, word);
            if (target != place && target < extent) suspects_.erase(base() + target);
        });
    }
    count();
}

/// A node of a list that is no longer the first, or of a tree that is no longer the uppermost: the one before it, or above, is the heap's and leads to it. Of a container outside that is the object there, or a suspect.
bool HeldBlocks::is_linked_within(std::uintptr_t block) const noexcept {
    struct Link {
        std::uintptr_t there;  ///< the word of the node that leads to the other one
        std::uintptr_t back;   ///< the word of the other one that leads back
    };
    static constexpr std::array<Link, 3> links{{{8, 0}, {8, 16}, {8, 24}}};  // list: previous, its next; tree: parent, its left, its right
    const std::uintptr_t extent = core_.durable_extent();
    const auto is_here = [&](std::uintptr_t address) { return address % sizeof address == 0 && address - base() < extent - node_bytes; };
    if (core_.links() != Links::addresses || extent < node_bytes || !is_here(block)) return false;
    return std::ranges::any_of(links, [&](const Link& link) {
        const std::uintptr_t other = word_at(block + link.there);
        return other != block && is_here(other) && word_at(other + link.back) == block && !suspects_.contains(other);
    });
}

void HeldBlocks::freed(const void* block) noexcept {
    if (is_idle()) return;
    const std::lock_guard lock(mutex_);
    suspects_.erase(reinterpret_cast<std::uintptr_t>(block));
    count();
}

void HeldBlocks::taken_back(std::uint32_t scope) noexcept {
    if (is_idle()) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(suspects_, [&](const auto& suspect) { return suspect.second >= scope; });
    count();
}

std::vector<HeapOffset> HeldBlocks::suspects() const {
    std::vector<HeapOffset> found;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [block, scope] : suspects_) found.push_back({block - base()});
    }
    std::ranges::sort(found, {}, &HeapOffset::value);
    return found;
}

// Who has them

namespace {

/// What the suspects lead to, and whether the begin of a block there is a word of anything else.
class Reached {
public:
    Reached(const Engine& engine, const std::byte* span, Links links) : engine_(engine), links_(links), span_(span), extent_(engine.extent()) {}

    void follow(std::span<const HeapOffset> suspects) {
        std::vector<std::uint64_t> to_read;
        std::unordered_set<std::uint64_t> seen;
        const auto add = [&](std::uint64_t offset) {
            const auto block = engine_.find_block(span_ + offset);
            if (!block || block->offset.value != offset) return;
            if (!seen.insert(offset).second) return;
            if (block->content == Content::any) to_read.push_back(offset);
            blocks_.push_back({offset, offset + block->usable_bytes, block->content, false});
        };
        for (const HeapOffset suspect : suspects) add(suspect.value);
        while (!to_read.empty()) {
            const std::uint64_t from = to_read.back();
            to_read.pop_back();
            for_each_target(from, engine_.usable_size(span_ + from), [&](std::uint64_t offset) {
                if (offset % 8 == 0) add(offset);
            });
        }
        std::ranges::sort(blocks_, {}, &Found::begin);
    }

    bool holds(std::uint64_t offset) const { return find(offset) != blocks_.size(); }

    /// Something that isn't reached from the suspects alone refers there.
    void keep(std::uint64_t offset) { keep_at(find(offset)); }
    void keep_at(std::size_t index) {
        if (index == blocks_.size() || blocks_[index].kept) return;
        blocks_[index].kept = true;
        kept_.push_back(index);
    }

    void keep_what_words_refer_to(std::uint64_t from, ByteCount bytes) {
        for_each_target(from, bytes, [&](std::uint64_t offset) {
            if (const std::size_t index = find(offset); index != blocks_.size() && blocks_[index].begin == offset) keep_at(index);
        });
    }

    void keep_what_everything_else_refers_to() {
        engine_.for_each_block([&](const Block& block) {
            if (block.content == Content::any && !holds(block.offset.value)) keep_what_words_refer_to(block.offset.value, block.usable_bytes);
            return true;
        });
        keep_what_is_kept_refers_to();
    }

    void keep_what_is_kept_refers_to() {
        while (!kept_.empty()) {
            const Found block = blocks_[kept_.back()];
            kept_.pop_back();
            if (block.content == Content::any) keep_what_words_refer_to(block.begin, block.end - block.begin);
        }
    }

    std::vector<Block> blocks() const {
        std::vector<Block> found;
        for (const Found& block : blocks_) found.push_back({{block.begin}, block.end - block.begin, block.content});
        return found;
    }

    bool is_nobodys(std::uint64_t begin) const {
        const std::size_t index = find(begin);
        return index != blocks_.size() && !blocks_[index].kept;
    }

private:
    struct Found {
        std::uint64_t begin;
        std::uint64_t end;
        Content content;
        bool kept;
    };
    std::size_t find(std::uint64_t offset) const {
        const auto behind = std::ranges::upper_bound(blocks_, offset, {}, &Found::begin);
        if (behind == blocks_.begin() || offset >= std::prev(behind)->end) return blocks_.size();
        return static_cast<std::size_t>(behind - blocks_.begin()) - 1;
    }

    /// Calls `visit(offset)` for each word that leads into the heap.
    template <class Visit>
    void for_each_target(std::uint64_t from, ByteCount bytes, const Visit& visit) const {
        for_each_word(WordsFrom{span_}, from, from + bytes, [&](std::uint64_t place, std::uint64_t word) {
            const std::uint64_t target = target_of(links_, reinterpret_cast<std::uintptr_t>(span_), place, word);
            if (target < extent_) visit(target);
        });
    }

    const Engine& engine_;
    const Links links_;
    const std::byte* const span_;
    const ByteCount extent_;
    std::vector<Found> blocks_;      ///< ascending, once all are followed
    std::vector<std::size_t> kept_;  ///< whose words are yet to be read
};

}  // namespace

std::vector<Block> reached_blocks(const Engine& engine, const std::byte* span, std::span<const HeapOffset> starts, Links links) {
    Reached reached(engine, span, links);
    reached.follow(starts);
    return reached.blocks();
}

std::vector<HeapOffset> owned_outside(const Engine& engine, const std::byte* span, std::span<const HeapOffset> suspects, Links links) {
    if (suspects.empty()) return {};
    Reached reached(engine, span, links);
    reached.follow(suspects);
    for (const Root& root : engine.roots()) reached.keep(root.object.value);
    reached.keep_what_everything_else_refers_to();
    std::vector<HeapOffset> found;
    for (const HeapOffset suspect : suspects)
        if (reached.is_nobodys(suspect.value)) found.push_back(suspect);
    return found;
}

}  // namespace taiyen::heap
