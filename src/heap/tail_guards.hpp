#pragma once
/// What a guarded heap file knows of the bytes behind its blocks: where each block that was taken in this process ends, and what must stand there.
///
///     block of the heap:   [ exactly as many bytes as were asked for | canary of 16 bytes | what the engine rounded up ]
///
/// (T1) The canary is part of the block: whoever opens the heap without guards sees a larger block, and blocks without one are left alone.
/// (T2) Capture is told of a canary before it is written, as of metadata.
/// (T3) Where bytes were changed from outside (rollback, undo, redo), a canary that isn't there was never written or was taken back: it is no damage.
/// Thread rule: safe, but for `check`, beside which nobody changes the heap.

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "heap/engine.hpp"

namespace taiyen::heap {

class TailGuards {
public:
    static constexpr ByteCount canary_bytes = 16;
    static constexpr std::byte canary{0xCA};

    /// `path`: of the heap, for reports; `span`: its first byte.
    TailGuards(std::filesystem::path path, const std::byte* span) : path_(std::move(path)), span_(span) {}

    /// Guards a live block, of which the program has asked for so many bytes, and that has room for a canary; `observer`: null: nobody captures. Throws: std::bad_alloc, what the observer throws; then it isn't guarded.
    void admit(const Engine& engine, WriteObserver* observer, void* block, ByteCount bytes);
    /// The block is about to be freed, or to get another size: reports what was written behind it.
    void retire(const Engine& engine, const void* block) noexcept;
    /// Bytes as asked for; nothing: it isn't guarded.
    std::optional<ByteCount> size_of(const void* block) const noexcept;
    /// Looks behind all guarded blocks and reports each that something was written behind, once; returns how many. Complexity: linear in their number.
    std::size_t check(const Engine& engine) noexcept;

private:
    using Tails = std::unordered_map<const std::byte*, ByteCount>;  ///< by block: bytes as asked for

    /// The first byte that isn't the canary's; null: all are.
    static const std::byte* damage(const Tails::value_type& tail) noexcept;
    /// Forgets what is no guarded block any more, if bytes were changed from outside since the last time.
    void sift(const Engine& engine) noexcept;
    /// Requires: the lock is free, since handlers may use the heap.
    void tell(const Tails::value_type& tail) const noexcept;

    const std::filesystem::path path_;
    const std::byte* const span_;
    mutable std::mutex mutex_;
    Tails tails_;
    std::uint64_t changes_seen_ = 0;
};

}  // namespace taiyen::heap
