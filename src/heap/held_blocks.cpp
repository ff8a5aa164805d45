#include "heap/held_blocks.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unordered_set>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"

namespace taiyen::heap {
namespace {

std::uintptr_t word_at(std::uintptr_t address) noexcept {
    std::uintptr_t word;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
}

}  // namespace

std::string HeldBlocks::entry_name(HeapOffset block) {
    char digits[20];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(block.value));
    return std::string(entry_prefix) + digits;
}

// What is lent

std::uintptr_t HeldBlocks::target_at(std::uintptr_t word) const noexcept {
    return core_.links() == Links::distances ? distance_target(word, word_at(word)) : word_at(word);
}

/// Boost.Container has behind an allocator, sizes being no pointers, though some would lead to a block:
///
///   vectors, flat sets and maps     begin, size, room                   (of a small vector begin may be the place behind these words)
///   string                          twice the size, room, begin
///   list, slist, trees              size, up to three links
///   deque                           map, its size, iterators            (behind its second allocator; the first has that one in front of these, a word of zeros)
///
/// A container that looks like another one costs what (H2) says.
void HeldBlocks::lend_by_distances(std::uintptr_t home, std::uintptr_t borrower) noexcept {
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
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (pointers[i] && blocks[i] != 0) note({blocks[i], home + distance_head_words[i], borrower, core_.scope_serial()});
    }
}

void HeldBlocks::lend(std::uintptr_t home, std::uintptr_t borrower) noexcept {
    if (core_.links() == Links::distances) {
        lend_by_distances(home, borrower);
        return;
    }
    const ByteCount extent = core_.durable_extent();
    const std::uintptr_t behind = base() + extent;
    const bool is_tree = home + end_word + 3 * sizeof home <= behind && is_tree_at(home);
    for (const std::uintptr_t distance : head_words) {
        const std::uintptr_t source = home + distance;
        if (source - base() > extent || behind - source < sizeof source) continue;
        const std::uintptr_t block = word_at(source);
        if (distance != end_word && is_tree) continue;
        if (distance == end_word && !is_tree && (is_end_of_vector(home, block) || is_string_within(home))) continue;
        if (block % 8 == 0 && block - base() < extent && block != home + distance + 2 * sizeof block && is_live(block)) {
            note({block, source, borrower, core_.scope_serial()});
        }
    }
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

void HeldBlocks::lend_block(const void* block, std::uintptr_t borrower) noexcept {
    if (owned_count_.load(std::memory_order_relaxed) == 0) return;
    {
        const std::lock_guard lock(mutex_);
        if (!std::ranges::binary_search(borrowers_, borrower)) return;
    }
    note({reinterpret_cast<std::uintptr_t>(block), 0, borrower, core_.scope_serial()});
}

/// Without memory to remember it the block leaks if the process dies.
void HeldBlocks::note(const Lent& lent) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (lent_.size() >= compact_at_) {
            std::erase_if(lent_, [this](const auto& old) { return source_still_refers(old.second); });
            compact_at_ = std::max<std::size_t>(4096, 2 * lent_.size());
        }
        lent_.emplace(lent.block, lent);
        lent_count_.store(lent_.size(), std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {}
}

/// The first node of a deque is where its begin is, until that moves on; then it is where its node begins.
bool HeldBlocks::object_still_refers(const Lent& lent) const noexcept {
    if (lent.source == 0) return false;
    const std::uintptr_t from = std::max(base(), lent.source - end_word);
    const std::uintptr_t to = std::min(base() + core_.durable_extent() / sizeof from * sizeof from, lent.source + object_bytes);
    for (std::uintptr_t word = from; word < to; word += sizeof word) {
        if (word != lent.block && target_at(word) == lent.block) return true;
    }
    return false;
}

bool HeldBlocks::source_still_refers(const Lent& lent) const noexcept { return lent.source != 0 && target_at(lent.source) == lent.block; }

void HeldBlocks::let_go(const void* block) noexcept {
    if (owned_count_.load(std::memory_order_relaxed) == 0) return;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::lower_bound(owned_, address);
    if (found == owned_.end() || *found != address) return;
    owned_.erase(found);
    if (owned_.empty()) borrowers_.clear();
    owned_count_.store(owned_.size(), std::memory_order_relaxed);
}

bool HeldBlocks::is_owned(std::uintptr_t block) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::binary_search(owned_, block);
}

std::vector<HeapOffset> HeldBlocks::owned() const {
    std::vector<HeapOffset> found;
    for (const Entry& entry : entries_) {
        if (is_owned(entry.block)) found.push_back(offset(entry.block));
    }
    return found;
}

// A scope ends

HeldBlocks::Settling::Settling(HeldBlocks& held) : held_(held) {
    std::vector<Lent> lent;
    {
        const std::lock_guard lock(held.mutex_);
        for (const auto& [block, one] : held.lent_) lent.push_back(one);
    }
    const auto by_block = [](const Lent& left, const Lent& right) { return left.block < right.block; };
    std::ranges::sort(lent, by_block);
    watched_.reserve(held.entries_.size() + lent.size());
    const Engine& engine = held.core_.engine();
    auto entry = held.entries_.begin();
    const auto add_entries_before = [&](std::uintptr_t block) {
        for (; entry != held.entries_.end() && entry->block < block; ++entry) {
            watched_.push_back({entry->block, entry->end, entry->borrower, true});
        }
    };
    for (auto first = lent.begin(); first != lent.end();) {
        const auto behind = std::upper_bound(first, lent.end(), *first, by_block);
        const std::uintptr_t block = first->block;
        const ByteCount usable = engine.usable_size(reinterpret_cast<const void*>(block));
        const bool stays = std::any_of(first, behind, [&](const Lent& one) { return held.object_still_refers(one); });
        add_entries_before(block);
        const bool has_entry = entry != held.entries_.end() && entry->block == block;
        if (has_entry) {
            if (!stays) entry->borrower = std::prev(behind)->borrower;
            watched_.push_back({block, block + usable, entry->borrower, true, stays});
            ++entry;
        } else if (usable != 0 && !stays) {
            watched_.push_back({block, block + usable, std::prev(behind)->borrower, false});
        }
        first = behind;
    }
    add_entries_before(~std::uintptr_t{0});
    if (!watched_.empty()) {
        first_ = watched_.front().begin;
        bytes_ =
            std::max_element(watched_.begin(), watched_.end(), [](const Watched& left, const Watched& right) { return left.end < right.end; })->end -
            first_;
    }
    for (const Watched& watched : watched_) {
        const std::uintptr_t first = watched.begin / page_bytes;
        const std::uintptr_t count = std::min((watched.end + page_bytes - 1) / page_bytes - first, pages_known);
        for (std::uintptr_t page = first; page < first + count; ++page) near_[page % pages_known / 64] |= std::uint64_t{1} << page % 64;
    }
}

HeldBlocks::Settling::Watched* HeldBlocks::Settling::find(std::uintptr_t address) {
    const auto behind = std::ranges::upper_bound(watched_, address, {}, &Watched::begin);
    if (behind == watched_.begin() || address >= std::prev(behind)->end) return nullptr;
    return &*std::prev(behind);
}

void HeldBlocks::Settling::look_at(HeapOffset offset, ByteCount length) {
    if (bytes_ == 0 || length == 0) return;
    const std::uintptr_t from = held_.base() + round_down(offset.value, sizeof(std::uintptr_t));
    const std::uintptr_t to = held_.base() + round_up(offset.value + length, sizeof(std::uintptr_t));
    for (std::uintptr_t word = from; word < to; word += sizeof word) {
        const std::uintptr_t value = word_at(word);
        if (may_be_watched(value)) [[unlikely]]
            refer(word, value);
        if (const std::uintptr_t near = distance_target(word, value); near != word && may_be_watched(near)) [[unlikely]] {
            if (const Watched* const target = find(near); target != nullptr && target->begin == near) refer(word, near);
        }
    }
}

/// Only what lies in a live block refers to anything, and a block never to itself.
void HeldBlocks::Settling::refer(std::uintptr_t word, std::uintptr_t address) {
    Watched* const target = find(address);
    if (target == nullptr) return;
    const auto owner = held_.core_.engine().find_block(reinterpret_cast<const void*>(word));
    if (!owner || owner->content == Content::pointer_free) return;
    Watched* const from = find(held_.base() + owner->offset.value);
    if (from == target) return;
    if (from == nullptr) {
        target->referenced = true;
    } else {
        edges_.push_back({static_cast<std::uint32_t>(from - watched_.data()), static_cast<std::uint32_t>(target - watched_.data())});
    }
}

/// Nodes of a list or a tree that moved out as a whole refer to each other, and the first of them to the object outside.
bool HeldBlocks::Settling::links_outside(const Watched& watched) const {
    if (watched.borrower == 0) return false;
    const std::uintptr_t to = std::min(watched.end, watched.begin + page_bytes);
    for (std::uintptr_t word = watched.begin; word + sizeof word <= to; word += sizeof word) {
        if (held_.target_at(word) - watched.borrower < object_bytes) return true;
    }
    return false;
}

void HeldBlocks::Settling::decide() {
    for (Watched& watched : watched_) watched.linked = watched.referenced && links_outside(watched);
    // What is held doesn't keep what it refers to from being held, too; what came back does.
    for (bool again = true; again;) {
        again = false;
        for (const Edge& edge : edges_) {
            const Watched& from = watched_[edge.from];
            Watched& to = watched_[edge.to];
            if (!from.referenced || from.linked || to.referenced) continue;
            to.referenced = again = true;
            to.linked = links_outside(to);
        }
    }
}

std::vector<HeapOffset> HeldBlocks::Settling::held() {
    decide();
    std::vector<HeapOffset> found;
    for (const Watched& watched : watched_) {
        if (watched.is_held() && !watched.entry) found.push_back(held_.offset(watched.begin));
    }
    return found;
}

bool HeldBlocks::Settling::finish() {
    decide();
    Engine& engine = held_.core_.engine();
    bool wrote = false;
    for (const Watched& watched : watched_) {
        const HeapOffset block = held_.offset(watched.begin);
        if (watched.is_held() == watched.entry) continue;
        if (watched.is_held() && planted(Bug::held_unsaid)) continue;
        const auto place = std::ranges::lower_bound(held_.entries_, watched.begin, {}, &Entry::block);
        if (!watched.is_held()) {
            engine.remove_root(entry_name(block));
            held_.entries_.erase(place);
            held_.let_go(reinterpret_cast<const void*>(watched.begin));
        } else {
            held_.entries_.insert(place, {watched.begin, watched.end, watched.borrower});
            try {
                engine.add_root({entry_name(block), std::string(entry_fingerprint), block, watched.end - watched.begin, 1});
            } catch (const HeapFull&) {
                std::erase_if(held_.entries_, [&](const Entry& entry) { return entry.block == watched.begin; });
                continue;  // a leak if the process dies, but no reason to fail
            }
            const std::lock_guard lock(held_.mutex_);
            held_.ever_ = true;
            if (watched.borrower != 0) {
                held_.borrowers_.insert(std::ranges::lower_bound(held_.borrowers_, watched.borrower), watched.borrower);
                held_.owned_.insert(std::ranges::lower_bound(held_.owned_, watched.begin), watched.begin);
                held_.owned_count_.store(held_.owned_.size(), std::memory_order_relaxed);
            }
        }
        held_.touched_ = wrote = true;
    }
    const std::lock_guard lock(held_.mutex_);
    held_.lent_.clear();
    held_.lent_count_.store(0, std::memory_order_relaxed);
    return wrote;
}

void HeldBlocks::keep_lent(std::span<const HeapOffset> blocks) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(lent_,
                  [&](const auto& lent) { return std::ranges::none_of(blocks, [&](HeapOffset kept) { return kept.value == lent.first - base(); }); });
    lent_count_.store(lent_.size(), std::memory_order_relaxed);
}

void HeldBlocks::freed(const void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (has_lent()) {
        const std::lock_guard lock(mutex_);
        lent_.erase(address);
        lent_count_.store(lent_.size(), std::memory_order_relaxed);
    }
    const auto found = std::ranges::lower_bound(entries_, address, {}, &Entry::block);
    if (found == entries_.end() || found->block != address) return;
    entries_.erase(found);
    touched_ = true;
    try {
        core_.engine().remove_root(entry_name(offset(address)));
    } catch (const std::exception&) {
        // A directory that can't be changed keeps an entry that names no block, or, later, somebody else's: (H2).
    }
}

bool HeldBlocks::lent_before(const void* block, std::uint32_t scope) const noexcept {
    if (!has_lent()) return false;
    const std::lock_guard lock(mutex_);
    const auto [first, behind] = lent_.equal_range(reinterpret_cast<std::uintptr_t>(block));
    return std::any_of(first, behind, [&](const auto& lent) { return lent.second.scope < scope; });
}

void HeldBlocks::part_taken_back(std::uint32_t scope) noexcept {
    if (has_lent()) {
        const std::lock_guard lock(mutex_);
        std::erase_if(lent_, [&](const auto& lent) { return lent.second.scope >= scope; });
        lent_count_.store(lent_.size(), std::memory_order_relaxed);
    }
    if (!touched_) return;
    stale_ = true;
    begin(false);
}

// A scope begins

void HeldBlocks::begin(bool may_change) noexcept {
    if (!stale_ && leftovers_.empty()) [[likely]]
        return;
    try {
        if (stale_) load();
        if (may_change && !leftovers_.empty() && !released_) release_leftovers();
    } catch (const std::exception&) {
        // Out of memory, or the directory is damaged: the blocks stay what they are.
    }
}

void HeldBlocks::load() {
    std::vector<Entry> found;
    for (const Root& root : core_.engine().roots()) {
        if (!is_entry(root)) continue;
        const std::uintptr_t block = base() + root.object.value;
        const auto known = std::ranges::lower_bound(entries_, block, {}, &Entry::block);
        const ByteCount usable = core_.engine().usable_size(reinterpret_cast<const void*>(block));
        found.push_back({block, block + usable, known != entries_.end() && known->block == block ? known->borrower : 0});
    }
    std::ranges::sort(found, {}, &Entry::block);
    if (!loaded_) {
        for (const Entry& entry : found) leftovers_.push_back(entry.block);
    }
    entries_ = std::move(found);
    ever_ = ever_ || !entries_.empty();
    loaded_ = true;
    stale_ = false;
}

/// Of other processes, all of which are gone.
void HeldBlocks::release_leftovers() {
    Engine& engine = core_.engine();
    std::vector<HeapOffset> suspects;
    for (const std::uintptr_t block : leftovers_) {
        if (std::ranges::binary_search(entries_, block, {}, &Entry::block) && !is_owned(block)) suspects.push_back(offset(block));
    }
    std::vector<HeapOffset> outside = owned();
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [block, lent] : lent_) outside.push_back(offset(block));
    }
    const std::vector<HeapOffset> nobodys = unreferenced_blocks(engine, reinterpret_cast<const std::byte*>(base()), suspects, outside, core_.links());
    released_ = true;
    for (const HeapOffset block : nobodys) engine.deallocate(reinterpret_cast<void*>(base() + block.value));
    for (const HeapOffset block : suspects) freed(reinterpret_cast<const void*>(base() + block.value));
}

void HeldBlocks::kept() noexcept {
    touched_ = false;
    if (released_) leftovers_.clear();
    released_ = false;
}

void HeldBlocks::taken_back(bool all) noexcept {
    if (touched_) stale_ = true;
    touched_ = released_ = false;
    if (!all || lent_count_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    lent_.clear();
    lent_count_.store(0, std::memory_order_relaxed);
}

// The next process

namespace {

/// What the suspects lead to, and whether anything else leads there.
class Reached {
public:
    /// What counts as a reference: whatever could be one, or addresses of begins alone.
    enum class Reference { any, begin };
    Reached(const Engine& engine, const std::byte* span, Links links, Reference reference = Reference::any)
        : engine_(engine), links_(links), reference_(reference), base_(reinterpret_cast<std::uintptr_t>(span)), extent_(engine.extent()) {}

    void follow(std::span<const HeapOffset> suspects) {
        std::vector<std::uint64_t> to_read;
        std::unordered_set<std::uint64_t> seen;
        const auto add = [&](std::uint64_t offset) {
            const auto block = engine_.find_block(reinterpret_cast<const void*>(base_ + offset));
            if (!block || block->offset.value != offset) return;
            if (!seen.insert(offset).second) return;
            if (block->content == Content::any) to_read.push_back(offset);
            blocks_.push_back({offset, offset + block->usable_bytes, block->content, false});
        };
        for (const HeapOffset suspect : suspects) add(suspect.value);
        while (!to_read.empty()) {
            const std::uint64_t from = to_read.back();
            to_read.pop_back();
            const ByteCount bytes = engine_.usable_size(reinterpret_cast<const void*>(base_ + from));
            for (std::uint64_t at = from; at + sizeof at <= from + bytes; at += sizeof at) {
                const std::uint64_t offset = target_at(at);
                if (offset < extent_ && offset % 8 == 0) add(offset);
            }
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
        constexpr std::uint64_t address_bits = (std::uint64_t{1} << 48U) - 1;
        for (std::uint64_t at = from; at + sizeof at <= from + bytes; at += sizeof at) {
            const std::uint64_t word = word_at(base_ + at);
            if (word == 0) continue;
            if (reference_ == Reference::begin) {
                keep_begin(target_at(at));
                continue;
            }
            if (const std::uint64_t offset = (word & address_bits) - base_; offset < extent_) keep(offset);
            // Small numbers are distances to something near, too: only the begin of a block counts; where everything is linked by distances, the middle does, too.
            if (links_ == Links::distances && at + word < extent_) keep(at + word);
            keep_begin(distance_target(at, word));
            keep_begin(word);
        }
    }

    void keep_begin(std::uint64_t offset) {
        if (offset >= extent_) return;
        if (const std::size_t index = find(offset); index != blocks_.size() && blocks_[index].begin == offset) keep_at(index);
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

    std::vector<HeapOffset> nobodys() const {
        std::vector<HeapOffset> found;
        for (const Found& block : blocks_) {
            if (!block.kept) found.push_back({block.begin});
        }
        return found;
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

    std::uint64_t target_at(std::uint64_t place) const noexcept {
        const std::uint64_t word = word_at(base_ + place);
        return links_ == Links::distances ? distance_target(place, word) : word - base_;
    }

    const Engine& engine_;
    const Links links_;
    const Reference reference_;
    const std::uintptr_t base_;
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

std::vector<HeapOffset> unreferenced_blocks(const Engine& engine, const std::byte* span, std::span<const HeapOffset> suspects,
                                            std::span<const HeapOffset> outside, Links links) {
    std::vector<std::uint64_t> named;
    for (const Root& root : engine.roots()) {
        if (!HeldBlocks::is_entry(root)) named.push_back(root.object.value);
    }
    if (suspects.empty() || named.empty()) return {};
    Reached reached(engine, span, links);
    reached.follow(suspects);
    for (const std::uint64_t object : named) reached.keep(object);
    for (const HeapOffset block : outside) reached.keep(block.value);
    reached.keep_what_everything_else_refers_to();
    return reached.nobodys();
}

std::vector<HeapOffset> owned_outside(const Engine& engine, const std::byte* span, std::span<const HeapOffset> suspects, Links links) {
    if (suspects.empty()) return {};
    Reached reached(engine, span, links, Reached::Reference::begin);
    reached.follow(suspects);
    for (const Root& root : engine.roots()) {
        if (!HeldBlocks::is_entry(root)) reached.keep(root.object.value);
    }
    reached.keep_what_everything_else_refers_to();
    std::vector<HeapOffset> found;
    for (const HeapOffset suspect : suspects) {
        if (reached.is_nobodys(suspect.value)) found.push_back(suspect);
    }
    return found;
}

}  // namespace taiyen::heap
