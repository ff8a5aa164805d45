#pragma once
/// FirstTouch: keeps pages of the span from the program until they are proven (Verify::at_first_touch).
///
/// (F1) A granule (64 KiB) is open or hidden. Hidden ones can't be read: the first access faults, all pages of the granule are proven, then it opens. It is never hidden again.
/// (F2) A page that can't be proven stays hidden in its open granule: whoever touches it gets a real fault, never what rotted. Each touch tries again.
/// (F3) Each run of visible pages costs a mapping. Sequential touches open up to 16 granules at once; from half of the budget on (a sixteenth of vm.max_map_count for all heaps
///      together) 8 are, and at its end, or where the system refuses a mapping, all that lie between the touched one and the next open one.
/// Thread rule: safe, and callable in signal handlers that interrupt nothing of this file; first touches wait for each other.

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/base/units.hpp>

#include "vm/page_tracker.hpp"

namespace taiyen::store {

class FirstTouch {
public:
    static constexpr std::uint64_t granule_pages = 16;
    struct LostPage {
        PageNumber page;
        Error why;
    };
    /// Proves hidden pages, and puts right those that rotted; returns those that nobody has whole, ascending.
    using Prove = std::function<std::vector<LostPage>(PageNumber first, std::uint64_t count)>;
    /// What pages open as. Asked under the lock that `protect` takes, too.
    using IsWritable = std::function<bool()>;

    /// Hides [span, span + mapped). Throws: HeapFull{address_space}, std::bad_alloc.
    FirstTouch(std::byte* span, ByteCount mapped, Prove prove, IsWritable is_writable);
    ~FirstTouch();
    FirstTouch(const FirstTouch&) = delete;
    FirstTouch& operator=(const FirstTouch&) = delete;

    /// What became of a touch.
    enum class Touch { outside, opened, was_open };
    /// Opens the page's granule. Throws: LostPage::why of that page; HeapFull{address_space}; std::bad_alloc; what `Prove` throws.
    Touch touch(PageNumber page);
    bool is_visible(PageNumber page) noexcept;
    /// What of these runs can be read.
    std::vector<vm::PageRun> visible(const std::vector<vm::PageRun>& runs);
    /// mprotect(2) of what is visible in that range; what is hidden stays so. False: the system refuses.
    [[nodiscard]] bool protect(PageNumber first, std::uint64_t count, bool writable) noexcept;
    /// The span is that long from now on; what is new is visible. Requires: the granule at the old end was touched, or the end lies between two. Throws: std::bad_alloc.
    void extended(ByteCount mapped);

private:
    struct Range {
        std::uint64_t first;
        std::uint64_t end;
    };
    /// Which hidden granules to open for one that was touched.
    Range window_for(std::uint64_t granule) const noexcept;
    /// Those that need no further mapping.
    Range up_to_next_open(std::uint64_t granule) const noexcept;
    bool is_open(std::uint64_t granule) const noexcept { return open_[granule]; }
    bool sees(std::uint64_t page) const noexcept;
    /// Where the run ends that begins at the page and is all visible or all hidden; `end` at the latest.
    std::uint64_t end_of_run(std::uint64_t page, std::uint64_t end) const noexcept;
    /// Opens what can be proven of these hidden pages.
    void open(std::uint64_t first, std::uint64_t end, PageNumber touched);
    /// Opens the page together with all between it and the next visible one, above or else below, which takes no further mapping. False: that can't be.
    bool open_joined(std::uint64_t page);
    /// False: the system refuses.
    bool show(std::uint64_t first, std::uint64_t end);

    std::byte* const span_;
    const Prove prove_;
    const IsWritable is_writable_;
    const std::uint64_t runs_max_;
    std::mutex mutex_;
    std::vector<bool> open_;           ///< by granule
    std::vector<std::uint64_t> lost_;  ///< pages of open granules that are hidden all the same: lost, or nobody could be shown them; ascending
    std::uint64_t pages_;
    std::uint64_t runs_ = 0;  ///< of visible pages
};

}  // namespace taiyen::store
