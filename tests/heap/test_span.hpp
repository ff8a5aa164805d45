#pragma once
/// A span for tests: anonymous memory aligned to 2 MiB, a host that can refuse, an observer that records.

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "heap/engine.hpp"
#include "seed.hpp"

namespace taiyen::heap::test {

/// Zero memory of `capacity` bytes at a multiple of 2 MiB.
class SpanMemory {
public:
    explicit SpanMemory(ByteCount capacity) : mapped_(capacity + alignment) {
        map_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        BOOST_REQUIRE(map_ != MAP_FAILED);
        base_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(map_), alignment));
    }
    SpanMemory(const SpanMemory&) = delete;
    SpanMemory& operator=(const SpanMemory&) = delete;
    ~SpanMemory() { munmap(map_, mapped_); }
    std::byte* base() const { return base_; }

private:
    static constexpr ByteCount alignment = 2 * 1024 * 1024;
    ByteCount mapped_;
    void* map_ = nullptr;
    std::byte* base_ = nullptr;
};

/// Grants growth up to a limit.
class TestHost : public SpanHost {
public:
    void extend(ByteCount extent_bytes) override {
        if (extent_bytes > limit) throw HeapFull(extent_bytes, 0, HeapFull::Cause::disk);
        BOOST_REQUIRE(extent_bytes >= extent);
        BOOST_REQUIRE(extent_bytes % page_bytes == 0);
        extent = extent_bytes;
        ++extensions;
    }
    ByteCount limit = ~ByteCount{0};
    ByteCount extent = 0;
    unsigned extensions = 0;
};

/// Keeps what was announced since the last `clear`.
class TestObserver : public WriteObserver {
public:
    void about_to_write(HeapOffset offset, ByteCount length) override { announced.push_back({offset, length}); }
    std::vector<FreeRun> announced;
};

/// The first damage as text, "" if there is none.
inline std::string damage_text(const Engine& engine) {
    const auto damages = engine.check(1);
    return damages.empty() ? std::string() : damages.front().what + " at " + std::to_string(damages.front().where.value);
}

}  // namespace taiyen::heap::test
