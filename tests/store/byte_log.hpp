#pragma once
/// The least that can stand in for transactions: a commit logs the bytes of the span that differ since the last one. With it the store's side of a transactional heap is tried
/// without the rooms above.

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include <taiyen/base/error.hpp>

#include "store/heap_file.hpp"

namespace taiyen::store::test {

/// A group with one transaction: this, then {offset, length, bytes} up to its end.
struct ByteGroup {
    std::uint64_t serial;
    std::uint64_t extent;
};

/// `visit(offset, bytes)` for each range of the group. Throws: Error{corrupt}.
template <class F>
ByteGroup for_each_range(const log::Record& group, F&& visit) {
    ByteGroup head{};
    const std::span<const std::byte> payload(group.payload);
    const auto take = [&](std::size_t& at, std::size_t count) {
        if (count > payload.size() - at) throw Error(errc::corrupt, "a group ends early");
        const auto part = payload.subspan(at, count);
        at += count;
        return part;
    };
    std::size_t at = 0;
    std::memcpy(&head, take(at, sizeof head).data(), sizeof head);
    while (at < payload.size()) {
        std::uint64_t place[2];
        std::memcpy(place, take(at, sizeof place).data(), sizeof place);
        visit(place[0], take(at, place[1]));
    }
    return head;
}

class ByteReplay final : public LogReplay {
public:
    ByteReplay(std::filesystem::path log, ByteCount capacity, Serial contained) : log_(std::move(log)), capacity_(capacity), last_(contained) {}

    void check(const log::Record& group) override {
        const ByteGroup head = for_each_range(group, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
            if (offset + bytes.size() > capacity_) throw Error(errc::corrupt, log_, "a range leads out of the heap");
        });
        if (head.serial != last_.value + 1 || group.number != head.serial)
            throw Error(errc::mismatch, log_, "transaction " + std::to_string(head.serial) + " follows " + std::to_string(last_.value));
        last_ = {head.serial};
        ++transactions_;
    }
    void apply(const log::Record& group, HeapFile& heap) override {
        check(group);
        ByteGroup head{};
        std::memcpy(&head, group.payload.data(), sizeof head);
        heap.extend(head.extent);
        for_each_range(group, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
            std::memcpy(reinterpret_cast<std::byte*>(heap.ranges().durable + offset), bytes.data(), bytes.size());
        });
    }
    Serial last() const override { return last_; }
    std::uint64_t transactions() const override { return transactions_; }

private:
    std::filesystem::path log_;
    ByteCount capacity_;
    Serial last_;
    std::uint64_t transactions_ = 0;
};

inline std::unique_ptr<LogReplay> make_byte_replay(const std::filesystem::path& log, ByteCount capacity, Serial contained) {
    return std::make_unique<ByteReplay>(log, capacity, contained);
}

/// Commits and snapshots of a heap opened as transactional.
class ByteLog final : public SnapshotParticipant {
public:
    explicit ByteLog(HeapFile& heap)
        : heap_(heap), ring_(heap.companions().take_log()), identity_(log::Ring::read_identity(ring_->file())),
          serial_(heap.files().durable_serial()) {
        keep();
    }

    /// Logs what differs since the last commit. Durability: on return. Nothing differs: nothing happens.
    Serial commit() {
        const std::vector<std::byte> payload = difference();
        if (payload.size() == sizeof(ByteGroup)) return serial_;
        if (log::Ring::record_bytes(payload.size()) > ring_->capacity() / 2) {
            ++serial_.value;  // larger than the log: it becomes a save
            save_quiesced();
        } else {
            if (!ring_->fits(payload.size())) snapshot();
            const std::span<const std::byte> pieces[] = {payload};
            ring_->append(record_transactions, serial_.value + 1, pieces);
            ++serial_.value;
        }
        keep();
        return serial_;
    }
    /// Brings the files up to the newest commit, from the log alone.
    void snapshot() {
        std::set<std::uint64_t> touched;
        SavePoint point{heap_.files().durable_serial(), heap_.files().point().log_start, 0};
        point.log_start = scan([&](const log::Record& group) {
            const ByteGroup head = for_each_range(group, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes.size(); ++page) touched.insert(page);
            });
            point.serial = {head.serial};
            point.extent = std::max<ByteCount>(point.extent, head.extent);
        });
        std::vector<PageNumber> pages;
        for (const std::uint64_t page : touched) pages.push_back({page});
        heap_.saves().save_patched(point, pages, [&](std::span<const PageNumber> batch, std::span<std::byte> images) {
            ++batches;
            scan([&](const log::Record& group) {
                for_each_range(group, [&](std::uint64_t offset, std::span<const std::byte> bytes) { patch(batch, images, offset, bytes); });
            });
        });
        // A record that the ring doesn't know, because writing it failed, may be there all the same.
        ring_->release(std::min(point.log_start.position, ring_->next().position));
    }
    /// The same from what the span holds.
    void save_quiesced() {
        heap_.save_at({serial_, ring_->next(), heap_.image().mapped()});
        ring_->release(ring_->next().position);
    }
    log::Ring& ring() { return *ring_; }
    Serial serial() const { return serial_; }

    heap::WriteObserver* observer() override { return nullptr; }
    bool save_itself() override {
        commit();
        snapshot();
        return true;
    }
    void before_save() override {}
    void saved() noexcept override {}
    void extended(ByteCount, ByteCount) override {}
    void about_to_restore(PageNumber) override {}
    bool keeps_open(PageNumber) const noexcept override { return false; }
    void before_close() override {
        if (snapshot_at_close) snapshot();
    }
    void before_abandon() noexcept override {
        try {
            if (ring_ && !heap_.condition().is_poisoned()) before_close();
        } catch (const std::exception&) {  // the next opening recovers
        }
    }
    void left() noexcept override { ring_.reset(); }
    bool free_lent(void* block, std::uint32_t) noexcept override { return heap_.deallocate_durable(block); }

    std::uint64_t batches = 0;  ///< of snapshots
    bool snapshot_at_close = true;

private:
    std::span<const std::byte> span() const { return {reinterpret_cast<const std::byte*>(heap_.ranges().durable), heap_.image().mapped()}; }
    void keep() { committed_.assign(span().begin(), span().end()); }

    std::vector<std::byte> difference() {
        const ByteGroup head{serial_.value + 1, heap_.image().mapped()};
        std::vector<std::byte> payload;
        const auto put = [&](std::span<const std::byte> bytes) { payload.insert(payload.end(), bytes.begin(), bytes.end()); };
        put(std::as_bytes(std::span(&head, 1)));
        committed_.resize(heap_.image().mapped());
        const std::span<const std::byte> now = span();
        for (std::uint64_t page = 0; page < now.size(); page += page_bytes) {
            if (std::memcmp(now.data() + page, committed_.data() + page, page_bytes) == 0) continue;
            std::uint64_t first = page;
            std::uint64_t end = page + page_bytes;
            while (now[first] == committed_[first]) ++first;
            while (now[end - 1] == committed_[end - 1]) --end;
            const std::uint64_t place[2] = {first, end - first};
            put(std::as_bytes(std::span(place)));
            put(now.subspan(first, end - first));
        }
        return payload;
    }
    template <class F>
    log::RingStart scan(F&& visit) const {
        return log::Ring::scan(ring_->file(), identity_, heap_.files().point().log_start,
                               [&](const log::Record& group) {
                                   visit(group);
                                   return true;
                               })
            .next;
    }
    static void patch(std::span<const PageNumber> batch, std::span<std::byte> images, std::uint64_t offset, std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const std::uint64_t within = offset % page_bytes;
            const std::size_t part = std::min<std::size_t>(bytes.size(), page_bytes - within);
            const auto found = std::lower_bound(batch.begin(), batch.end(), page_of(HeapOffset{offset}));
            if (found != batch.end() && *found == page_of(HeapOffset{offset}))
                std::memcpy(images.data() + static_cast<std::size_t>(found - batch.begin()) * page_bytes + within, bytes.data(), part);
            offset += part;
            bytes = bytes.subspan(part);
        }
    }

    HeapFile& heap_;
    std::unique_ptr<log::Ring> ring_;
    log::RingIdentity identity_;
    Serial serial_;
    std::vector<std::byte> committed_;
};

}  // namespace taiyen::store::test
