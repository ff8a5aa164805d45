#pragma once
/// Two heaps of a group, what is counted in them, and frames that are older than they are.

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <taiyen/taiyen.hpp>

#include "replicate/cutter.hpp"
#include "replicate/replicated_heap.hpp"

namespace grouped {

constexpr unsigned threads_max = 4;
/// How often each thread has committed.
struct Counts {
    std::array<std::uint64_t, threads_max> of{};
};

}  // namespace grouped

namespace taiyen::replicate::test {

using grouped::Counts;
using grouped::threads_max;

/// Two heaps. What is counted in the first one is counted in the second one then.
struct GroupFixture {
    ScratchDirectory directory;
    PersistentOptions options = [] {
        PersistentOptions options;
        options.capacity = std::size_t{16} << 20U;
        options.log_capacity = std::size_t{256} << 10U;
        return options;
    }();
    std::map<std::string, std::shared_ptr<PretendedTarget>> targets{{"first", std::make_shared<PretendedTarget>()},
                                                                    {"second", std::make_shared<PretendedTarget>()}};
    std::shared_ptr<PretendedTarget> place = std::make_shared<PretendedTarget>();
    std::optional<TransactionalHeap> first{std::in_place, create_only, directory / "first.tyn", options};
    std::optional<TransactionalHeap> second{std::in_place, create_only, directory / "second.tyn", options};
    std::optional<Replication> first_sent{std::in_place, *first, targets["first"], quick()};
    std::optional<Replication> second_sent{std::in_place, *second, targets["second"], quick()};
    std::optional<ReplicationGroup> group;
    Quiet quiet;
    int restored = 0;

    static void count(TransactionalHeap& heap, unsigned thread) {
        Transaction transaction(heap);
        ++heap.find_or_construct<Counts>("counts").of[thread];
        transaction.commit();
    }
    void count_once(unsigned thread = 0) {
        count(*first, thread);
        count(*second, thread);
    }
    ReplicationGroup& make(const GroupOptions& how = {}) {
        group.emplace(place, how);
        group->add("first", *first, *first_sent);
        group->add("second", *second, *second_sent);
        return *group;
    }
    void close() {
        group.reset();
        first_sent.reset();
        second_sent.reset();
        first.reset();
        second.reset();
    }
    /// Requires: closed.
    void open() {
        first.emplace(open_only, directory / "first.tyn", options);
        second.emplace(open_only, directory / "second.tyn", options);
        first_sent.emplace(*first, targets["first"], quick());
        second_sent.emplace(*second, targets["second"], quick());
    }
    std::function<std::shared_ptr<ReplicationTarget>(const std::string&)> where() {
        return [this](const std::string& name) { return targets.at(name); };
    }
    struct Found {
        Counts first;
        Counts second;
        GroupCut cut;
    };
    /// Requires: closed.
    Found restore(const GroupRestoreOptions& how = {}) {
        const std::filesystem::path folder = directory / std::to_string(++restored);
        std::filesystem::create_directory(folder);
        Found found;
        found.cut = restore_group(*place, where(), folder, how).cut;
        const auto counts_in = [&](const char* name) {
            const ArchiveHeap heap(open_read_only, folder / name);
            const Counts* const counts = heap.find<Counts>("counts");
            return counts == nullptr ? Counts{} : *counts;
        };
        found.first = counts_in("first.tyn");
        found.second = counts_in("second.tyn");
        return found;
    }
    static bool is_of_one_moment(const Found& found) {
        for (unsigned i = 0; i < threads_max; ++i)
            if (found.first.of[i] != found.second.of[i] && found.first.of[i] != found.second.of[i] + 1) return false;
        return true;
    }
};

/// Frames are two hours older to who reads them.
class OldFrames final : public ReplicationTarget {
public:
    explicit OldFrames(std::shared_ptr<PretendedTarget> young) : young_(std::move(young)) {}
    std::string name() const override { return "old"; }
    Range range() override { return young_->range(); }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override { return young_->append(number, frame); }
    std::vector<std::byte> read(std::uint64_t number) override {
        const Frame frame(*young_, number);
        FrameHead head = frame.head();
        head.written_at -= static_cast<std::uint64_t>(std::chrono::microseconds(std::chrono::hours(2)).count());
        const std::array pieces{frame.body()};
        return encode(head, pieces);
    }
    void trim(std::uint64_t first) override { young_->trim(first); }

private:
    const std::shared_ptr<PretendedTarget> young_;
};

}  // namespace taiyen::replicate::test
