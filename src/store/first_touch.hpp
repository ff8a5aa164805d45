#pragma once
/// FirstTouch: keeps pages of the span from the program until they are proven (Verify::at_first_touch).
///
/// (F1) A granule (64 KiB) is open or hidden. Hidden ones can't be read: the first access faults, all pages of the granule are proven, then it opens. It is never hidden again.
/// (F2) What can't be proven stays hidden: whoever touches it gets a real fault, never what rotted.
/// (F3) Each run of open granules costs a mapping. Sequential touches open up to 16 granules at once; from half of the budget on (a sixteenth of vm.max_map_count for all heaps
///      together) 8 are, and at its end all that lie between the touched one and the next open one.
/// Thread rule: safe, and callable in signal handlers that interrupt nothing of this file; first touches wait for each other.

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <taiyen/base/units.hpp>

namespace taiyen::store {

class FirstTouch {
public:
    static constexpr std::uint64_t granule_pages = 16;
    /// Proves hidden pages, and puts right those that rotted. Throws if it can't.
    using Prove = std::function<void(PageNumber first, std::uint64_t count)>;

    /// Hides [span, span + mapped). Throws: HeapFull{address_space}, std::bad_alloc.
    FirstTouch(std::byte* span, ByteCount mapped, Prove prove);
    ~FirstTouch();
    FirstTouch(const FirstTouch&) = delete;
    FirstTouch& operator=(const FirstTouch&) = delete;

    /// What became of a touch.
    enum class Touch { outside, opened, was_open };
    /// Opens the page's granule, readable, or writable too. Throws: what `Prove` throws; HeapFull{address_space}; std::bad_alloc.
    Touch touch(PageNumber page, bool writable);
    /// mprotect(2) of what is open in that range; what is hidden stays so. False: the system refuses.
    [[nodiscard]] bool protect(PageNumber first, std::uint64_t count, bool writable) noexcept;
    /// The span is that long from now on; what is new is open. Requires: the granule at the old end is open, or the end lies between two. Throws: std::bad_alloc.
    void extended(ByteCount mapped);

private:
    struct Range {
        std::uint64_t first;
        std::uint64_t end;
    };
    /// Which hidden granules to open for one that was touched.
    Range window_for(std::uint64_t granule) const noexcept;
    bool is_open(std::uint64_t granule) const noexcept { return open_[granule]; }
    void open(Range hidden, bool writable);

    std::byte* const span_;
    const Prove prove_;
    const std::uint64_t runs_max_;
    std::mutex mutex_;
    std::vector<bool> open_;  ///< by granule
    std::uint64_t pages_;
    std::uint64_t runs_ = 0;  ///< of open granules
};

}  // namespace taiyen::store
