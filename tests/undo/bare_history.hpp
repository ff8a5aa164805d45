#pragma once
/// Histories on a bare span of bytes, and their bytes changed with the right checksums.

#include "undo/history.hpp"

#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"

namespace taiyen::undo::test {

/// Grows on demand, and refuses to beyond a limit.
class TestMemory final : public HistoryMemory {
public:
    explicit TestMemory(ByteCount capacity, ByteCount limit = ~ByteCount{0}) : bytes_(capacity), capacity_(capacity), limit_(limit) {}
    std::byte* base() override { return bytes_.data(); }
    ByteCount bytes() const override { return used_; }
    ByteCount capacity() const override { return capacity_; }
    void extend(ByteCount bytes) override {
        if (bytes > limit_) throw HeapFull(bytes, 0, HeapFull::Cause::disk);
        used_ = std::max(used_, bytes);
    }

private:
    std::vector<std::byte> bytes_;
    ByteCount capacity_;
    ByteCount limit_;
    ByteCount used_ = 0;
};

inline change::ChangeSet changes(std::mt19937_64& random, std::size_t bytes_max) {
    change::ChangeSet set;
    const std::size_t bytes = 1 + random() % bytes_max;
    std::vector<std::byte> before(bytes);
    std::vector<std::byte> after(bytes);
    for (auto& byte : before) byte = static_cast<std::byte>(random());
    for (auto& byte : after) byte = static_cast<std::byte>(random());
    set.add_bytes({random() % 1000}, before, after);
    return set;
}

inline bool append(UndoHistory& history, const change::ChangeSet& set, std::string_view name) {
    const Piece piece{set.view().bytes(), false};
    return history.append({.name = name, .pieces = std::span(&piece, 1)});
}

inline std::uint64_t word(const std::byte* at) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
}

inline void put(std::byte* at, std::uint64_t value) { std::memcpy(at, &value, sizeof value); }

/// Gives a changed header the checksum that belongs to it.
inline void seal_header(std::byte* history) {
    put(history + offsetof(layout::HistoryHeader, checksum), checksum({history, offsetof(layout::HistoryHeader, checksum)}, layout::header_magic));
}

/// The same for the head of the step there, as far as its name lies within what there is.
inline void seal_head(std::byte* history, std::uint64_t step) {
    std::byte* const head = history + step;
    std::uint32_t name = 0;
    std::memcpy(&name, head + offsetof(layout::StepHead, name_bytes), sizeof name);
    const std::uint64_t sum = checksum({head, offsetof(layout::StepHead, head_checksum)}, step);
    put(head + offsetof(layout::StepHead, head_checksum), checksum({head + sizeof(layout::StepHead), name}, sum));
}

/// The same for the segments of the step there, and its head.
inline void seal_body(std::byte* history, std::uint64_t step) {
    std::byte* const head = history + step;
    std::uint32_t name = 0;
    std::memcpy(&name, head + offsetof(layout::StepHead, name_bytes), sizeof name);
    const std::uint64_t front = sizeof(layout::StepHead) + round_up(name, 8);
    const std::uint64_t size = word(head + offsetof(layout::StepHead, size));
    put(head + offsetof(layout::StepHead, body_checksum), checksum({head + front, size - front}, word(head + offsetof(layout::StepHead, id))));
    seal_head(history, step);
}

}  // namespace taiyen::undo::test
