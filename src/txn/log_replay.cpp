// What recovery asks of transactions: are they right, and do them again. The order of recovery is store's (store/FORMAT.md).

#include "store/log_replay.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "change/audit_shadow.hpp"
#include "change/procedure_calls.hpp"
#include "store/heap_file.hpp"
#include "txn/record.hpp"

namespace taiyen::txn {
namespace {

class TransactionReplay final : public store::LogReplay {
public:
    TransactionReplay(const std::filesystem::path& log, ByteCount capacity, Serial contained)
        : walk_(log, capacity, contained), capacity_(capacity) {}

    void check(const log::Record& group) override {
        walk_.walk(
            group, [](const LoggedTransaction&) {},
            [&](const change::Entry& entry) {
                if (entry.kind == change::EntryKind::procedure) (void)change::stored_call(entry, capacity_, walk_.log());
            });
    }

    void apply(const log::Record& group, store::HeapFile& heap) override {
        auto* const span = reinterpret_cast<std::byte*>(heap.ranges().durable);
        walk_.walk(
            group,
            [&](const LoggedTransaction& transaction) {
                if (transaction.extent > heap.image().mapped()) heap.extend(transaction.extent);
                if (transaction.annex) heap.image().annex().replay(*transaction.annex);
            },
            [&](const change::Entry& entry) {
                if (entry.kind == change::EntryKind::procedure) {
                    call(entry, heap);
                } else if (entry.where >= store::annex_start) {
                    write_annex(entry, heap);
                } else {
                    if (!planted(Bug::replay_unproven)) heap.prove(entry.where, entry.length);
                    change::write_entry(span, entry, change::Direction::forward);
                    forgotten_ = false;
                }
            });
    }

    Serial last() const override { return walk_.last(); }
    std::uint64_t transactions() const override { return walk_.transactions(); }

private:
    static void write_annex(const change::Entry& entry, store::HeapFile& heap) {
        const std::uint64_t end = entry.where.value + entry.length;
        for (std::uint64_t from = entry.where.value; from < end;) {
            const std::uint64_t to = std::min(end, round_up(from + 1, page_bytes));
            const std::span<std::byte> page = heap.replay_annex_page(page_of({from}));
            if (page.empty()) return;
            const auto target = page.subspan(from % page_bytes, to - from);
            if (entry.after.empty())
                std::ranges::fill(target, std::byte{0});
            else
                std::ranges::copy(entry.after.subspan(from - entry.where.value, to - from), target.begin());
            from = to;
        }
    }

    void call(const change::Entry& entry, store::HeapFile& heap) {
        if (heap.home() != heap.ranges().durable && heap.links() == heap::Links::addresses)
            throw Error(errc::mismatch, walk_.log(),
                        "the log holds calls of procedures, which need the heap at its address; open it once with its program, and close it");
        if (!std::exchange(forgotten_, true)) heap.engine().forget({0}, capacity_);     // what it has built from the bytes before
        if (!std::exchange(all_proven_, true)) heap.prove({0}, heap.image().mapped());  // nobody knows what it reads
        try {
            change::ProcedureCalls(heap).replay(heap.image().mapped(), change::stored_call(entry, capacity_, walk_.log()));
        } catch (const Error& error) {
            if (error.code() != errc::history_conflict) throw;
            throw Error(errc::mismatch, walk_.log(),
                        text_of(error) + "; open the heap with the program that made the call, or register the procedure as it was then");
        }
    }

    LogWalk walk_;
    ByteCount capacity_;
    bool forgotten_ = false;
    bool all_proven_ = false;
};

}  // namespace
}  // namespace taiyen::txn

namespace taiyen::store {

std::unique_ptr<LogReplay> make_log_replay(const std::filesystem::path& log, ByteCount capacity, Serial contained) {
    return std::make_unique<txn::TransactionReplay>(log, capacity, contained);
}

}  // namespace taiyen::store
