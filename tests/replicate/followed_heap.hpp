#pragma once
/// A heap that is replicated, and its follower, in one process.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "replicate/replicated_heap.hpp"

namespace followed {

/// Texts by number, in blocks of the heap. It may lie anywhere: what it has is told by how far it lies from here.
struct Texts {
    static constexpr std::size_t count = 64;
    std::int64_t where[count];  ///< 0: none
    std::uint64_t bytes[count];

    char* at(std::size_t key) { return reinterpret_cast<char*>(this) + where[key]; }
    std::string text(std::size_t key) const {
        return where[key] == 0 ? std::string() : std::string(reinterpret_cast<const char*>(this) + where[key], bytes[key]);
    }
    template <class Heap>
    void set(Heap& heap, std::size_t key, const std::string& text) {
        if (where[key] != 0) heap.deallocate(at(key));
        where[key] = 0;
        bytes[key] = text.size();
        if (text.empty()) return;
        auto* const block = static_cast<char*>(heap.allocate(text.size()));
        where[key] = block - reinterpret_cast<char*>(this);
        std::memcpy(block, text.data(), text.size());
    }
};

}  // namespace followed

namespace taiyen::replicate::test {

using followed::Texts;

/// Frames on their way to a follower, as a test says.
class HookedTarget final : public ReplicationTarget {
public:
    explicit HookedTarget(std::shared_ptr<PretendedTarget> inner) : inner_(std::move(inner)) {}
    std::atomic<bool> away{false};
    std::atomic<unsigned> looks{0};                                                    ///< at what is there
    std::function<void(std::uint64_t number, std::vector<std::byte>& frame)> on_read;  ///< set while nobody reads

    std::string name() const override { return "hooked"; }
    Range range() override {
        require_there();
        ++looks;
        return inner_->range();
    }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override {
        require_there();
        return inner_->append(number, frame);
    }
    std::vector<std::byte> read(std::uint64_t number) override {
        require_there();
        std::vector<std::byte> frame = inner_->read(number);
        if (on_read) on_read(number, frame);
        return frame;
    }
    void trim(std::uint64_t first) override { inner_->trim(first); }

private:
    void require_there() const {
        if (away) throw Error(errc::io_error, "hooked", "it is away");
    }
    const std::shared_ptr<PretendedTarget> inner_;
};

/// All of the span. The heap must not change meanwhile.
inline std::vector<std::byte> bytes_of_span(const TransactionalHeap& heap) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.prove({0}, file.image().mapped());
    const auto* const begin = reinterpret_cast<const std::byte*>(file.ranges().durable);
    return {begin, begin + file.image().mapped()};
}

/// The first byte that differs; what one of them hasn't got is zero. -1: none.
inline std::int64_t first_difference(std::vector<std::byte> one, std::vector<std::byte> other) {
    const std::size_t bytes = std::max(one.size(), other.size());
    one.resize(bytes);
    other.resize(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        if (one[i] != other[i]) return static_cast<std::int64_t>(i);
    return -1;
}

/// A heap that may lie anywhere, so that it and its follower are open in one process.
struct FollowedFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    std::filesystem::path follower_path = directory / "follower.tyn";
    PersistentOptions options = [] {
        PersistentOptions options;
        options.capacity = std::size_t{64} << 20U;
        options.log_capacity = std::size_t{256} << 10U;
        options.position_independent = true;
        return options;
    }();
    std::shared_ptr<PretendedTarget> target = std::make_shared<PretendedTarget>();
    std::shared_ptr<HookedTarget> hooked = std::make_shared<HookedTarget>(target);
    std::optional<TransactionalHeap> heap{std::in_place, create_only, path, options};
    std::optional<Replication> replication{std::in_place, *heap, target, quick()};
    std::optional<Follower> follower;

    Serial put(std::uint64_t key, const std::string& value) { return put(*heap, key, value); }
    static Serial put(TransactionalHeap& into, std::uint64_t key, const std::string& value) {
        Transaction transaction(into);
        into.find_or_construct<Texts>("texts").set(into, key, value);
        return transaction.commit();
    }
    Serial erase(std::uint64_t key) { return put(key, ""); }
    static std::string get(const TransactionalHeap& from, std::uint64_t key) {
        const ReadLock lock(from);
        const auto* const texts = from.find<Texts>("texts");
        return texts == nullptr ? std::string() : texts->text(key);
    }
    FollowerOptions how() const {
        FollowerOptions how;
        how.poll = std::chrono::milliseconds(1);
        how.retry = std::chrono::milliseconds(2);
        how.heap = options;
        return how;
    }
    Follower& follow() {
        replicate_all();
        return follower.emplace(target, follower_path, how());
    }
    /// Behind a target that does what the test says.
    Follower& follow_hooked() {
        replicate_all();
        return follower.emplace(hooked, follower_path, how());
    }
    /// It has read every frame.
    void settle() {
        replicate_all();
        const std::uint64_t frames = target->range().last;
        while (follower->status().frames < frames) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    void wait_until_away() const {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (follower->status().state != FollowerState::away) {
            if (std::chrono::steady_clock::now() > end) throw std::runtime_error("the follower is never away");
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    void replicate_all() const {
        if (!replication->wait_replicated(heap->last_durable(), std::chrono::seconds(60))) throw std::runtime_error("the target doesn't get it");
    }
    void reopen() {
        replication.reset();
        heap.reset();
        heap.emplace(open_only, path, options);
        replication.emplace(*heap, target, quick());
    }
    /// Once it has everything: whether it is the heap, byte for byte. Where it isn't.
    std::int64_t difference() {
        const Serial newest = heap->last_durable();
        replicate_all();
        const std::uint64_t frames = target->range().last;
        if (!follower->wait_for(newest, std::chrono::seconds(60))) throw std::runtime_error("the follower doesn't get it");
        while (follower->status().frames < frames) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const ReadLock here(*heap);
        const ReadLock there(follower->heap());
        BOOST_TEST(here.serial().value == there.serial().value);
        return first_difference(bytes_of_span(*heap), bytes_of_span(follower->heap()));
    }
};

}  // namespace taiyen::replicate::test
