#pragma once
/// A recorder that keeps a copy of the whole span and compares everything: slow, and too simple to be wrong. It sees every store, whoever makes it.

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "change/recorder.hpp"
#include "heap/core.hpp"

namespace taiyen::undo::test {

class CopyRecorder final : public change::Recorder {
public:
    CopyRecorder(heap::HeapCore& core, ByteCount mapped) : Recorder(core), mapped_(mapped) {}

    /// The next cut throws std::bad_alloc.
    static inline bool next_cut_fails = false;

    Capture mode() const override { return Capture::pages; }
    void start() override { copy_.assign(span(), span() + mapped_); }
    void stop() noexcept override {}
    void begin_scope() override {}
    void end_scope() noexcept override {}
    void begin_inner_scope() noexcept override {}
    void touch(HeapOffset, ByteCount) override {}
    void cut(change::ChangeSet& out) override {
        if (std::exchange(next_cut_fails, false)) throw std::bad_alloc();
        for_each_difference([&](std::size_t at, std::size_t end) { out.add_bytes({at}, {copy_.data() + at, end - at}, {span() + at, end - at}); });
        take();
    }
    bool keeps_open(PageNumber) const noexcept override { return false; }
    bool certainly_unchanged() const override { return std::memcmp(copy_.data(), span(), mapped_) == 0; }
    void restore() noexcept override {
        for_each_difference([&](std::size_t at, std::size_t end) { std::memcpy(span() + at, copy_.data() + at, end - at); });
        core_.engine().forget({0}, mapped_);
    }
    void apply(const change::ChangeSetView& changes, change::Direction direction) noexcept override {
        changes.for_each(direction, [&](const change::Entry& entry) {
            if (entry.kind != change::EntryKind::bytes) return;
            const auto bytes = direction == change::Direction::backward ? entry.before : entry.after;
            if (bytes.empty())
                std::memset(span() + entry.where.value, 0, entry.length);
            else
                std::memcpy(span() + entry.where.value, bytes.data(), entry.length);
        });
        take();
        core_.engine().forget({0}, mapped_);
    }
    void reserve_for(const change::ChangeSetView&) override {}
    void extended(ByteCount, ByteCount to) override {
        copy_.resize(to);
        mapped_ = to;
    }
    void audit() const override {}
    change::RecorderCounters counters() const override { return {}; }
    void about_to_write(HeapOffset, ByteCount) override {}
    bool on_fault(void*) noexcept override { return false; }
    void on_store(void*, ByteCount) noexcept override {}

protected:
    void add_written(change::WrittenRanges& ranges) const override { ranges.add({0}, mapped_); }

private:
    void take() { std::memcpy(copy_.data(), span(), mapped_); }
    template <class F>
    void for_each_difference(F&& visit) {
        for (std::size_t page = 0; page < mapped_; page += page_bytes) {
            if (std::memcmp(copy_.data() + page, span() + page, page_bytes) == 0) continue;
            for (std::size_t at = page; at < page + page_bytes;) {
                if (copy_[at] == span()[at]) {
                    ++at;
                    continue;
                }
                std::size_t end = at;
                while (end < page + page_bytes && copy_[end] != span()[end]) ++end;
                visit(at, end);
                at = end;
            }
        }
    }

    std::vector<std::byte> copy_;
    ByteCount mapped_;
};

inline std::unique_ptr<change::Recorder> make_copy_recorder(Capture, heap::HeapCore& core, ByteCount mapped, Audit) {
    return std::make_unique<CopyRecorder>(core, mapped);
}

}  // namespace taiyen::undo::test
