#pragma once
/// CompactionPlan: which blocks of a heap should move where, so that pages become free; nothing is moved here.
///
/// (I1) Every target is free as long as nothing was moved, and no two moves share a byte of it: they can be made in any order, each from its group's beginning.
/// (I2) A group is what has to move for something to become free: all blocks of a page, or one large block. A prefix of the groups is a plan, too.
/// (I3) First pages are emptied into holes of other pages in use, those of the emptiest segments first: fewer pages are in use after each group. Then pages and large blocks go down into free pages, from the
///      highest on. So a heap that nobody changes meanwhile comes to an end.
/// (I4) A block keeps its alignment as far as its old address and its size were multiples of it, up to a page, and touches no more cache lines than it did.
/// Memory: 48 bytes a page, 16 a block. Thread rule: one thread; nobody changes the heap meanwhile.

#include <array>
#include <unordered_map>
#include <vector>

#include "heap/survey.hpp"
#include "transfer/pointer_finder.hpp"

namespace taiyen::transfer {

class CompactionPlan {
public:
    /// The block at `from` is to lie at `to`.
    struct Move {
        std::uint64_t from;
        std::uint64_t bytes;
        std::uint64_t to;
        heap::Content content = heap::Content::any;
    };
    /// Moves [first, end): pages that become free, and free ones that they take.
    struct Group {
        std::size_t first;
        std::size_t end;
        std::uint64_t bytes;
        heap::Page from;  ///< first page that becomes free; so many
        heap::Page freed;
        heap::Page to;  ///< first free page that is taken; so many
        heap::Page taken;
    };

    /// `pinned`: offsets of the blocks that stay, ascending. Longer blocks than `block_bytes_max` stay too.
    CompactionPlan(const HeapView& heap, const std::vector<std::uint64_t>& pinned, ByteCount block_bytes_max);

    const std::vector<Move>& moves() const { return moves_; }
    const std::vector<Group>& groups() const { return groups_; }
    /// Blocks that only their length keeps where they are.
    std::uint64_t large_blocks() const { return large_blocks_; }
    std::uint64_t pages_in_use() const { return pages_in_use_; }
    std::uint64_t segments_in_use() const;
    /// Pages in use of each segment of 16 pages.
    const std::vector<std::uint16_t>& segments() const { return segments_; }

private:
    enum class Role : std::uint8_t { other /**< metadata, growth, directory */, free, small, packed, run };
    using Bits = std::array<std::uint64_t, 4>;
    struct PageRoom {
        Bits taken{};  ///< granules, or slots
        Role role = Role::other;
        std::uint8_t packed_class = 0;
        heap::Content content = heap::Content::any;  ///< of small blocks
        bool stays = false;                          ///< a block in it does, or a run ends in it
        bool leaves = false;                         ///< its blocks have found places
        bool receives = false;                       ///< blocks come into it
    };
    /// Small blocks that fit into the same places.
    struct Shape {
        Bits starts{};               ///< where they may begin in a page
        heap::Page search_from = 0;  ///< no page before has room
    };
    struct Resident {
        std::uint64_t offset;
        std::uint64_t bytes;
        heap::Content content;
    };

    void look_at(const heap::Survey& survey);
    void look_at_page(const heap::Survey& survey, const heap::PagesInUse& found);
    void pin(const std::vector<std::uint64_t>& pinned);
    void empty_pages();
    void lower_pages(ByteCount block_bytes_max);
    std::pair<std::size_t, std::size_t> residents(heap::Page page) const;
    bool try_empty(heap::Page page);
    Shape& shape_of(const Resident& block);
    /// Where it can go; 0: nowhere.
    std::uint64_t place_small(const Resident& block, heap::Page away_from);
    std::uint64_t place_packed(unsigned packed_class, heap::Page away_from);
    void mark(std::uint64_t offset, std::uint64_t bytes, bool taken);
    void lower_page(heap::Page page);
    void lower_run(heap::Page head, ByteCount block_bytes_max);
    /// The tail of a run leaves the page. True: nothing else lies there.
    bool leave_tail(heap::Page page, unsigned granules);
    /// The lowest free pages below `before`, in one piece; with room for a tail behind them. No page: there are none.
    heap::Page find_free(heap::Page pages, unsigned tail_granules, heap::Page before);
    bool is_free(heap::Page page) const { return rooms_[page].role == Role::free && !rooms_[page].receives; }

    const HeapView& heap_;
    std::vector<PageRoom> rooms_;
    std::vector<Resident> blocks_;  ///< ascending
    std::unordered_map<unsigned, Shape> shapes_;
    std::array<heap::Page, heap::packed_class_count> packed_from_{};  ///< no page before has a free slot
    std::unordered_map<std::uint64_t, heap::Page> free_from_;         ///< by pages and tail: no free pages before will do
    std::vector<Move> moves_;
    std::vector<Group> groups_;
    std::uint64_t large_blocks_ = 0;
    std::uint64_t pages_in_use_ = 0;
    std::vector<std::uint16_t> segments_;
};

}  // namespace taiyen::transfer
