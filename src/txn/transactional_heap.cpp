#include <taiyen/txn/transactional_heap.hpp>

#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {
namespace {

using store::OpenMode;

std::shared_ptr<store::HeapFile> open(const std::filesystem::path& path, OpenMode mode, const PersistentOptions& options) {
    store::Tuning tuning;
    tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
    return HeapAccess::open(path, mode, HeapKind::transactional, options, tuning);
}

txn::TransactionService* service_of(store::HeapFile& file) {
    file.check_usable(true);
    return txn::TransactionService::of(file);
}

}  // namespace

TransactionalHeap::TransactionalHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : SnapshotHeap(open(path, OpenMode::create_only, options)) {}
TransactionalHeap::TransactionalHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : SnapshotHeap(open(path, OpenMode::open_only, options)) {}
TransactionalHeap::TransactionalHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options)
    : SnapshotHeap(open(path, OpenMode::open_or_create, options)) {}
TransactionalHeap::TransactionalHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : SnapshotHeap(open(path, OpenMode::read_only, options)) {}

Serial TransactionalHeap::last_durable() const {
    store::HeapFile& file = HeapAccess::file(*this);
    const txn::TransactionService* const service = service_of(file);
    return service == nullptr ? file.files().durable_serial() : service->last_durable();
}

void TransactionalHeap::wait_durable(Serial serial) const {
    if (txn::TransactionService* const service = service_of(HeapAccess::file(*this))) service->wait_durable(serial);
}

TransactionStats TransactionalHeap::transaction_stats() const {
    const store::HeapFile& file = HeapAccess::file(*this);
    if (!file.is_open()) file.check_usable(true);
    const txn::TransactionService* const service = txn::TransactionService::of(file);
    return service == nullptr ? TransactionStats{} : service->stats();
}

void TransactionalHeap::replace_log(std::size_t capacity, const std::filesystem::path& path) {
    store::HeapFile& file = HeapAccess::file(*this);
    file.check_usable(false);
    service_of(file)->replace_log(capacity, path.empty() ? path : std::filesystem::absolute(path));
}

void TransactionalHeap::rebuild() {
    store::HeapFile& file = HeapAccess::file(*this);
    file.check_usable(false);
    txn::TransactionService::of(file)->rebuild();
}

}  // namespace taiyen
