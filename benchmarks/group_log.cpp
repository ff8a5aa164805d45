// What does a durable commit cost in the log alone? Beside the bare direct synchronous write of 4 KiB, by threads that commit at once, and without waiting; and how fast is a log read again?

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/uuid.hpp"
#include "harness.hpp"
#include "io/storage.hpp"
#include "log/group_log.hpp"
#include "machine.hpp"

namespace {

using namespace taiyen;
using log::GroupLog;
using log::Ring;

constexpr std::size_t record_bytes = 150;

/// A ring file of its own, with a group log on it.
class Log {
public:
    Log(const std::filesystem::path& path, ByteCount capacity, const GroupLog::Options& options) : file_(io::posix_storage().create(path)) {
        identity_.ring = random_uuid();
        identity_.heap = random_uuid();
        identity_.capacity_bytes = capacity;
        Ring::format(*file_, identity_);
        start_ = {Epoch{random_u64()}, 0, 1, random_u64()};
        log_ = std::make_unique<GroupLog>(std::make_unique<Ring>(file_, identity_, start_, 0), Serial{0}, options);
        log_->on_pressure = [this] {
            if (releases_) log_->release(log_->durable_point().next.position);
        };
    }
    /// One record under the writers' lock.
    Serial append(std::span<const std::byte> record) {
        const std::lock_guard lock(writer_);
        const Serial serial{log_->appended().value + 1};
        log_->append(serial, {&record, 1});
        return serial;
    }
    GroupLog& operator*() { return *log_; }
    GroupLog* operator->() { return log_.get(); }
    void keep_everything() { releases_ = false; }
    /// Microseconds for a scan from the beginning, and the bytes of the ring that it covered.
    std::pair<double, std::uint64_t> scan(std::uint64_t& records) {
        records = 0;
        std::uint64_t end = 0;
        const double time = bench::microseconds_of([&] {
            const auto result = Ring::scan(*file_, identity_, start_, [&](const log::Record& group) {
                log::for_each_in_group(group, [&](Serial, std::span<const std::byte>) { ++records; });
                return true;
            });
            end = result.next.position;
        });
        return {time, end - start_.position};
    }

private:
    std::shared_ptr<io::File> file_;
    log::RingIdentity identity_;
    log::RingStart start_;
    std::mutex writer_;
    bool releases_ = true;
    std::unique_ptr<GroupLog> log_;
};

const std::vector<std::byte> record(record_bytes, std::byte{0x5a});

/// Microseconds per commit of all threads together.
double commit(Log& log, unsigned threads, std::size_t commits) {
    std::atomic<unsigned> missing{threads};
    std::atomic<bool> go{false};
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i) {
        running.emplace_back([&] {
            --missing;
            while (!go) std::this_thread::yield();
            for (std::size_t k = 0; k < commits / threads; ++k) log->wait_durable(log.append(record));
        });
    }
    while (missing != 0) std::this_thread::yield();
    return bench::microseconds_of([&] {
               go = true;
               for (std::thread& thread : running) thread.join();
           }) /
           static_cast<double>(commits / threads * threads);
}

int run(const bench::Options& options) {
    bench::print_head(options, "Group commit: records of 150 bytes");
    const bench::Folder folder(options.folder());
    const std::size_t commits = options.quick() ? 200 : 1'000;
    const ByteCount capacity = 64_MiB;

    bench::DirectFile bare(folder / "bare", capacity);
    Log sync(folder / "sync", capacity, {});
    Log async(folder / "async", capacity, {.flusher = true});
    bench::settle(folder / "settle");

    std::vector<bench::Contender> contenders;
    contenders.push_back({"bare write of 4 KiB", [&] {
                              return bench::microseconds_of([&] {
                                         for (std::size_t i = 0; i < commits; ++i) bare.write(4096);
                                     }) /
                                     static_cast<double>(commits);
                          }});
    contenders.push_back({"one thread", [&] {
                              return bench::microseconds_of([&] {
                                         for (std::size_t i = 0; i < commits; ++i) sync->wait_durable(sync.append(record));
                                     }) /
                                     static_cast<double>(commits);
                          }});
    for (const unsigned threads : {2U, 4U, 8U})
        contenders.push_back({std::to_string(threads) + " threads", [&, threads] { return commit(sync, threads, commits); }});
    double oldest = 0;  // of what was not durable when `append` returned
    std::uint64_t async_bytes = 0;
    std::uint64_t async_records = 0;
    contenders.push_back({"not waiting", [&] {
                              const std::size_t count = commits * 200;
                              std::vector<std::chrono::steady_clock::time_point> times(count);
                              const std::uint64_t first = async->appended().value + 1;
                              const std::uint64_t position = async->durable_point().next.position;
                              const double time = bench::microseconds_of([&] {
                                  for (std::size_t i = 0; i < count; ++i) {
                                      times[i] = std::chrono::steady_clock::now();
                                      async.append(record);
                                      if (i % 64 == 0) {
                                          const auto now = std::chrono::steady_clock::now();
                                          if (const std::uint64_t next = async->durable().value + 1 - first; next <= i)
                                              oldest = std::max(oldest, std::chrono::duration<double, std::micro>(now - times[next]).count());
                                      }
                                  }
                                  async->wait_durable(async->appended());
                              });
                              async_bytes += async->durable_point().next.position - position;
                              async_records += count;
                              return time / static_cast<double>(count);
                          }});

    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({"contender", "µs per commit", "÷ bare write", "rate ÷ one thread"});
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        table.row({contenders[i].name, bench::spread(samples[i], 2), bench::spread(bench::ratio(samples[i], samples[0]), 3),
                   bench::spread(bench::ratio(samples[1], samples[i]), 2)});
    }
    table.print();
    std::printf("log bytes per record of %zu: 4096 if one thread waits for each, %.0f if nobody waits\n", record_bytes,
                static_cast<double>(async_bytes) / static_cast<double>(async_records));
    std::printf("oldest record not durable when a later append returned: %.0f µs (window: 10000)\n\n", oldest);

    // Reading: the ring is filled once for each size of group.
    bench::Table reading({"records per group", "log, MiB", "records", "MB of log per second"});
    for (const std::uint64_t per_group : {1U, 16U, 256U, 4096U}) {
        Log log(folder / ("scan-" + std::to_string(per_group)), capacity, {});
        log.keep_everything();
        std::vector<std::byte> large(record_bytes);
        for (std::uint64_t i = 1; log->used() < capacity - 2_MiB && (per_group > 1 || log->used() < 16_MiB); ++i) {
            const Serial serial = log.append(large);
            if (i % per_group == 0) log->wait_durable(serial);
        }
        log->wait_durable(log->appended());
        bench::Samples rate;
        std::uint64_t records = 0;
        std::uint64_t bytes = 0;
        for (int round = 0; round < options.rounds(); ++round) {
            const auto [time, covered] = log.scan(records);
            bytes = covered;
            rate.add(static_cast<double>(covered) / time);
        }
        reading.row(
            {std::to_string(per_group), bench::fixed(static_cast<double>(bytes) / (1 << 20)), std::to_string(records), bench::spread(rate, 0)});
    }
    reading.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "What does a durable commit cost in the log alone, and how fast is a log read again?", 9,
                                  bench::Priority::real_time, {}, bench::Processors::all));
    });
}
