#pragma once
/// A heap without files: a HeapCore with an engine over anonymous memory, for tests of everything that needs a heap but no store.

#include <filesystem>
#include <memory>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "heap/core.hpp"

namespace taiyen::heap::test {

/// Its capacity is mapped at once; slots come from the default zone.
class MemoryCore final : public HeapCore, public SpanHost {
public:
    static constexpr ByteCount default_capacity = ByteCount{64} << 20U;

    explicit MemoryCore(ByteCount capacity = default_capacity) : MemoryCore(reserve(capacity), capacity) {}
    ~MemoryCore() override { unregister(); }

    const std::filesystem::path& path() const override { return path_; }
    void check_usable(bool for_reading) const override {
        if (unusable_ != errc{} && (!for_reading || unusable_ == errc::closed)) throw Error(unusable_, path_, "the test says so");
    }
    Engine& engine() override { return *engine_; }

    HeapCore* core() noexcept { return this; }  ///< so that it passes for a heap
    /// Leaves the slot table, as a heap does that is closed while its object goes on.
    void close() { unregister(); }
    /// Every changing call throws this code from now on; errc{} ends it.
    void refuse(errc code) { unusable_ = code; }

private:
    MemoryCore(vm::Reservation reservation, ByteCount capacity)
        : HeapCore(CoreRanges::at(reservation.address(), capacity), reservation.size()), reservation_(std::move(reservation)) {
        vm::map_anonymous(reservation_.data(), capacity);
        Engine::format(reservation_.data(), capacity, *this);
        engine_ = std::make_unique<Engine>(reservation_.data(), capacity, *this);
        complete();
    }
    static vm::Reservation reserve(ByteCount capacity) {
        const ByteCount length = round_up(capacity, slot_bytes);
        const vm::Zone zone = vm::default_zone();
        for (;;) {
            const auto address = vm::find_free(length, slot_bytes, vm::Placement::low, zone.first, zone.last);
            if (!address) throw Error(errc::out_of_address_space, "no room for a test heap");
            try {
                return {*address, length};
            } catch (const Error& error) {
                if (error.code() != errc::address_in_use) throw;  // else another thread was faster
            }
        }
    }
    void extend(ByteCount) override {}

    vm::Reservation reservation_;
    std::filesystem::path path_ = "memory.tyn";
    std::unique_ptr<Engine> engine_;
    errc unusable_{};
};

/// Catches reports (bad frees and the like) while it lives.
class Reports {
public:
    struct Entry {
        errc code;
        const void* address;
    };
    Reports() : before_(set_report_handler(&keep)) { entries().clear(); }
    ~Reports() { set_report_handler(before_); }
    Reports(const Reports&) = delete;
    Reports& operator=(const Reports&) = delete;
    static std::vector<Entry>& entries() {
        static std::vector<Entry> all;
        return all;
    }

private:
    static void keep(const Incident& incident) noexcept { entries().push_back({incident.code, incident.address}); }
    ReportHandler before_;
};

}  // namespace taiyen::heap::test
