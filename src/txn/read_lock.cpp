#include <taiyen/txn/read_lock.hpp>

#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

ReadLock::ReadLock(const TransactionalHeap& heap) {
    store::HeapFile& file = HeapAccess::file(heap);
    txn::TransactionService* const service = txn::TransactionService::of(file);
    if (service == nullptr) {  // opened for reading: nobody writes
        file.require_usable(true);
        serial_ = file.files().durable_serial();
        return;
    }
    if (service->lock_shared()) service_ = service;
    serial_ = service->last_committed();
}

ReadLock::~ReadLock() {
    if (service_ != nullptr) service_->unlock_shared();
}

}  // namespace taiyen
