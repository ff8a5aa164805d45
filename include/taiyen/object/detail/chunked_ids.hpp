#pragma once
/// The ids of an object_id_set, chunk by chunk: one id or one interval goes in or out, and an entry has the form that takes the fewest bytes, or room to grow.
/// The set's interface, its algebra and its bytes are built on it: object/object_id_set.hpp, which says what holds for exceptions, iterators and threads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/object/detail/id_chunk.hpp>
#include <taiyen/object/detail/id_tree.hpp>

#if defined(TAIYEN_CHECKED_ITERATORS)
#define TAIYEN_CHECKED_TAG __attribute__((abi_tag("taiyen_checked")))
#else
#define TAIYEN_CHECKED_TAG
#endif

namespace taiyen::object {

/// Throws: std::length_error.
[[noreturn]] TAIYEN_EXPORT void throw_too_many_ids();

/// Order of ids is order of numbers.
inline std::uint64_t number_of_id(std::int64_t id) noexcept { return static_cast<std::uint64_t>(id) ^ (std::uint64_t{1} << 63U); }
inline std::int64_t id_with_number(std::uint64_t number) noexcept { return static_cast<std::int64_t>(number ^ (std::uint64_t{1} << 63U)); }

/// Walks over the entries of a set; of spans, parts can be taken.
template <class Tree>
struct ChunkCursor {
    using Leaf = typename Tree::Leaf;

    const Leaf* leaf;
    std::uint32_t i = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    explicit ChunkCursor(const Tree& tree) noexcept : leaf(tree.first_leaf()) { enter(); }
    void enter() noexcept {
        if (leaf == nullptr) return;
        begin = leaf->chunk(i);
        end = begin + leaf->chunks(i);
    }
    bool done() const noexcept { return leaf == nullptr; }
    bool full() const noexcept { return leaf->kind(i) == Kind::full; }
    ChunkView view() const noexcept { return leaf->view(i); }
    /// Chunks before `to` are done.
    void advance(std::uint64_t to) noexcept {
        begin = to;
        if (begin != end) return;
        if (++i == leaf->count) {
            leaf = Tree::leaf_or_null(leaf->next);
            i = 0;
        }
        enter();
    }
};

template <class Allocator>
class TAIYEN_CHECKED_TAG ChunkedIds {
public:
    using Tree = IdTree<Allocator>;
    using Leaf = typename Tree::Leaf;
    using Path = typename Tree::Path;
    using Entry = typename Tree::Entry;
    using Cursor = ChunkCursor<Tree>;
    using WordAllocator = typename Tree::WordAllocator;

    static constexpr std::uint64_t max_size() noexcept { return std::numeric_limits<std::uint64_t>::max(); }
    const Tree& tree() const noexcept { return tree_; }
    /// How often something changed: so that checked iterators can tell.
    std::uint64_t changes() const noexcept { return changes_; }

protected:
    /// Whether a block gets room for more.
    enum class Slack : std::uint8_t { none, some };
    static constexpr std::uint32_t runs_at_ease = 256;  ///< a bitmap of so few runs becomes runs by itself

    ChunkedIds() noexcept(std::is_nothrow_default_constructible_v<WordAllocator>) = default;
    explicit ChunkedIds(const WordAllocator& allocator) noexcept : tree_(allocator) {}
    ChunkedIds(ChunkedIds&& other) noexcept : tree_(std::move(other.tree_)) { other.changed(); }
    ChunkedIds& operator=(ChunkedIds&&) = delete;
    ~ChunkedIds() = default;

    std::uint64_t size() const noexcept { return tree_.size(); }
    void changed() noexcept { ++changes_; }
    void check_room(std::uint64_t more) const {
        if (more > max_size() - size()) throw_too_many_ids();
    }
    void replace_by(ChunkedIds& made) noexcept {
        tree_.clear();
        tree_.take(made.tree_);
        changed();
    }

    // One id.

    bool insert_into(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        switch (leaf.kind(i)) {
            case Kind::few: return insert_into_few(path, i, low);
            case Kind::values: return insert_into_values(path, i, low);
            case Kind::brief:
            case Kind::runs: return insert_into_runs(path, i, low);
            case Kind::bitmap: return insert_into_bitmap(path, i, low);
            default: return false;
        }
    }
    /// One id more in the entry, which is done already.
    bool inserted(const Path& path, std::uint32_t i) noexcept {
        ++path.leaf->keys()[i];
        tree_.add(path, 1);
        changed();
        return true;
    }
    bool insert_into_few(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        const std::uint64_t word = *leaf.slot(i);
        const std::uint32_t ids = leaf.ids_in_chunk(i);
        std::uint32_t at = 0;
        while (at < ids && static_cast<std::uint16_t>(word >> (16 * at)) < low) ++at;
        if (at < ids && static_cast<std::uint16_t>(word >> (16 * at)) == low) return false;
        if (ids == 4) return insert_slowly(path, i, low);
        const std::uint64_t below = (std::uint64_t{1} << (16 * at)) - 1U;
        *leaf.slot(i) = (word & below) | std::uint64_t{low} << (16 * at) | (word & ~below) << 16U;
        return inserted(path, i);
    }
    bool insert_into_values(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        auto* const values = static_cast<std::uint16_t*>(leaf.data(i));
        const std::uint32_t count = leaf.ids_in_chunk(i);
        std::uint32_t at = count;
        if (values[count - 1] >= low) {
            at = count_not_above(values, count, low);
            if (at != 0 && values[at - 1] == low) return false;
        }
        if (count == leaf.words(i) * 4) {
            const ChunkView ids{Shape::values, count, count, values};
            if (count == values_max || 2 * count_runs(ids) < count) return insert_slowly(path, i, low);
            grow_values(leaf, i, ids, at);
            static_cast<std::uint16_t*>(leaf.data(i))[at] = low;
            return inserted(path, i);
        }
        std::memmove(values + at + 1, values + at, (count - at) * sizeof *values);
        values[at] = low;
        return inserted(path, i);
    }
    /// A larger block with a gap at `at`.
    void grow_values(Leaf& leaf, std::uint32_t i, const ChunkView& ids, std::uint32_t at) {
        const std::uint32_t words = words_for(ids.count * 2 + 2, Slack::some);
        const auto block = tree_.allocate(words);
        auto* const values = reinterpret_cast<std::uint16_t*>(std::to_address(block));
        std::memcpy(values, ids.values(), at * sizeof *values);
        std::memcpy(values + at + 1, ids.values() + at, (ids.count - at) * sizeof *values);
        std::memset(values + ids.count + 1, 0xff, words * std::size_t{8} - (ids.count + 1) * sizeof *values);
        tree_.release(leaf, i);
        Tree::put(leaf, i, {leaf.keys()[i], Kind::values, words, 0, 0, block});
    }
    bool insert_into_runs(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        auto* runs = static_cast<IdRun*>(leaf.data(i));
        const std::uint32_t count = leaf.runs(i);
        const std::uint32_t at = runs[count - 1].last < low ? count : runs_not_above(runs, count, low);
        if (at != 0 && runs[at - 1].last >= low) return false;
        if (leaf.ids_in_chunk(i) + 1 == chunk_ids) {
            make_full(path, i);
            return true;
        }
        const bool touches_before = at != 0 && runs[at - 1].last + 1 == low;
        const bool touches_behind = at != count && runs[at].first == low + 1;
        if (touches_before && touches_behind) {
            if (leaf.kind(i) == Kind::runs && count <= 3) return insert_slowly(path, i, low);
            runs[at - 1].last = runs[at].last;
            set_runs(leaf, i, runs, at, count - at - 1, -1);
        } else if (touches_before) {
            runs[at - 1].last = low;
        } else if (touches_behind) {
            runs[at].first = low;
        } else {
            if (count == room_for_runs(leaf, i)) {
                if (!grow_runs(leaf, i)) return insert_slowly(path, i, low);
                runs = static_cast<IdRun*>(leaf.data(i));
            }
            set_runs(leaf, i, runs, at, count - at, 1);
            runs[at] = {low, low};
        }
        return inserted(path, i);
    }
    /// Moves `behind` runs that begin at `at` (one later if one goes) up or down by one.
    static void set_runs(Leaf& leaf, std::uint32_t i, IdRun* runs, std::uint32_t at, std::uint32_t behind, int more) noexcept {
        if (more > 0) {
            std::memmove(runs + at + 1, runs + at, behind * sizeof *runs);
        } else {
            std::memmove(runs + at, runs + at + 1, behind * sizeof *runs);
            if (leaf.kind(i) == Kind::brief) runs[1] = {0xffff, 0xffff};
        }
        Tree::describe(leaf, i, leaf.kind(i), leaf.words(i), leaf.runs(i) + static_cast<std::uint32_t>(more));
    }
    static std::uint32_t room_for_runs(const Leaf& leaf, std::uint32_t i) noexcept { return leaf.kind(i) == Kind::brief ? 2 : leaf.words(i) * 2; }
    /// A larger block, unless another form would be smaller for one run more.
    bool grow_runs(Leaf& leaf, std::uint32_t i) {
        const std::uint32_t count = leaf.runs(i);
        if (leaf.kind(i) == Kind::brief || count + 1 > runs_max || 2 * (count + 1) >= leaf.ids_in_chunk(i)) return false;
        const std::uint32_t words = words_for((count + 1) * 4, Slack::some);
        const auto block = tree_.allocate(words);
        fill(std::to_address(block), words, leaf.data(i), count * 4);
        tree_.release(leaf, i);
        Tree::put(leaf, i, {leaf.keys()[i], Kind::runs, words, count, 0, block});
        return true;
    }
    bool insert_into_bitmap(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        std::uint64_t& word = static_cast<std::uint64_t*>(leaf.data(i))[low / 64U];
        const std::uint64_t bit = std::uint64_t{1} << (low % 64U);
        if ((word & bit) != 0) return false;
        const std::uint32_t ids = leaf.ids_in_chunk(i) + 1;
        if (ids == chunk_ids) {
            make_full(path, i);
            return true;
        }
        word |= bit;
        inserted(path, i);
        if (ids % 1024 == 0) ease(path, i);
        return true;
    }
    /// The form of the entry changes, or its block grows.
    bool insert_slowly(Path& path, std::uint32_t i, std::uint16_t low) {
        ChunkBuffer buffer;
        buffer.combine(Operation::unite, path.leaf->view(i), {Shape::values, 1, 1, &low});
        replace(path, i, buffer.view(), Slack::some);
        return true;
    }
    /// The last missing id came.
    void make_full(Path& path, std::uint32_t i) noexcept {
        Leaf& leaf = *path.leaf;
        tree_.add(path, chunk_ids - leaf.ids_in_chunk(i));
        tree_.release(leaf, i);
        Tree::put(leaf, i, Tree::span(leaf.chunk(i), 1));
        changed();
        tree_.join_full(path, i);
    }
    /// A bitmap that takes far more bytes than it needs gets another form, if there is memory for it.
    void ease(Path& path, std::uint32_t i) noexcept {
        const ChunkView ids = path.leaf->view(i);
        if (ids.ids > values_max * 7 / 8 && count_runs(ids) > runs_at_ease) return;
        try {
            ChunkBuffer buffer;
            buffer.assign(ids);
            if (buffer.view().shape != Shape::bitmap) replace(path, i, buffer.view(), Slack::some);
        } catch (...) {  // no memory, or the heap gives none any more: it stays what it is
        }
    }

    bool erase_from(Path& path, std::uint32_t i, std::uint64_t chunk, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        switch (leaf.kind(i)) {
            case Kind::few: {
                const std::uint64_t word = *leaf.slot(i);
                const std::uint32_t ids = leaf.ids_in_chunk(i);
                std::uint32_t at = 0;
                while (at < ids && static_cast<std::uint16_t>(word >> (16 * at)) != low) ++at;
                if (at == ids) return false;
                if (ids == 1) {
                    tree_.remove(path, i, 1);
                    changed();
                    return true;
                }
                const std::uint64_t below = (std::uint64_t{1} << (16 * at)) - 1U;
                *leaf.slot(i) = (word & below) | (word >> 16U & ~below) | std::uint64_t{0xffff} << 48U;
                return erased(path, i);
            }
            case Kind::values: return erase_from_values(path, i, low);
            case Kind::brief:
            case Kind::runs: return erase_from_runs(path, i, low);
            case Kind::bitmap: {
                std::uint64_t& word = static_cast<std::uint64_t*>(leaf.data(i))[low / 64U];
                const std::uint64_t bit = std::uint64_t{1} << (low % 64U);
                if ((word & bit) == 0) return false;
                const std::uint32_t ids = leaf.ids_in_chunk(i) - 1;
                word &= ~bit;
                erased(path, i);
                if (ids % 1024 == 512) ease(path, i);
                return true;
            }
            default: return erase_from_full(path, chunk, low);
        }
    }
    bool erased(const Path& path, std::uint32_t i) noexcept {
        --path.leaf->keys()[i];
        tree_.add(path, ~std::uint64_t{0});
        changed();
        return true;
    }
    bool erase_from_values(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        const std::uint32_t count = leaf.ids_in_chunk(i);
        auto* const values = static_cast<std::uint16_t*>(leaf.data(i));
        const std::uint32_t at = count_not_above(values, count, low);
        if (at == 0 || values[at - 1] != low) return false;
        std::memmove(values + at - 1, values + at, (count - at) * sizeof *values);
        erased(path, i);
        if (count <= 5 || count <= leaf.words(i)) give_room_back(path, i);  // a quarter of the room is in use
        return true;
    }
    bool erase_from_runs(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        auto* runs = static_cast<IdRun*>(leaf.data(i));
        const std::uint32_t count = leaf.runs(i);
        const std::uint32_t begun = runs_not_above(runs, count, low);
        if (begun == 0 || runs[begun - 1].last < low) return false;
        const std::uint32_t at = begun - 1;
        const IdRun run = runs[at];
        if (leaf.ids_in_chunk(i) == 1) {
            tree_.remove(path, i, 1);
            changed();
            return true;
        }
        if (run.first == run.last) {
            set_runs(leaf, i, runs, at, count - at - 1, -1);
        } else if (run.first == low) {
            runs[at].first = static_cast<std::uint16_t>(low + 1U);
        } else if (run.last == low) {
            runs[at].last = static_cast<std::uint16_t>(low - 1U);
        } else {
            if (count == room_for_runs(leaf, i)) {
                if (!grow_runs(leaf, i)) return erase_slowly(path, i, low);
                runs = static_cast<IdRun*>(leaf.data(i));
            }
            set_runs(leaf, i, runs, at + 1, count - at - 1, 1);
            runs[at].last = static_cast<std::uint16_t>(low - 1U);
            runs[at + 1] = {static_cast<std::uint16_t>(low + 1U), run.last};
        }
        erased(path, i);
        if (leaf.kind(i) == Kind::runs && (leaf.runs(i) <= 2 || leaf.runs(i) * 2 < leaf.words(i))) give_room_back(path, i);
        return true;
    }
    bool erase_slowly(Path& path, std::uint32_t i, std::uint16_t low) {
        ChunkBuffer buffer;
        buffer.combine(Operation::subtract, path.leaf->view(i), {Shape::values, 1, 1, &low});
        replace(path, i, buffer.view(), Slack::some);
        return true;
    }
    bool erase_from_full(Path& path, std::uint64_t chunk, std::uint16_t low) {
        isolate(path, chunk);
        const std::uint32_t i = path.index - 1;
        Leaf& leaf = *path.leaf;
        IdRun runs[2] = {{0xffff, 0xffff}, {0xffff, 0xffff}};
        std::uint32_t count = 0;
        if (low != 0) runs[count++] = {0, static_cast<std::uint16_t>(low - 1U)};
        if (low != 0xffff) runs[count++] = {static_cast<std::uint16_t>(low + 1U), 0xffff};
        std::uint64_t word = 0;
        std::memcpy(&word, runs, sizeof word);
        Tree::put(leaf, i, {chunk << 16U | (chunk_ids - 2), Kind::brief, 0, count, word, nullptr});
        tree_.add(path, ~std::uint64_t{0});
        changed();
        return true;
    }
    void give_room_back(Path& path, std::uint32_t i) noexcept {
        try {
            ChunkBuffer buffer;
            buffer.assign(path.leaf->view(i));
            replace(path, i, buffer.view(), Slack::some);
        } catch (...) {  // no memory, or the heap gives none any more: it stays what it is
        }
    }

    // Whole chunks.

    /// An entry for the ids, with memory of its own.
    Entry entry_for(std::uint64_t chunk, const ChunkView& ids, Slack slack) {
        Entry entry;
        entry.key = chunk << 16U | (ids.ids - 1);
        if (ids.ids == chunk_ids) return Tree::span(chunk, 1);
        entry.runs = ids.shape == Shape::runs ? ids.count : 0;
        const std::uint32_t bytes = bytes_of(ids);
        if (bytes <= 8) {
            entry.kind = ids.shape == Shape::runs ? Kind::brief : Kind::few;
            entry.word = Tree::no_values;
            std::memcpy(&entry.word, ids.data, bytes);
            return entry;
        }
        entry.kind = ids.shape == Shape::values ? Kind::values : ids.shape == Shape::runs ? Kind::runs : Kind::bitmap;
        entry.words = words_for(bytes, slack);
        entry.block = tree_.allocate(entry.words);
        fill(std::to_address(entry.block), entry.words, ids.data, bytes);
        return entry;
    }
    static std::uint32_t bytes_of(const ChunkView& ids) noexcept {
        return ids.shape == Shape::bitmap ? bitmap_bytes : ids.count * static_cast<std::uint32_t>(ids.shape == Shape::values ? 2 : 4);
    }
    static std::uint32_t words_for(std::uint32_t bytes, Slack slack) noexcept {
        const std::uint32_t needed = (bytes + 7) / 8;
        if (slack == Slack::none) return needed;
        return std::min(bitmap_words, (needed + needed / (needed < 256 ? 2 : 4) + 2) & ~1U);
    }
    /// The rest is set to a value that doesn't look like an address.
    static void fill(std::uint64_t* block, std::uint32_t words, const void* data, std::uint32_t bytes) noexcept {
        std::memcpy(block, data, bytes);
        std::memset(reinterpret_cast<std::byte*>(block) + bytes, 0xff, words * std::size_t{8} - bytes);
    }
    /// The entry holds these ids of its only chunk instead. The data lies elsewhere. Strong. Invalidates: the path, if ids or their kind change much.
    void replace(Path& path, std::uint32_t i, const ChunkView& ids, Slack slack) {
        Leaf& leaf = *path.leaf;
        if (ids.ids == 0) {
            tree_.remove(path, i, 1);
            changed();
            return;
        }
        const std::uint64_t before = leaf.ids_in_chunk(i);
        const std::uint32_t bytes = bytes_of(ids);
        const std::uint32_t have = leaf.has_block(i) ? leaf.words(i) : 0;
        if (bytes > 8 && ids.ids != chunk_ids && have * 8 >= bytes && have <= 2 * words_for(bytes, slack)) {
            fill(static_cast<std::uint64_t*>(leaf.data(i)), have, ids.data, bytes);
            leaf.keys()[i] = leaf.chunk(i) << 16U | (ids.ids - 1);
            const Kind kind = ids.shape == Shape::values ? Kind::values : ids.shape == Shape::runs ? Kind::runs : Kind::bitmap;
            Tree::describe(leaf, i, kind, have, ids.shape == Shape::runs ? ids.count : 0);
        } else {
            const Entry entry = entry_for(leaf.chunk(i), ids, slack);
            tree_.release(leaf, i);
            Tree::put(leaf, i, entry);
        }
        tree_.add(path, ids.ids - before);
        changed();
        if (ids.ids == chunk_ids) tree_.join_full(path, i);
    }

    /// No entry reaches over the border in front of `chunk`.
    void cut(Path& path, std::uint64_t chunk) {
        if (chunk >> 48U != 0) return;
        tree_.locate(path, chunk);
        if (path.index == 0) return;
        std::uint32_t i = path.index - 1;
        const std::uint64_t begin = path.leaf->chunk(i);
        if (begin == chunk || !path.leaf->covers(i, chunk)) return;
        tree_.make_room(path, begin, 1);
        tree_.locate(path, begin);
        i = path.index - 1;
        const std::uint64_t chunks = path.leaf->chunks(i);
        *path.leaf->slot(i) = chunk - begin;
        tree_.add(path, 0 - ((begin + chunks - chunk) << 16U));
        tree_.insert_here(path, Tree::span(chunk, begin + chunks - chunk));
    }
    /// The full chunk gets an entry of its own; the path leads behind it. Strong.
    void isolate(Path& path, std::uint64_t chunk) {
        tree_.locate(path, chunk);
        std::uint64_t begin = path.leaf->chunk(path.index - 1);
        const std::uint64_t end = begin + path.leaf->chunks(path.index - 1);
        const std::uint32_t more = (begin != chunk ? 1U : 0U) + (end != chunk + 1 ? 1U : 0U);
        if (more != 0) {
            tree_.make_room(path, begin, more);
            tree_.locate(path, begin);
        }
        if (begin != chunk) {
            *path.leaf->slot(path.index - 1) = chunk - begin;
            tree_.add(path, 0 - ((end - chunk) << 16U));
            tree_.insert_here(path, Tree::span(chunk, end - chunk));
            ++path.index;
            begin = chunk;
        }
        if (end != chunk + 1) {
            *path.leaf->slot(path.index - 1) = 1;
            tree_.add(path, 0 - ((end - chunk - 1) << 16U));
            tree_.insert_here(path, Tree::span(chunk + 1, end - chunk - 1));
        }
    }
    void merge_chunk(Operation operation, std::uint64_t chunk, const ChunkView& ids, ChunkBuffer& buffer, Slack slack) {
        Path path;
        tree_.locate(path, chunk);
        if (path.index == 0 || !path.leaf->covers(path.index - 1, chunk)) {
            if (operation == Operation::subtract || operation == Operation::intersect) return;
            check_room(ids.ids);
            const Entry entry = entry_for(chunk, ids, slack);
            insert_entry(path, entry);
            if (entry.kind == Kind::full) tree_.join_full(path, path.index);
            return;
        }
        if (path.leaf->kind(path.index - 1) == Kind::full) {
            if (operation == Operation::unite) return;
            isolate(path, chunk);
        }
        const ChunkView own = path.leaf->view(path.index - 1);
        buffer.combine(operation, own, ids);
        if (buffer.view().ids > own.ids) check_room(buffer.view().ids - own.ids);
        replace(path, path.index - 1, buffer.view(), slack);
    }
    void insert_entry(Path& path, const Entry& entry) {
        try {
            tree_.insert(path, entry);
        } catch (...) {
            tree_.release(entry);
            throw;
        }
        changed();
    }
    void change_interval(Operation operation, std::uint64_t first, std::uint64_t last) {
        ChunkBuffer buffer;
        std::uint64_t from = first >> 16U;
        std::uint64_t to = last >> 16U;
        const auto low = static_cast<std::uint16_t>(first);
        const auto high = static_cast<std::uint16_t>(last);
        if (from == to) {
            const IdRun run{low, high};
            merge_chunk(operation, from, view_of(run), buffer, Slack::some);
            return;
        }
        if (low != 0) {
            const IdRun run{low, 0xffff};
            merge_chunk(operation, from++, view_of(run), buffer, Slack::some);
        }
        if (high != 0xffff) {
            const IdRun run{0, high};
            merge_chunk(operation, to--, view_of(run), buffer, Slack::some);
        }
        if (from > to) return;
        Path path;
        erase_chunks(path, from, to);
        if (operation == Operation::unite) {
            tree_.locate(path, from);
            insert_entry(path, Tree::span(from, to - from + 1));
            Tree::raise_next_separator(path, to);
            tree_.join_full(path, path.index);
        }
    }
    void erase_chunks(Path& path, std::uint64_t from, std::uint64_t to) {
        cut(path, from);
        cut(path, to + 1);
        while (true) {
            tree_.locate(path, from);
            std::uint32_t i = path.index;
            if (i != 0 && path.leaf->chunk(i - 1) == from) --i;
            if (path.leaf == nullptr) return;
            if (i == path.leaf->count) {
                if (!Tree::to_next_leaf(path)) return;
                i = 0;
            }
            std::uint32_t count = 0;
            while (i + count < path.leaf->count && path.leaf->chunk(i + count) <= to) ++count;
            if (count == 0) return;
            tree_.remove(path, i, count);
            changed();
        }
    }

    /// Appends entries behind everything.
    struct Appender {
        ChunkedIds& set;
        Path path;
        explicit Appender(ChunkedIds& target) noexcept : set(target) { set.tree_.locate(path, ~std::uint64_t{0} >> 16U); }

        void append_span(std::uint64_t chunk, std::uint64_t chunks) {
            if (chunks > (max_size() >> 16U) || max_size() - set.size() < chunks << 16U) throw_too_many_ids();
            if (path.index != 0 && path.leaf->kind(path.index - 1) == Kind::full) {
                const std::uint32_t i = path.index - 1;
                if (path.leaf->chunk(i) + path.leaf->chunks(i) == chunk) {
                    *path.leaf->slot(i) += chunks;
                    set.tree_.add(path, chunks << 16U);
                    return;
                }
            }
            append(Tree::span(chunk, chunks));
        }
        void append(std::uint64_t chunk, const ChunkView& ids) {
            if (ids.ids == 0) return;
            if (ids.ids == chunk_ids) return append_span(chunk, 1);
            set.check_room(ids.ids);
            append(set.entry_for(chunk, ids, Slack::none));
        }
        void append(const Cursor& cursor, std::uint64_t to) {
            if (cursor.full())
                append_span(cursor.begin, to - cursor.begin);
            else
                append(cursor.begin, cursor.view());
        }

    private:
        void append(const Entry& entry) {
            set.insert_entry(path, entry);
            ++path.index;
        }
    };

    Tree tree_;
    std::uint64_t changes_ = 0;
};

}  // namespace taiyen::object
