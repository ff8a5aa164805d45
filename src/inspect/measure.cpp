#include <taiyen/inspect/measure.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>

#include <taiyen/base/error.hpp>
#include <taiyen/store/archive_heap.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "base/aligned_buffer.hpp"
#include "base/uuid.hpp"
#include "io/storage.hpp"
#include "vm/address_space.hpp"

namespace taiyen {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Removes what begins with its name when it goes.
class OwnFiles {
public:
    explicit OwnFiles(const std::filesystem::path& folder) : stem_(folder / ("taiyen-bench-" + random_uuid().text().substr(0, 8))) {}
    OwnFiles(const OwnFiles&) = delete;
    OwnFiles& operator=(const OwnFiles&) = delete;
    ~OwnFiles() {
        for (const char* name : {"-archive.tyn", "-txn.tyn", "-plain"}) {
            for (const char* suffix : {"", ".data", ".journal", ".log"}) {
                try {
                    io::posix_storage().remove(stem_.string() + name + suffix);
                } catch (const std::exception&) {  // it stays, named after us
                }
            }
        }
    }
    std::filesystem::path archive() const { return stem_.string() + "-archive.tyn"; }
    std::filesystem::path transactional() const { return stem_.string() + "-txn.tyn"; }
    std::filesystem::path plain() const { return stem_.string() + "-plain"; }

private:
    std::filesystem::path stem_;
};

class Measuring {
public:
    Measuring(const std::filesystem::path& folder, const MeasureOptions& options)
        : files_(folder), options_(options), slice_(std::chrono::duration<double>(options.time).count() / parts) {}

    std::vector<Measurement> run() {
        with_archive();
        durable_commits();
        async_commits();
        tell(parts);
        return std::move(found_);
    }

private:
    static constexpr int parts = 8;
    static constexpr std::size_t blocks = 1000;
    static constexpr std::size_t block_bytes = 64;

    void tell(int part) const {
        if (options_.progress) options_.progress(static_cast<std::uint64_t>(part), parts);
    }

    void add_cost(const char* name, const char* what, double value, const char* unit, const char* beside = "", double reference = 0) {
        found_.push_back({name, what, value, unit, beside, reference, reference > 0 && value > 0 ? reference / value : 0});
    }
    void add_rate(const char* name, const char* what, double value, const char* unit, const char* beside = "", double reference = 0) {
        found_.push_back({name, what, value, unit, beside, reference, reference > 0 ? value / reference : 0});
    }

    void with_archive() {
        PersistentOptions options;
        options.capacity = std::max<std::size_t>(std::size_t{1} << 30U, 4 * options_.snapshot_bytes);
        {
            ArchiveHeap heap(create_only, files_.archive(), options);
            allocations(heap);
            auto* const bytes = static_cast<std::byte*>(heap.allocate(options_.snapshot_bytes, page_bytes));
            std::memset(bytes, 1, options_.snapshot_bytes);
            heap.snapshot();
            heap.close();
            archive_block_ = bytes;
        }
        {
            ArchiveHeap heap(open_only, files_.archive(), options);
            first_stores();
            snapshots(heap);
            heap.close();
        }
        reopenings(options);
    }

    /// Nanoseconds for one block, taken and given back, in a window of them.
    template <class Take, class Give>
    double pair_cost(Take take, Give give) const {
        std::array<void*, blocks> window{};
        for (void*& block : window) block = take();
        std::uint64_t pairs = 0;
        const auto begin = Clock::now();
        double spent = 0;
        std::size_t at = 0;
        do {
            for (std::size_t i = 0; i < blocks; ++i) {
                at = (at + 389) % blocks;  // neither first nor last in
                give(window[at]);
                window[at] = take();
            }
            pairs += blocks;
            spent = seconds_since(begin);
        } while (spent < slice_ / 4);
        for (void* const block : window) give(block);
        return spent / static_cast<double>(pairs) * 1e9;
    }

    void allocations(ArchiveHeap& heap) {
        tell(0);
        const double ours = pair_cost([&] { return heap.allocate(block_bytes); }, [&](void* block) { heap.deallocate(block); });
        const double theirs = pair_cost(
            [] {
                void* const block = std::malloc(block_bytes);
                if (block == nullptr) throw std::bad_alloc();
                return block;
            },
            [](void* block) { std::free(block); });
        add_cost("allocate_free", "a block of 64 B, allocated and freed", ours, "ns", "malloc and free", theirs);
    }

    /// Nanoseconds for a store into each page of a range, for the first time.
    static double first_store_cost(std::byte* begin, std::size_t bytes) {
        const auto start = Clock::now();
        for (std::size_t at = 0; at < bytes; at += page_bytes) const_cast<volatile std::byte*>(begin)[at] = std::byte{2};
        return seconds_since(start) / static_cast<double>(bytes / page_bytes) * 1e9;
    }

    void first_stores() {
        tell(1);
        const double ours = first_store_cost(archive_block_, options_.snapshot_bytes);
        const vm::Reservation fresh = vm::Reservation::anywhere(options_.snapshot_bytes);
        vm::map_anonymous(fresh.data(), fresh.size());
        const double theirs = first_store_cost(fresh.data(), fresh.size());
        add_cost("first_store", "the first store into a page since the save", ours, "ns", "into a fresh page of memory", theirs);
    }

    void snapshots(ArchiveHeap& heap) {
        tell(2);
        double best = 0;
        const auto begin = Clock::now();
        const double mebibytes = static_cast<double>(options_.snapshot_bytes) / (1 << 20);
        for (unsigned round = 3; round == 3 || (seconds_since(begin) < slice_ * 1.5 && round < 10); ++round) {
            std::memset(archive_block_, static_cast<int>(round), options_.snapshot_bytes);
            const auto start = Clock::now();
            heap.snapshot();
            best = std::max(best, mebibytes / seconds_since(start));
        }
        tell(3);
        double plain = 0;
        const auto file = io::posix_storage().create(files_.plain());
        file->allocate(0, options_.snapshot_bytes);
        const AlignedBuffer buffer(1_MiB);
        const auto plain_begin = Clock::now();
        for (unsigned round = 0; round == 0 || (seconds_since(plain_begin) < slice_ / 2 && round < 8); ++round) {
            std::memset(buffer.data(), static_cast<int>(round + 1), buffer.size());
            const auto start = Clock::now();
            for (std::size_t at = 0; at < options_.snapshot_bytes; at += buffer.size())
                file->write(buffer.first(std::min<std::size_t>(buffer.size(), options_.snapshot_bytes - at)), at);
            file->sync();
            plain = std::max(plain, mebibytes / seconds_since(start));
        }
        add_rate("snapshot", "a snapshot of changed pages, the best", best, "MiB/s", "plain writes and one sync", plain);
    }

    void reopenings(const PersistentOptions& options) {
        tell(4);
        std::vector<double> times;
        const auto begin = Clock::now();
        do {
            const auto start = Clock::now();
            ArchiveHeap heap(open_only, files_.archive(), options);
            times.push_back(seconds_since(start) * 1e3);
            heap.close();
        } while (times.size() < 50 && seconds_since(begin) < slice_ / 2);
        add_cost("reopen", "opening the heap again, median", median(times), "ms");
    }

    static double median(std::vector<double>& values) {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::nth_element(values.begin(), middle, values.end());
        return *middle;
    }

    static PersistentOptions transactional_options() {
        PersistentOptions options;
        options.capacity = std::size_t{1} << 30U;
        options.log_capacity = std::size_t{16} << 20U;
        return options;
    }

    static void change(std::uint64_t* block, std::uint64_t round) {
        block[round % 512] = round;  // another word of the page each time, as an update does
    }

    void durable_commits() {
        tell(5);
        TransactionalHeap heap(create_only, files_.transactional(), transactional_options());
        {
            Transaction tx(heap);
            block_ = static_cast<std::uint64_t*>(heap.allocate(page_bytes, page_bytes));
            std::memset(block_, 0, page_bytes);
            tx.commit();
        }
        const auto file = io::posix_storage().open(files_.plain(), io::Access::read_write);
        const AlignedBuffer buffer(page_bytes);
        std::vector<double> ours;
        std::vector<double> bare;
        const auto begin = Clock::now();
        // In turns: what else happens to the disk happens to both.
        for (std::uint64_t round = 0; ours.empty() || seconds_since(begin) < 2 * slice_; ++round) {
            for (std::uint64_t i = 0; i < 10; ++i) {
                const auto start = Clock::now();
                Transaction tx(heap);
                change(block_, round * 10 + i);
                tx.commit();
                ours.push_back(seconds_since(start) * 1e6);
            }
            for (std::uint64_t i = 0; i < 10; ++i) {
                const auto start = Clock::now();
                file->write_durable(buffer.span(), (round * 10 + i) * page_bytes % options_.snapshot_bytes);
                bare.push_back(seconds_since(start) * 1e6);
            }
        }
        heap.close();
        const double commit = median(ours);
        add_cost("durable_commit", "a durable commit, median", commit, "us", "a bare 4 KiB O_DSYNC write", median(bare));
        durable_rate_ = commit > 0 ? 1e6 / commit : 0;
    }

    void async_commits() {
        tell(7);
        PersistentOptions options = transactional_options();
        options.durability = Durability::async;
        TransactionalHeap heap(open_only, files_.transactional(), options);
        std::uint64_t commits = 0;
        Serial last{};
        const auto begin = Clock::now();
        do {
            for (int i = 0; i < 100; ++i, ++commits) {
                Transaction tx(heap);
                change(block_, commits);
                last = tx.commit();
            }
        } while (seconds_since(begin) < slice_);
        heap.wait_durable(last);
        const double rate = static_cast<double>(commits) / seconds_since(begin);
        heap.close();
        add_rate("async_commits", "commits with Durability::async, one thread", rate, "per s", "durable ones", durable_rate_);
    }

    OwnFiles files_;
    const MeasureOptions& options_;
    double slice_;  ///< seconds
    std::vector<Measurement> found_;
    std::byte* archive_block_ = nullptr;
    std::uint64_t* block_ = nullptr;
    double durable_rate_ = 0;
};

}  // namespace

std::vector<Measurement> measure(const std::filesystem::path& folder, const MeasureOptions& options) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
        throw Error(errc::not_found, folder, "there is no such folder; name one on the disk to be measured");
    if (options.snapshot_bytes == 0 || options.snapshot_bytes % page_bytes != 0)
        throw Error(errc::invalid_argument, "snapshot_bytes must be a multiple of 4 KiB, and not 0");
    return Measuring(folder, options).run();
}

}  // namespace taiyen
