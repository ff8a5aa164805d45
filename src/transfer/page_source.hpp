#pragma once
/// PageSource: the pages of a heap that is to be written somewhere else, whatever kind of heap it is.
///
/// Thread rule: `read` and `survey` are safe; the rest needs an external lock.

#include <span>

#include "heap/survey.hpp"

namespace taiyen::transfer {

class PageSource {
public:
    virtual ~PageSource() = default;
    /// What the pages are used for.
    virtual const heap::Survey& survey() const = 0;
    /// What `read` wants to know about the page; 0: it is zero. Cheap in ascending order. Throws: Error{corrupt | io_error}.
    virtual std::uint64_t checksum_of(PageNumber page) = 0;
    /// Pages from `first` on. `checksums`: theirs, as checksum_of gave them. Throws: Error{corrupt | io_error}.
    virtual void read(PageNumber first, std::span<std::byte> pages, std::span<const std::uint64_t> checksums) const = 0;
};

}  // namespace taiyen::transfer
