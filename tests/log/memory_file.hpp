#pragma once
/// A file in memory for the tests of this room: it can tear its k-th durable write and lets a test damage its bytes.

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include <taiyen/base/check.hpp>

#include "io/storage.hpp"

namespace taiyen::log::test {

/// Thrown out of a write that a power cut interrupts.
struct PowerCut {};

class MemoryFile final : public io::File {
public:
    std::vector<std::byte> bytes;

    /// The durable write number `write` (0: the next one) stores only the sectors for which `keep(sector)` is true, then the power is cut.
    void cut_power(std::uint64_t write, std::function<bool(std::uint64_t)> keep) {
        cut_at_ = durable_writes + write;
        keep_ = std::move(keep);
        armed_ = true;
    }
    void restore_power() { armed_ = off_ = false; }

    std::uint64_t durable_writes = 0;
    std::uint64_t buffered_writes = 0;
    std::uint64_t syncs = 0;
    mutable std::uint64_t reads = 0;

    const std::filesystem::path& path() const override { return path_; }
    io::FileInfo info() const override {
        io::FileInfo info;
        info.size_bytes = bytes.size();
        return info;
    }
    ByteCount read(std::span<std::byte> to, std::uint64_t offset) const override {
        ++reads;
        if (offset >= bytes.size()) return 0;
        const ByteCount count = std::min<ByteCount>(to.size(), bytes.size() - offset);
        std::memcpy(to.data(), bytes.data() + offset, count);
        return count;
    }
    ByteCount read_direct(std::span<std::byte> to, std::uint64_t offset) const override {
        require_aligned(to.data(), to.size(), offset);
        return read(to, offset);
    }
    void write(std::span<const std::byte> from, std::uint64_t offset) override {
        ++buffered_writes;
        require_power();
        store(from, offset);
    }
    void write_durable(std::span<const std::byte> from, std::uint64_t offset) override {
        require_aligned(from.data(), from.size(), offset);
        require_power();
        if (armed_ && durable_writes++ == cut_at_) {
            for (ByteCount at = 0; at < from.size(); at += io::sector_bytes)
                if (keep_(at / io::sector_bytes)) store(from.subspan(at, io::sector_bytes), offset + at);
            off_ = true;
            throw PowerCut{};
        }
        durable_writes += armed_ ? 0 : 1;
        store(from, offset);
    }
    void sync() override {
        require_power();
        ++syncs;
    }
    void allocate(std::uint64_t offset, ByteCount length) override { bytes.resize(std::max<std::size_t>(bytes.size(), offset + length)); }
    void punch(std::uint64_t, ByteCount) override { unused(); }
    std::vector<Extent> data_extents(std::uint64_t, ByteCount) const override { return {}; }
    void resize(ByteCount size) override { bytes.resize(size); }
    bool try_lock(io::Lock) override { return true; }
    void map_private(void*, ByteCount, std::uint64_t, io::Protection) const override { unused(); }

private:
    static void unused() { TAIYEN_CHECK(false); }
    static void require_aligned(const std::byte* memory, ByteCount length, std::uint64_t offset) {
        TAIYEN_CHECK(reinterpret_cast<std::uintptr_t>(memory) % io::direct_alignment == 0);
        TAIYEN_CHECK(length % io::direct_alignment == 0 && offset % io::direct_alignment == 0);
    }
    void require_power() const {
        if (off_) throw PowerCut{};
    }
    void store(std::span<const std::byte> from, std::uint64_t offset) {
        TAIYEN_CHECK(offset + from.size() <= bytes.size());
        std::memcpy(bytes.data() + offset, from.data(), from.size());
    }

    std::filesystem::path path_ = "drawing.tyn.journal";
    bool armed_ = false;
    bool off_ = false;
    std::uint64_t cut_at_ = 0;
    std::function<bool(std::uint64_t)> keep_;
};

}  // namespace taiyen::log::test
