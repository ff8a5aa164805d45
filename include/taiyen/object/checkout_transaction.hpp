#pragma once
/// CheckoutTransaction: changes to objects that are checked out, prepared beside the heap by as many threads as like, and committed as one Transaction.
///
/// A TransactionalHeap has one writer at a time, from a transaction's begin to its commit. What takes long, preparing the changes, happens in drafts: copies of the objects outside the heap. The
/// transaction is opened late: it assigns the drafts to their objects and commits, so its lock is held for that alone, and commits of several threads share a write.
/// (I1) Nothing in the heap changes before commit(); readers and other transactions see the objects as they were.
/// (I2) The check-out is what keeps others from preparing changes to the same objects: every thread that changes them has to check them out.
/// Thread rule: one thread at a time; several threads each have their own.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/object/object_manager.hpp>
#include <taiyen/txn/read_lock.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

namespace taiyen {

template <class Object>
class CheckoutTransaction {
public:
    /// Requires: heap and check-out live as long; the objects lie in the heap, and the check-out is exclusive.
    CheckoutTransaction(TransactionalHeap& heap, Checkout<Object>& checkout) noexcept : heap_(heap), checkout_(checkout) {}
    CheckoutTransaction(const CheckoutTransaction&) = delete;
    CheckoutTransaction& operator=(const CheckoutTransaction&) = delete;

    /// A copy of the object, made when it is first asked for, to be changed at leisure. Throws: Error{invalid_argument} (it isn't checked out, or only shared), Error{closed | poisoned}, and what copying throws.
    Object& draft(std::int64_t id) {
        const auto found = drafts_.find(id);
        if (found != drafts_.end()) return *found->second;
        Object& object = checkout_.edit(id);
        // Another transaction that is rolled back may write the same bytes again into pages that this object shares with others.
        const ReadLock lock(heap_);
        return *drafts_.emplace(id, std::make_unique<Object>(std::as_const(object))).first->second;
    }
    bool has_draft(std::int64_t id) const noexcept { return drafts_.contains(id); }

    /// Brings all drafts into the heap, in the order of ids, as one transaction; returns its serial. The drafts are gone then. If it throws they are there still, but may have been moved from; unless it was committed, and throws Error{unconfirmed}.
    /// Durability and Throws: as Transaction::commit; what assigning throws.
    Serial commit() {
        return commit([](Transaction& transaction, Object& object, Object&& draft) {
            if constexpr (std::is_trivially_copyable_v<Object>) transaction.touch(&object, sizeof object);
            object = std::move(draft);
        });
    }
    /// The same; `apply(transaction, object, draft)` brings each draft into its object.
    template <class Apply>
    Serial commit(Apply&& apply) {
        Transaction transaction(heap_);
        for (auto& [id, draft] : drafts_) apply(transaction, checkout_.edit(id), std::move(*draft));
        try {
            const Serial serial = transaction.commit();
            drafts_.clear();
            return serial;
        } catch (const Error& error) {
            if (error.code() == errc::unconfirmed) drafts_.clear();  // it has happened
            throw;
        }
    }
    /// Forgets the drafts; nothing has happened.
    void rollback() noexcept { drafts_.clear(); }

private:
    TransactionalHeap& heap_;
    Checkout<Object>& checkout_;
    std::map<std::int64_t, std::unique_ptr<Object>> drafts_;
};

}  // namespace taiyen
