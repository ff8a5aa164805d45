#include <taiyen/txn/transaction.hpp>

#include <utility>

#include <taiyen/base/check.hpp>

#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {
namespace {

/// This thread's innermost transaction, of whatever heap.
thread_local constinit Transaction* innermost = nullptr;

/// A procedure that ended the transaction which calls it would leave nobody to take back what it did.
txn::TransactionService& outside_calls(txn::TransactionService& service) {
    if (service.in_call()) throw Error(errc::scope_open, service.file()->path(), "a procedure can't end the transaction that called it");
    return service;
}

}  // namespace

Transaction::Transaction(TransactionalHeap& heap) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.require_usable(false);
    service_ = txn::TransactionService::of(file)->shared_from_this();
    service_->begin();
    depth_ = service_->depth();
    outer_ = std::exchange(innermost, this);
}

/// The transaction is over, whatever became of it.
void Transaction::leave() noexcept {
    innermost = outer_;
    service_.reset();
}

Transaction::~Transaction() { rollback(); }

txn::TransactionService& Transaction::open_service() const {
    if (!service_) throw Error(errc::invalid_argument, "the transaction has ended already");
    if (service_->file() == nullptr) throw Error(errc::closed, "the transaction's heap was closed, and what the transaction did was rolled back");
    service_->file()->require_usable(true);  // Error{forked | poisoned}
    if (innermost == this && service_->depth() == 0)
        throw Error(errc::transaction_doomed, service_->file()->path(), "the transaction was rolled back when its thread ended; end it before");
    if (innermost != this || service_->depth() != depth_)
        throw Error(errc::scope_open, service_->file()->path(), "an inner transaction is open; end it first");
    return *service_;
}

Serial Transaction::commit() {
    txn::TransactionService& service = outside_calls(open_service());
    struct Leave {
        Transaction& transaction;
        ~Leave() { transaction.leave(); }
    } const leave{*this};
    return service.commit();
}

void Transaction::rollback() noexcept {
    if (!service_) return;
    TAIYEN_CHECK(innermost == this);  // transactions end in reverse order, on their own thread
    service_->rollback();
    leave();
}

void Transaction::touch(void* address, std::size_t bytes) { open_service().touch(address, bytes); }

bool Transaction::is_open() const noexcept { return service_ != nullptr && service_->file() != nullptr; }

heap::HeapCore& Transaction::core() const { return *open_service().file(); }

void Transaction::call_erased(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) {
    open_service().call(name, signature, arguments);
}

}  // namespace taiyen
