// What does replication cost those who commit, how far behind is the target, how long does restoring take, and how fast does a follower follow?
//
// Four threads commit small transactions for a second each time: alone, while the heap is replicated to a target in memory, which answers at once, and while it is replicated into a directory of the same disk, in turns.
// Then the heap is restored. Then a follower gets what was committed while it was away, and is promoted. At last frames are sealed and opened.

#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#ifdef TAIYEN_BENCH_SEAL
#include <taiyen/seal/sealed_target.hpp>
#endif
#include <taiyen/taiyen.hpp>

#include "committers.hpp"
#include "harness.hpp"
#include "machine.hpp"

namespace {

std::uint64_t bytes_in(const std::filesystem::path& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

/// Frames in memory.
class MemoryTarget final : public taiyen::ReplicationTarget {
public:
    std::string name() const override { return "memory"; }
    Range range() override {
        const std::lock_guard lock(mutex_);
        return {first_, first_ + frames_.size() - 1};
    }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override {
        const std::lock_guard lock(mutex_);
        if (number != first_ + frames_.size()) return false;
        frames_.emplace_back(frame.begin(), frame.end());
        bytes_ += frame.size();
        return true;
    }
    std::vector<std::byte> read(std::uint64_t number) override {
        const std::lock_guard lock(mutex_);
        if (number < first_ || number - first_ >= frames_.size()) throw taiyen::Error(taiyen::errc::not_found, "memory", "it was trimmed");
        return frames_[number - first_];
    }
    void trim(std::uint64_t first) override {
        const std::lock_guard lock(mutex_);
        for (; first_ < first; ++first_) frames_.pop_front();
    }
    std::uint64_t bytes() const {
        const std::lock_guard lock(mutex_);
        return bytes_;
    }

private:
    mutable std::mutex mutex_;
    std::deque<std::vector<std::byte>> frames_;
    std::uint64_t first_ = 1;
    std::uint64_t bytes_ = 0;
};

taiyen::PersistentOptions options_of(taiyen::Durability durability) {
    taiyen::PersistentOptions how;
    how.capture = taiyen::Capture::declared;
    how.durability = durability;
    return how;
}

void wait_for_all(const taiyen::TransactionalHeap& heap, const taiyen::Replication& replication) {
    if (!replication.wait_replicated(heap.last_durable(), std::chrono::minutes(10))) throw std::runtime_error("the target doesn't get it");
}

void commits_beside(const bench::Options& options, const std::filesystem::path& folder, taiyen::Durability durability, std::size_t mebibytes,
                    std::chrono::milliseconds time) {
    const bool waits = durability == taiyen::Durability::sync;
    const std::filesystem::path frames = folder / (waits ? "sync" : "async");
    std::filesystem::create_directory(frames);
    const auto directory = std::make_shared<taiyen::DirectoryTarget>(frames);
    const std::filesystem::path path = folder / (waits ? "sync.tyn" : "async.tyn");
    std::optional<taiyen::TransactionalHeap> heap(std::in_place, taiyen::create_only, path, options_of(durability));
    bench::Counted& counters = bench::make_counted(*heap, mebibytes);
    bench::commits(*heap, counters, time);  // warm
    bench::Samples behind;
    bench::Samples catching_up;
    const auto alone = [&] { return bench::commits(*heap, counters, time); };
    const auto to_memory = [&] {
        taiyen::Replication replication(*heap, std::make_shared<MemoryTarget>());  // each time a new target, and all pages before the time begins
        return alone();
    };
    const auto to_directory = [&] {
        const std::filesystem::path own = frames / std::to_string(behind.size());
        std::filesystem::create_directory(own);
        taiyen::Replication replication(*heap, std::make_shared<taiyen::DirectoryTarget>(own));
        const double figure = alone();
        behind.add(static_cast<double>(replication.status().behind));
        catching_up.add(bench::microseconds_of([&] { wait_for_all(*heap, replication); }) / 1e3);
        replication.stop();
        std::filesystem::remove_all(own);
        return figure;
    };
    const std::vector<bench::Samples> samples =
        bench::interleave(options.rounds(), {{"alone", alone}, {"to memory", to_memory}, {"into a directory", to_directory}});
    std::printf("%s, a heap of %zu MiB\n", waits ? "Each commit waits until it is durable" : "Commits that nobody waits for", mebibytes);
    bench::Table table({"", "commits per second", "of those alone"});
    table.row({"alone", bench::spread(samples[0], 0), "1"});
    table.row({"replicated to a target that answers at once", bench::spread(samples[1], 0), bench::spread(bench::ratio(samples[1], samples[0]), 3)});
    table.row({"replicated into a directory of the same disk", bench::spread(samples[2], 0), bench::spread(bench::ratio(samples[2], samples[0]), 3)});
    table.print();
    std::printf("into the directory: transactions behind when they stopped: %s; sent %s ms after somebody asked\n", bench::spread(behind, 0).c_str(),
                bench::spread(catching_up, 1).c_str());
    {
        taiyen::Replication replication(*heap, directory);
        bench::commits(*heap, counters, time);
        wait_for_all(*heap, replication);
    }
    heap->close();
    heap.reset();
    const double microseconds = bench::microseconds_of([&] { (void)taiyen::restore(*directory, folder / "restored.tyn"); });
    std::printf("restored in %.2f s; the directory has %.2f GB, the heap %.2f GB\n\n", microseconds / 1e6,
                static_cast<double>(bytes_in(frames)) / 1e9, static_cast<double>(std::filesystem::file_size(folder / "restored.tyn")) / 1e9);
    std::filesystem::remove(folder / "restored.tyn");
    std::filesystem::remove_all(frames);
}

void following(const bench::Options& options, const std::filesystem::path& folder, std::size_t mebibytes, std::chrono::milliseconds time) {
    taiyen::PersistentOptions how = options_of(taiyen::Durability::async);
    how.position_independent = true;  // both are open in this process
    const auto target = std::make_shared<MemoryTarget>();
    taiyen::TransactionalHeap heap(taiyen::create_only, folder / "followed.tyn", how);
    bench::Counted& counters = bench::make_counted(heap, mebibytes);
    taiyen::Replication replication(heap, target);
    taiyen::FollowerOptions follower_options;
    follower_options.poll = std::chrono::milliseconds(1);
    bench::Samples megabytes;
    bench::Samples transactions;
    bench::Samples shown;
    bench::Samples promoted;
    const std::filesystem::path path = folder / "follower.tyn";
    std::optional<taiyen::Follower> follower(std::in_place, target, path, follower_options);
    for (int round = 0; round < options.rounds(); ++round) {
        follower.reset();
        const std::uint64_t bytes_before = target->bytes();
        const taiyen::Serial before = heap.last_durable();
        bench::commits(heap, counters, time);
        heap.wait_durable(taiyen::ReadLock(heap).serial());
        wait_for_all(heap, replication);
        const taiyen::Serial newest = heap.last_durable();
        follower.emplace(target, path, follower_options);
        const double microseconds = bench::microseconds_of([&] {
            if (!follower->wait_for(newest, std::chrono::minutes(10))) throw std::runtime_error("the follower doesn't get it");
        });
        megabytes.add(static_cast<double>(target->bytes() - bytes_before) / microseconds);
        transactions.add(static_cast<double>(newest.value - before.value) / microseconds * 1e6);
        bench::Random random(static_cast<std::uint64_t>(round) + 1);
        shown.add(bench::microseconds_of([&] {
            bench::commit_one(heap, counters, 0, random);
            const taiyen::Serial last = taiyen::ReadLock(heap).serial();
            (void)replication.wait_replicated(last, std::chrono::minutes(1));
            (void)follower->wait_for(last, std::chrono::minutes(1));
        }));
    }
    replication.stop();
    promoted.add(bench::microseconds_of([&] {
                     taiyen::TransactionalHeap now = std::move(*follower).promote(how);
                     now.close();
                 }) /
                 1e3);
    std::printf("A follower in the same process, a heap of %zu MiB\n", mebibytes);
    bench::Table table({"", ""});
    table.row({"gets what was committed while it was away, MB of frames per second", bench::spread(megabytes, 0)});
    table.row({"… transactions per second", bench::spread(transactions, 0)});
    table.row({"from the beginning of a commit until it is shown there, microseconds", bench::spread(shown, 0)});
    table.row({"promoted and closed, milliseconds", bench::spread(promoted, 1)});
    table.print();
}

#ifdef TAIYEN_BENCH_SEAL
void sealing(const bench::Options& options) {
    const auto target = std::make_shared<MemoryTarget>();
    const std::vector<taiyen::SealingKey> keys(1);
    taiyen::SealedTarget sealed(target, keys);
    const std::vector<std::byte> frame(std::size_t{1} << 20U, std::byte{7});
    bench::Samples plain;
    bench::Samples appended;
    bench::Samples read;
    std::uint64_t number = 0;
    const auto gigabytes_per_second = [&](auto&& call) {
        constexpr int times = 100;
        return times * static_cast<double>(frame.size()) / bench::microseconds_of([&] {
                   for (int i = 0; i < times; ++i) call();
               }) /
               1e3;
    };
    for (int round = 0; round < options.rounds(); ++round) {
        plain.add(gigabytes_per_second([&] { (void)target->append(++number, frame); }));
        appended.add(gigabytes_per_second([&] { (void)sealed.append(++number, frame); }));
        read.add(gigabytes_per_second([&] { (void)sealed.read(number); }));
        target->trim(number);
    }
    std::printf("Frames of 1 MiB, into memory\n");
    bench::Table table({"", "GB/s"});
    table.row({"appended as they are", bench::spread(plain, 2)});
    table.row({"sealed and appended", bench::spread(appended, 2)});
    table.row({"read and opened", bench::spread(read, 2)});
    table.print();
}
#endif

int run(const bench::Options& options) {
    bench::print_head(options, "A heap that is replicated, beside four threads that commit");
    const bench::Folder folder(options.folder());
    const std::size_t mebibytes = options.quick() ? 32 : options.number("--mebibytes");
    const std::chrono::milliseconds time(options.quick() ? 200 : options.number("--milliseconds"));
    for (const taiyen::Durability durability : {taiyen::Durability::sync, taiyen::Durability::async})
        commits_beside(options, folder / ".", durability, mebibytes, time);
    following(options, folder / ".", mebibytes, time);
#ifdef TAIYEN_BENCH_SEAL
    sealing(options);
#else
    std::printf("Built without libsodium: no frame was sealed.\n");
#endif
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(
            argc, argv, "What does replication cost those who commit, how far behind is the target, and how fast does a follower follow?", 11,
            bench::Priority::normal, {{"--mebibytes", "128", "of the heap"}, {"--milliseconds", "1000", "of each round"}}, bench::Processors::all);
        return run(options);
    });
}
