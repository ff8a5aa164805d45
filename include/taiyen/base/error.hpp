#pragma once
/// Typed errors: what went wrong, in which file, at which offset, and what to do about it.
///
/// The world failed or bytes are wrong: `Error` is thrown. A heap or its disk is full: `HeapFull`, a `std::bad_alloc`.
/// A bug in the caller: `TAIYEN_CHECK` (taiyen/base/check.hpp). Thread rule: values; copy freely.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// What went wrong. Values are part of the binary interface: add at the end, never renumber.
enum class errc {
    not_found = 1,
    already_exists,
    not_a_regular_file,
    not_a_heap,  ///< also an empty file
    unsupported_version,
    foreign_byte_order,
    unsupported_page_size,
    truncated,
    corrupt,
    mismatch,
    log_missing,
    busy,
    read_only,
    permission,
    too_many_files,
    no_space,
    io_error,
    poisoned,
    closed,
    forked,
    address_in_use,
    name_taken,
    type_mismatch,
    no_transaction = type_mismatch + 2,  ///< numbers stay; the one in front is nobody's any more
    scope_open,
    still_in_use,
    foreign_pointer,
    double_free,
    stray_write,
    uncaptured_store,
    not_instrumented,
    missing_procedure,
    history_full,
    history_conflict,
    transaction_doomed,
    stopped,
    cancelled,
    invalid_argument,
    out_of_address_space,
    raw_pointer,       ///< of a type, where a heap may be mapped anywhere
    too_many_threads,  ///< the system makes no more
    fenced,            ///< another file replicates there now
    diverged,          ///< what was replicated is no part of this file's history
    follower,          ///< the file follows another one and is only read
    stale,             ///< what a follower shows is older than was asked for
    unreachable,       ///< no server answers
    unconfirmed,       ///< committed and durable here; whether it is elsewhere, too, is not known yet
};

/// The category of `errc` codes; its name is "taiyen". Complexity: constant.
TAIYEN_EXPORT const std::error_category& error_category() noexcept;

/// Found by argument-dependent look-up when an `errc` becomes a `std::error_code`.
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), error_category()}; }

/// A failure with its code, the file and the byte offset it concerns, and a sentence that ends with the remedy.
class TAIYEN_EXPORT Error : public std::system_error {
public:
    /// `offset()` of an error that concerns no particular byte.
    static constexpr std::uint64_t no_offset = std::numeric_limits<std::uint64_t>::max();

    /// `what` names the thing that failed and the remedy; `path` (may be empty) is put in front of it by `what()`.
    Error(errc code, std::filesystem::path path, std::uint64_t offset, const std::string& what);
    Error(errc code, std::filesystem::path path, const std::string& what) : Error(code, std::move(path), no_offset, what) {}
    Error(errc code, const std::string& what) : Error(code, {}, no_offset, what) {}
    Error(const Error&);
    Error& operator=(const Error&);
    ~Error() override;

    const std::filesystem::path& path() const noexcept { return path_; }
    std::uint64_t offset() const noexcept { return offset_; }

private:
    std::filesystem::path path_;
    std::uint64_t offset_ = no_offset;
};

/// A heap (or the disk under it) has no room for the block that was asked for. Nothing was changed.
class TAIYEN_EXPORT HeapFull : public std::bad_alloc {
public:
    /// Why there is no room.
    enum class Cause { capacity, disk, address_space, dirty_limit, neighbor, values };

    /// `heap`: its path, or the name of a volatile heap; empty: none. Of a long one, `what()` tells the end.
    HeapFull(std::size_t wanted_bytes, std::size_t largest_free_bytes, Cause cause = Cause::capacity, std::string_view heap = {}) noexcept;
    HeapFull(const HeapFull&) noexcept;
    HeapFull& operator=(const HeapFull&) noexcept;
    ~HeapFull() override;

    /// The same, about that heap.
    HeapFull about(std::string_view heap) const noexcept { return {wanted_, largest_free_, cause_, heap}; }

    /// The heap, and one sentence with the figures; no allocation happens here or in the constructor.
    const char* what() const noexcept override { return text_; }
    std::size_t wanted() const noexcept { return wanted_; }              ///< bytes asked for
    std::size_t largest_free() const noexcept { return largest_free_; }  ///< bytes of the largest block that would fit
    Cause cause() const noexcept { return cause_; }

private:
    std::size_t wanted_;
    std::size_t largest_free_;
    Cause cause_;
    char text_[512];
};

}  // namespace taiyen

template <>
struct std::is_error_code_enum<taiyen::errc> : std::true_type {};
