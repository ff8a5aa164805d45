#pragma once
/// A file whose durable writes can be held back and made to fail, to see what others do meanwhile.

#include <condition_variable>
#include <mutex>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "forwarding_file.hpp"

namespace taiyen::log::test {

class GatedFile final : public ForwardingFile {
public:
    using ForwardingFile::ForwardingFile;

    /// Writes that come from now on wait for `let_go`.
    void hold() {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    void let_go() {
        const std::lock_guard lock(mutex_);
        held_ = false;
        changed_.notify_all();
    }
    /// Lets the write go that waits, or else the next one; those behind it are held as before.
    void let_one_go() {
        const std::lock_guard lock(mutex_);
        ++passes_;
        changed_.notify_all();
    }
    bool holds_a_write() const {
        const std::lock_guard lock(mutex_);
        return waiting_ > 0;
    }
    /// Returns when a write waits.
    void wait_for_a_write() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return waiting_ > 0; });
    }
    /// Writes fail from now on.
    void fail() {
        const std::lock_guard lock(mutex_);
        failing_ = true;
    }
    std::uint64_t writes() const {
        const std::lock_guard lock(mutex_);
        return writes_;
    }

    ByteCount read_direct(std::span<std::byte> into, std::uint64_t offset) const override {
        const std::lock_guard lock(mutex_);  // beside a write
        return ForwardingFile::read_direct(into, offset);
    }
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        std::unique_lock lock(mutex_);
        TAIYEN_CHECK(waiting_ == 0);  // one write in flight
        ++writes_;
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !held_ || passes_ > 0; });
        passes_ -= held_ ? 1 : 0;
        --waiting_;
        if (failing_) throw Error(errc::io_error, path(), offset, "made to fail");
        ForwardingFile::write_durable(bytes, offset);
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool held_ = false;
    bool failing_ = false;
    unsigned passes_ = 0;
    unsigned waiting_ = 0;
    std::uint64_t writes_ = 0;
};

}  // namespace taiyen::log::test
