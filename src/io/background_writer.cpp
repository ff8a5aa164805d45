#include "io/background_writer.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace taiyen::io {

BackgroundWriter::~BackgroundWriter() {
    {
        const std::lock_guard lock(mutex_);
        full_.clear();
    }
    stop();
}

void BackgroundWriter::append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        if (filling_.size() == 0) filling_ = AlignedBuffer(piece_bytes);
        const ByteCount part = std::min(bytes.size(), piece_bytes - filled_);
        std::memcpy(filling_.data() + filled_, bytes.data(), part);
        filled_ += part;
        bytes = bytes.subspan(part);
        if (filled_ == piece_bytes) pass_on();
    }
}

/// False: there is none, nor will be.
bool BackgroundWriter::has_thread() {
    if (thread_.joinable() || !with_thread_) return with_thread_;
    free_.reserve(pieces);
    while (free_.size() + 1 < pieces) free_.emplace_back(piece_bytes);
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
        with_thread_ = false;
    }
    return with_thread_;
}

template <class Write>
void BackgroundWriter::remembering_failure(Write&& write) {
    try {
        write();
    } catch (...) {
        failure_ = std::current_exception();
        throw;
    }
}

void BackgroundWriter::pass_on() {
    if (!thread_.joinable() && failure_) std::rethrow_exception(failure_);
    if (has_thread()) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !free_.empty(); });
        if (failure_) std::rethrow_exception(failure_);
        full_.push_back(std::move(filling_));
        filling_ = std::move(free_.back());
        free_.pop_back();
        changed_.notify_all();
    } else {
        remembering_failure([&] { write(filling_); });
    }
    filled_ = 0;
}

void BackgroundWriter::write(const AlignedBuffer& piece) {
    file_.write_direct(piece.span(), written_);
    file_.start_writing(written_, piece_bytes);  // where the file system knows no direct writes
    written_ += piece_bytes;
}

void BackgroundWriter::run() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return !full_.empty() || stopping_; });
        if (full_.empty()) return;
        AlignedBuffer piece = std::move(full_.front());
        full_.pop_front();
        lock.unlock();
        std::exception_ptr failure;
        try {
            if (!failure_) write(piece);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        free_.push_back(std::move(piece));  // it has room for all of them
        if (failure) failure_ = failure;
        changed_.notify_all();
    }
}

void BackgroundWriter::stop() noexcept {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

void BackgroundWriter::finish() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
    if (filled_ != 0) remembering_failure([&] { file_.write(filling_.first(filled_), written_); });
    filled_ = 0;
}

}  // namespace taiyen::io
