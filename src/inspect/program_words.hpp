#pragma once
/// ProgramWords: which words of a heap are pointers into a program's own memory, of this process or of one that is gone.
///
/// (W1) Words are judged in groups: those at the same offset in blocks of the same size, which mostly are one member of one type; in large blocks, wherever they are. A group is told if most of its words that
///      may be such addresses are pointers; else they are numbers.
/// (W2) Of this process: a word is a pointer if it leads into memory that the process has now.
/// (W3) Of a process that is gone: what it had can only be guessed. A word is a pointer if it lies in an *area*, 16 MiB in which a group has several words that are aligned as objects are, or few unaligned ones again
///      and again, as literals are, and most of the group's words lie in such. Groups of few words make areas together, as one: chance would find some alone. Text, and an int beside a small one, make none.
/// (W4) Memory is bounded: what a group has beyond its first words counts as those do; words for which there is no room then are counted and not judged.
/// Thread rule: one thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/inspect/report.hpp>

#include "heap/core.hpp"
#include "heap/program_memory.hpp"

namespace taiyen::inspect {

class ProgramWords {
public:
    explicit ProgramWords(ProgramSearch search) : search_(search) {}

    /// Whether a word of that heap leads to where programs have their own memory.
    static bool may_be(const heap::HeapCore& core, std::uint64_t word) {
        return heap::ProgramMemory::may_hold(word) && word - core.ranges().durable >= core.engine().capacity();
    }
    /// Requires: may_be(word). `holder`: any number, which is returned.
    void add(const heap::Block& block, HeapOffset place, std::uint64_t word, std::size_t holder);

    struct Found {
        HeapOffset place;  ///< of a group's first pointer
        heap::Block block;
        std::uint64_t target;
        std::uint64_t words;  ///< pointers of the group, and what it has beyond what was kept
        std::size_t holder;
        std::string leads_to;  ///< of this process: what lies there
    };
    struct Verdict {
        std::vector<Found> found;  ///< ascending by place
        std::uint64_t words = 0;
        std::uint64_t unjudged = 0;
    };
    /// Complexity: O(n log n) in the words that were added.
    Verdict judge();

private:
    static constexpr std::size_t words_max = std::size_t{1} << 18U;
    static constexpr std::size_t group_words_max = 1024;
    static constexpr std::size_t groups_max = std::size_t{1} << 14U;
    static constexpr std::size_t few_max = 16;  ///< a group of fewer words doesn't stand for itself
    static constexpr ByteCount small_block_max = 1_KiB;
    static constexpr unsigned area_shift = 24;

    struct Word {
        std::uint64_t value;
        HeapOffset place;
        HeapOffset block;
        std::size_t holder;
    };
    struct Group {
        std::vector<Word> words;
        std::uint64_t numbers = 0;  ///< that look like addresses and certainly are none
        std::uint64_t more = 0;     ///< that are as those that were kept
    };
    using Key = std::pair<ByteCount, ByteCount>;  ///< size of the blocks, offset in them
    using Areas = std::map<std::uint64_t, bool>;  ///< whether unaligned words count, too

    static Areas areas_of(const std::vector<Word>& words);
    static bool is_in(const Areas& areas, std::uint64_t word);
    /// Those that groups of many words show, and those that all groups of few show together.
    Areas areas() const;

    const ProgramSearch search_;
    std::map<Key, Group> groups_;
    std::size_t kept_ = 0;
    std::uint64_t unjudged_ = 0;
};

}  // namespace taiyen::inspect
