#include <taiyen/undo/scope.hpp>

#include <exception>
#include <utility>

#include <taiyen/base/check.hpp>

#include "store/heap_access.hpp"
#include "undo/undo_service.hpp"

namespace taiyen {
namespace {

/// This thread's innermost scope, of whatever heap.
thread_local constinit UndoScope* innermost = nullptr;

[[noreturn]] void throw_inner_open(const store::HeapFile& file) {
    throw Error(errc::scope_open, file.path(), "an inner scope is open; end it first");
}

}  // namespace

UndoScope::UndoScope(SnapshotHeap& heap, std::string_view name) : exceptions_(std::uncaught_exceptions()) {
    store::HeapFile& file = HeapAccess::file(heap);
    service_ = undo::UndoService::of(file);
    service_->begin(name);
    depth_ = service_->depth();
    outer_ = std::exchange(innermost, this);
}

/// The scope is over, whatever became of it.
void UndoScope::leave() noexcept {
    innermost = outer_;
    service_.reset();
}

UndoScope::~UndoScope() {
    if (!service_) return;
    TAIYEN_CHECK(innermost == this);                                            // scopes end in reverse order, on their own thread
    if (service_->file() != nullptr && !service_->file()->in_forked_child()) {  // a child has the scope's object, not its heap
        if (std::uncaught_exceptions() > exceptions_)
            service_->cancel();
        else
            service_->commit_or_cancel();
    }
    leave();
}

undo::UndoService& UndoScope::open_service() const {
    if (!service_) throw Error(errc::invalid_argument, "the scope has ended already");
    if (service_->file() == nullptr) throw Error(errc::closed, "the scope's heap was closed, and what the scope did was not kept");
    service_->file()->check_usable(true);  // Error{forked | poisoned}
    if (innermost != this || service_->depth() != depth_) throw_inner_open(*service_->file());
    return *service_;
}

namespace {

/// A procedure that ended the scope which calls it would leave nobody to take back what it did.
undo::UndoService& outside_calls(undo::UndoService& service) {
    if (service.in_call()) throw Error(errc::scope_open, service.file()->path(), "a procedure can't end the scope that called it");
    return service;
}

}  // namespace

void UndoScope::commit() {
    undo::UndoService& service = outside_calls(open_service());
    try {
        service.commit();
    } catch (...) {
        if (service.failed_commit_ends()) leave();
        throw;
    }
    leave();
}

void UndoScope::cancel() {
    if (!service_) return;
    if (service_->file() != nullptr && !service_->file()->in_forked_child()) {
        if (innermost != this || service_->depth() != depth_) throw_inner_open(*service_->file());
        outside_calls(*service_).cancel();
    } else {
        TAIYEN_CHECK(innermost == this);
    }
    leave();
}

void UndoScope::touch(void* address, std::size_t bytes) { open_service().touch(address, bytes); }

bool UndoScope::is_open() const noexcept { return service_ != nullptr && service_->file() != nullptr; }

heap::HeapCore& UndoScope::core() const { return *open_service().file(); }

void UndoScope::call_erased(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) {
    open_service().call(name, signature, arguments);
}

// The undo members of SnapshotHeap.

namespace {

std::shared_ptr<undo::UndoService> service_of(const SnapshotHeap& heap) {
    const store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    return undo::UndoService::find(file);
}

}  // namespace

void SnapshotHeap::attach_undo() { attach_undo(UndoOptions{}); }
void SnapshotHeap::attach_undo(const UndoOptions& options) { undo::UndoService::of(HeapAccess::file(*this))->attach(options); }

bool SnapshotHeap::has_undo() const noexcept {
    const auto service = is_open() ? undo::UndoService::find(*file_) : nullptr;
    return service && service->live();
}

void SnapshotHeap::end_undo() {
    if (const auto service = service_of(*this)) service->end_history();
}

bool SnapshotHeap::undo() {
    const auto service = service_of(*this);
    return service && service->move(change::Direction::backward);
}

bool SnapshotHeap::redo() {
    const auto service = service_of(*this);
    return service && service->move(change::Direction::forward);
}

bool SnapshotHeap::can_undo() const {
    const auto service = service_of(*this);
    return service && service->can_move(change::Direction::backward);
}

bool SnapshotHeap::can_redo() const {
    const auto service = service_of(*this);
    return service && service->can_move(change::Direction::forward);
}

std::string SnapshotHeap::undo_name() const {
    const auto service = service_of(*this);
    return service ? service->name_of_next(change::Direction::backward) : std::string();
}

std::string SnapshotHeap::redo_name() const {
    const auto service = service_of(*this);
    return service ? service->name_of_next(change::Direction::forward) : std::string();
}

std::vector<UndoStep> SnapshotHeap::undo_steps() const {
    const auto service = service_of(*this);
    return service ? service->steps() : std::vector<UndoStep>();
}

void SnapshotHeap::squash_undo(std::size_t count, std::string_view name) { undo::UndoService::of(HeapAccess::file(*this))->squash(count, name); }

void SnapshotHeap::squash_undo(const UndoMark& since, std::string_view name) {
    undo::UndoService::of(HeapAccess::file(*this))->squash_since(since, name);
}

void SnapshotHeap::resize_undo(std::size_t bytes) { undo::UndoService::of(HeapAccess::file(*this))->resize(bytes); }

UndoMark SnapshotHeap::undo_mark() const {
    const auto service = service_of(*this);
    return service ? service->mark() : UndoMark();
}

bool SnapshotHeap::go_to(const UndoMark& mark) {
    const auto service = service_of(*this);
    return service && service->go_to(mark);
}

std::optional<Error> SnapshotHeap::last_error() const {
    const auto service = is_open() ? undo::UndoService::find(*file_) : nullptr;
    return service ? service->last_error() : std::nullopt;
}

}  // namespace taiyen
