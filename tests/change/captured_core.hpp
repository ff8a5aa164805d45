#pragma once
/// A heap in anonymous memory whose engine tells a recorder about its writes: what a heap with capture looks like, without files.

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <taiyen/base/error.hpp>

#include "change/recorder.hpp"
#include "heap/core.hpp"

namespace taiyen::change::test {

class CapturedCore final : public heap::HeapCore, public heap::SpanHost, public heap::WriteObserver {
public:
    static constexpr ByteCount default_capacity = ByteCount{16} << 20U;

    /// `address`: where, 0: anywhere. Two heaps that lived one after the other at the same place hold the same bytes after the same program.
    explicit CapturedCore(ByteCount capacity = default_capacity, std::uintptr_t address = 0) : CapturedCore(reserve(capacity, address), capacity) {}
    ~CapturedCore() override {
        recorder_.reset();
        unregister();
    }

    /// Capture begins.
    Recorder& capture(Capture mode, Audit audit = Audit::off, Outside outside = Outside::implicit) {
        recorder_ = Recorder::make(mode, *this, ranges().durable_bytes, audit, outside);
        recorder_->start();
        return *recorder_;
    }
    Recorder& recorder() { return *recorder_; }
    std::byte* base() const { return reinterpret_cast<std::byte*>(ranges().durable); }
    HeapOffset offset_of(const void* address) const { return {static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base())}; }
    std::vector<std::byte> image() const { return {base(), base() + ranges().durable_bytes}; }

    const std::filesystem::path& path() const override { return path_; }
    void check_usable(bool) const override {}
    heap::Engine& engine() override { return *engine_; }
    heap::HeapCore* core() noexcept { return this; }  ///< so that it passes for a heap

private:
    CapturedCore(vm::Reservation reservation, ByteCount capacity)
        : HeapCore(heap::CoreRanges::at(reservation.address(), capacity), reservation.size()), reservation_(std::move(reservation)) {
        vm::map_anonymous(reservation_.data(), capacity);
        heap::Engine::format(reservation_.data(), capacity, *this);
        engine_ = std::make_unique<heap::Engine>(reservation_.data(), capacity, *this, this);
    }
    static vm::Reservation reserve(ByteCount capacity, std::uintptr_t address) {
        const ByteCount length = round_up(capacity, heap::slot_bytes);
        if (address != 0) return {address, length};
        const vm::Zone zone = vm::default_zone();
        const auto found = vm::find_free(length, heap::slot_bytes, vm::Placement::low, zone.first, zone.last);
        if (!found) throw Error(errc::out_of_address_space, "no room for a test heap");
        return {*found, length};
    }
    void extend(ByteCount) override {}
    void about_to_write(HeapOffset offset, ByteCount length) override {
        if (recorder_) recorder_->about_to_write(offset, length);
    }

    vm::Reservation reservation_;
    std::filesystem::path path_ = "memory.tyn";
    std::unique_ptr<heap::Engine> engine_;
    std::unique_ptr<Recorder> recorder_;
};

}  // namespace taiyen::change::test
