#pragma once
/// A target in memory that is away, loses acknowledgements and frames, or is changed behind everybody's back, as a test says.

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/replicate/replication_target.hpp>

namespace taiyen::replicate::test {

class PretendedTarget final : public ReplicationTarget {
public:
    enum class Fate { works, away, loses_answer };
    /// Asked at each append, outside the lock; empty: it works.
    std::function<Fate(std::uint64_t number)> fate;

    std::string name() const override { return "pretended"; }
    Range range() override {
        const std::lock_guard lock(mutex_);
        return {first_, frames_.empty() ? last_ : frames_.rbegin()->first};
    }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override {
        const Fate what = fate ? fate(number) : Fate::works;
        if (what == Fate::away) throw Error(errc::io_error, "pretended", "it is away");
        const std::lock_guard lock(mutex_);
        std::vector<std::byte> bytes(frame.begin(), frame.end());
        bool is_there = false;
        if (const auto found = frames_.find(number); found != frames_.end()) {
            is_there = found->second == bytes;
        } else if (number == last_ + 1) {
            frames_.emplace(number, std::move(bytes));
            last_ = number;
            is_there = true;
        }
        if (what == Fate::loses_answer) throw Error(errc::io_error, "pretended", "the answer is lost");
        return is_there;
    }
    std::vector<std::byte> read(std::uint64_t number) override {
        const std::lock_guard lock(mutex_);
        const auto found = frames_.find(number);
        if (found == frames_.end()) throw Error(errc::not_found, "pretended", "frame " + std::to_string(number) + " is not there");
        return found->second;
    }
    void trim(std::uint64_t first) override {
        const std::lock_guard lock(mutex_);
        if (first <= first_) return;
        first_ = first;
        frames_.erase(frames_.begin(), frames_.lower_bound(first));
    }

    // Behind everybody's back.
    std::map<std::uint64_t, std::vector<std::byte>> frames() const {
        const std::lock_guard lock(mutex_);
        return frames_;
    }
    void put(std::uint64_t number, std::vector<std::byte> frame) {
        const std::lock_guard lock(mutex_);
        frames_[number] = std::move(frame);
        last_ = std::max(last_, number);
    }
    void replace(std::map<std::uint64_t, std::vector<std::byte>> frames) {
        const std::lock_guard lock(mutex_);
        frames_ = std::move(frames);
        first_ = frames_.empty() ? 1 : frames_.begin()->first;
        last_ = frames_.empty() ? 0 : frames_.rbegin()->first;
    }
    void lose_from(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        frames_.erase(frames_.lower_bound(number), frames_.end());
        last_ = number - 1;
    }
    void lose(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        frames_.erase(number);
    }

private:
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::vector<std::byte>> frames_;
    std::uint64_t first_ = 1;
    std::uint64_t last_ = 0;
};

}  // namespace taiyen::replicate::test
