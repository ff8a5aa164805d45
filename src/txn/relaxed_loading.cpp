#include <taiyen/txn/relaxed_loading.hpp>

#include <utility>

#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

RelaxedLoading::RelaxedLoading(TransactionalHeap& heap) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.require_usable(false);
    service_ = txn::TransactionService::of(file)->shared_from_this();
    service_->relax();
}

RelaxedLoading::~RelaxedLoading() { end(); }

void RelaxedLoading::end() noexcept {
    if (std::exchange(relaxes_, false)) service_->end_relaxed();
}

void RelaxedLoading::wait_until_strict() {
    end();
    service_->wait_durable(service_->last_committed());
}

}  // namespace taiyen
