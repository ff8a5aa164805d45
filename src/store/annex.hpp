#pragma once
/// Annex: pages beside the span that the program never sees; saved with it, in the same record, and recovered, healed and verified like it. A history lives there.
///
/// (A1) It is mapped privately, at any address: nothing in it may be an address.
/// (A2) Page 0 says that the annex is in use by not being zero: if nobody opens the annex, the next save that changes the heap makes page 0 zero, for then its content no longer fits; close() gives the other
///      pages back.
/// (A3) While a journal or a log is read, its pages lie in memory beside the files: these stay as they are until all has turned out right.
/// Thread rule: external lock, the heap's.

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "store/geometry.hpp"
#include "store/heap_layout.hpp"
#include "vm/address_space.hpp"

namespace taiyen::store {

class HeapFiles;
class Image;

class Annex {
public:
    Annex(HeapFiles& files, Image& image) : files_(files), image_(image) {}

    /// Reserves address space for `capacity` bytes (at least what is in use) and maps what the files hold. Idempotent. Throws: HeapFull{address_space},
    /// Error{invalid_argument}: it was opened with less capacity. Where page 0 is zero, the other pages may hold garbage of an annex that ended.
    /// Requires: what was saved stands in the files (a save that ended the annex may stand in the ring only).
    /// `prove` is called once it is mapped.
    std::byte* open(ByteCount capacity, const std::function<void()>& prove);
    bool is_open() const { return static_cast<bool>(place_); }
    /// Requires: open.
    std::byte* begin() const { return place_.data(); }
    /// In use, a multiple of 4 KiB; 0: there is none, or it ended.
    ByteCount used() const { return used_; }
    /// What it has places for in the files, also where nobody opened it.
    ByteCount mapped() const { return mapped_; }
    /// For who only looks: the open annex, or a mapping of its own of what the newest save left (for a reader with what journal or log add to it). Empty: none is in use.
    struct View {
        vm::Reservation own;
        std::span<const std::byte> bytes;
    };
    /// Requires: no save runs. Throws: HeapFull{address_space}, Error{io_error}.
    View view() const;
    /// Its size and place now.
    AnnexHead head() const;
    /// Whether the newest save holds an annex in use. Requires: no save runs.
    bool is_saved() const;
    /// Whether the annex that the files hold is not the one of what is saved now.
    bool has_ended() const { return !is_open() && is_saved(); }
    /// Grows it to `bytes` (rounded up to 4 KiB); fresh bytes are zero. Durability: with the next save. Requires: open. Throws: HeapFull; then it is as before.
    void extend(ByteCount bytes);
    /// It is what the newest save says, and not open.
    void reset(const AnnexHead& saved);
    /// None is in use any more. Returns how many bytes were.
    ByteCount end();
    void close() { place_ = {}; }
    /// A forked child: the mapping is not its own.
    void leak() { place_.leak(); }

    /// The journal's image of a page, for a reader; empty: zero.
    void lay_over(PageNumber page, std::span<const std::byte> image) { overlay_[page.value].assign(image.begin(), image.end()); }
    /// While a log is replayed: from here on it is that large and lies there. Outside of a replay nothing happens: the live annex has it all. Throws: Error{corrupt}.
    void replay(const AnnexHead& annex);
    /// Of a heap that follows another file: from here on it is that large and lies there; its pages come with saves. Requires: not open. Throws: Error{mismatch}; HeapFull{disk}.
    void follow(const AnnexHead& annex);
    /// Gives the page as the newest save left it.
    using ReadBase = std::function<void(PageNumber page, std::span<std::byte> image)>;
    /// While a log is replayed: a page, to be changed; empty outside of a replay. `read_base`: for a writer. Throws: Error{corrupt} (its base is damaged).
    std::span<std::byte> replay_page(PageNumber page, const ReadBase& read_base);
    bool is_overlaid() const { return !overlay_.empty(); }
    /// What was replayed is in the files.
    void replayed();

private:
    /// Onto an annex that is mapped there.
    void overlay(std::byte* annex, bool writable) const;

    HeapFiles& files_;
    Image& image_;
    /// As the newest save left it, from whichever file has it.
    void read_reader_base(PageNumber page, std::span<std::byte> image) const;

    vm::Reservation place_;  ///< empty: not opened
    ByteCount mapped_ = 0;
    ByteCount used_ = 0;
    /// Pages as a journal has them (a reader's), or a log that is replayed; empty: zero.
    std::map<std::uint64_t, std::vector<std::byte>> overlay_;
};

}  // namespace taiyen::store
