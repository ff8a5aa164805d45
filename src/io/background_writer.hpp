#pragma once
/// BackgroundWriter: appends to a file past the page cache, on a thread of its own: for much that nobody reads soon, by somebody who has better things to do than to copy it into the page cache and to
/// wait for the device.
///
/// (I1) Bytes go to the file in order, by pieces of a megabyte; what is less than a piece is written by `finish`, on the caller's thread: little needs no thread at all.
/// (I2) What a write threw, the next piece of an `append` throws, and `finish`; nothing is written after it.
/// Durability: none before the file's `sync`, behind `finish`. Memory: three pieces. Thread rule: one thread.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "io/storage.hpp"

namespace taiyen::io {

class BackgroundWriter {
public:
    /// `with_thread`: false: everything is written where it is appended, as where the system has no thread to give.
    explicit BackgroundWriter(File& file, bool with_thread = true) : file_(file), with_thread_(with_thread) {}
    BackgroundWriter(const BackgroundWriter&) = delete;
    BackgroundWriter& operator=(const BackgroundWriter&) = delete;
    /// Waits for what is being written; the rest is dropped.
    ~BackgroundWriter();

    /// Throws: what writing threw; std::bad_alloc.
    void append(std::span<const std::byte> bytes);
    /// On return everything is in the file, and nothing more may be appended. Throws: what writing threw.
    void finish();

private:
    static constexpr ByteCount piece_bytes = 1_MiB;
    static constexpr std::size_t pieces = 3;

    void pass_on();
    void write(const AlignedBuffer& piece);
    /// Without a thread: of this one.
    template <class Write>
    void remembering_failure(Write&& write);
    bool has_thread();
    void run() noexcept;
    void stop() noexcept;

    File& file_;
    std::uint64_t written_ = 0;  ///< bytes; the thread's, as long as there is one
    bool with_thread_;
    AlignedBuffer filling_;
    ByteCount filled_ = 0;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<AlignedBuffer> full_;
    std::vector<AlignedBuffer> free_;
    std::exception_ptr failure_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace taiyen::io
