#include <taiyen/base/error.hpp>

#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

const char* text_of(errc code) {
    switch (code) {
        case errc::not_found: return "not found";
        case errc::already_exists: return "already exists";
        case errc::not_a_regular_file: return "not a regular file";
        case errc::not_a_heap: return "not a taiyen heap";
        case errc::unsupported_version: return "unsupported version of the file format";
        case errc::foreign_byte_order: return "written on a machine with another byte order";
        case errc::unsupported_page_size: return "unsupported page size";
        case errc::truncated: return "truncated";
        case errc::corrupt: return "corrupt";
        case errc::mismatch: return "the files do not belong together";
        case errc::log_missing: return "the log is missing";
        case errc::busy: return "in use";
        case errc::read_only: return "opened read-only";
        case errc::permission: return "permission denied";
        case errc::too_many_files: return "too many open files";
        case errc::no_space: return "no space left on the device";
        case errc::io_error: return "input/output error";
        case errc::poisoned: return "poisoned by an earlier failure";
        case errc::closed: return "closed";
        case errc::forked: return "not usable in a forked child";
        case errc::address_in_use: return "address in use";
        case errc::name_taken: return "name taken";
        case errc::type_mismatch: return "stored with another type";
        case errc::no_transaction: return "no transaction";
        case errc::scope_open: return "a scope is open";
        case errc::still_in_use: return "still in use";
        case errc::foreign_pointer: return "pointer to memory outside the heap";
        case errc::double_free: return "bad free";
        case errc::stray_write: return "stray store";
        case errc::uncaptured_store: return "store that was not captured";
        case errc::not_instrumented: return "not instrumented";
        case errc::missing_procedure: return "missing procedure";
        case errc::history_full: return "history full";
        case errc::history_conflict: return "history conflict";
        case errc::transaction_doomed: return "transaction doomed";
        case errc::stopped: return "stopped";
        case errc::cancelled: return "cancelled";
        case errc::invalid_argument: return "invalid argument";
        case errc::out_of_address_space: return "out of address space";
        case errc::raw_pointer: return "raw pointers in a heap that may be mapped anywhere";
        case errc::too_many_threads: return "too many threads";
        case errc::fenced: return "replicated by another file";
        case errc::diverged: return "another history was replicated";
        case errc::follower: return "a follower";
        case errc::stale: return "too old";
        case errc::unreachable: return "no server answers";
        case errc::unconfirmed: return "not confirmed elsewhere";
    }
    return "unknown taiyen error";
}

class Category final : public std::error_category {
public:
    const char* name() const noexcept override { return "taiyen"; }
    std::string message(int value) const override { return text_of(static_cast<errc>(value)); }
};

std::string sentence(const std::filesystem::path& path, std::uint64_t offset, const std::string& what) {
    std::string text;
    if (!path.empty()) text += path.string() + ": ";
    if (offset != Error::no_offset) text += "at byte " + std::to_string(offset) + ": ";
    return text + what;
}

}  // namespace

const std::error_category& error_category() noexcept {
    static const Category category;
    return category;
}

Error::Error(errc code, std::filesystem::path path, std::uint64_t offset, const std::string& what)
    : std::system_error(make_error_code(code), sentence(path, offset, what)), path_(std::move(path)), offset_(offset) {}
Error::Error(const Error&) = default;
Error& Error::operator=(const Error&) = default;
Error::~Error() = default;

HeapFull::HeapFull(std::size_t wanted_bytes, std::size_t largest_free_bytes, Cause cause, std::string_view heap) noexcept
    : wanted_(wanted_bytes), largest_free_(largest_free_bytes), cause_(cause) {
    const char* why = cause == Cause::capacity ? "no room of that length is left, and a block takes at most half of the capacity; give the heap a "
                                                 "larger one (`taiyen convert --capacity`)"
                      : cause == Cause::disk   ? "the disk is full; free some space"
                      : cause == Cause::dirty_limit ? "the limit of unsaved pages is reached; save first or raise dirty_limit"
                      : cause == Cause::values ? "values take as much of the heap as its option `utilisation` allows, or there is no room to move "
                                                 "them; remove some, or use a larger heap"
                      : cause == Cause::neighbor
                          ? "the addresses behind the heap are taken by somebody else; close that heap, or move this one (`taiyen rebase`)"
                          : "the system refuses more memory; raise its limits";
    constexpr std::size_t told_max = 200;  // bytes of the heap's name
    const bool is_cut = heap.size() > told_max;
    std::string_view told = is_cut ? heap.substr(heap.size() - told_max) : heap;
    while (is_cut && !told.empty() && (static_cast<unsigned char>(told.front()) & 0xc0U) == 0x80)
        told.remove_prefix(1);  // within a character of UTF-8
    std::snprintf(text_, sizeof text_, "%s%.*s%sheap full: wanted %zu bytes, largest free block %zu: %s", is_cut ? "…" : "",
                  static_cast<int>(told.size()), told.data() == nullptr ? "" : told.data(), heap.empty() ? "" : ": ", wanted_bytes,
                  largest_free_bytes, why);
}
HeapFull::HeapFull(const HeapFull&) noexcept = default;
HeapFull& HeapFull::operator=(const HeapFull&) noexcept = default;
HeapFull::~HeapFull() = default;

}  // namespace taiyen
