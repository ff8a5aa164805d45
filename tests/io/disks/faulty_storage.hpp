#pragma once
/// Makes the k-th matching call fail, so that a test can sweep k = 1, 2, 3 … until no fault fires any more.
///
/// (F1) A failing write may first bring through a prefix (`Fault::short_bytes`).
/// (F2) A failing sync reports its error once; the disk below, if it can act it out (`LosesUnsynced`), loses what was not synced, and the next sync
///      succeeds unless the fault is sticky.
/// (F3) Everything else that fails has done nothing.
/// EINTR and zero-length transfers lie below the seam: a back end never lets them surface, so they are not injected here.
/// Thread rule: as `Storage`; `arm` and `disarm` need an external lock.

#include <atomic>
#include <cstdint>
#include <mutex>

#include "io/storage.hpp"

namespace taiyen::io {

enum class Call : std::uint32_t {
    find = 1U << 0U,
    open = 1U << 1U,
    create = 1U << 2U,
    create_unnamed = 1U << 3U,
    publish = 1U << 4U,
    rename = 1U << 5U,
    remove = 1U << 6U,
    sync_directory = 1U << 7U,
    info = 1U << 8U,
    read = 1U << 9U,
    read_direct = 1U << 10U,
    write = 1U << 11U,
    write_durable = 1U << 12U,
    sync = 1U << 13U,
    allocate = 1U << 14U,
    punch = 1U << 15U,
    data_extents = 1U << 16U,
    resize = 1U << 17U,
    lock = 1U << 18U,
    map = 1U << 19U,
    any = (1U << 20U) - 1U
};
constexpr Call operator|(Call a, Call b) { return static_cast<Call>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b)); }
constexpr bool includes(Call set, Call call) { return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(call)) != 0; }

struct Fault {
    std::uint64_t at = 1;  ///< which matching call fails, from 1
    int error = 5;         ///< an errno value; 5: EIO
    bool sticky = false;   ///< all matching calls after it fail, too
    Call calls = Call::any;
    ByteCount short_bytes = 0;  ///< of a failing write this much comes through, of a failing allocation then the first page
};

class FaultyStorage final : public Storage {
public:
    explicit FaultyStorage(Storage& inner) : inner_(inner) {}

    /// Starts counting from 0 with this fault in place.
    void arm(const Fault& fault);
    void disarm();
    /// Matching calls since `arm`, and how many of them failed.
    std::uint64_t calls() const { return calls_; }
    std::uint64_t fired() const { return fired_; }
    /// Bytes that `start_writing` was asked for since `arm`: a hint, which never fails.
    ByteCount begun_bytes() const { return begun_bytes_; }

    std::vector<std::string> list(const std::filesystem::path& directory) override;
    std::optional<FileInfo> find(const std::filesystem::path& path) override;
    std::unique_ptr<File> open(const std::filesystem::path& path, Access access) override;
    std::unique_ptr<File> create(const std::filesystem::path& path) override;
    std::unique_ptr<File> create_unnamed(const std::filesystem::path& directory) override;
    void publish(File& file, const std::filesystem::path& path) override;
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing = Existing::replaced) override;
    bool remove(const std::filesystem::path& path) override;
    void sync_directory(const std::filesystem::path& directory) override;

private:
    friend class FaultyFile;

    /// Whether this call is to fail.
    bool strikes(Call call);
    void may_strike(Call call, const std::filesystem::path& path, std::uint64_t offset);

    Storage& inner_;
    bool armed_ = false;
    Fault fault_;
    std::uint64_t calls_ = 0;
    std::uint64_t fired_ = 0;
    std::atomic<ByteCount> begun_bytes_ = 0;
    std::mutex mutex_;
};

}  // namespace taiyen::io
