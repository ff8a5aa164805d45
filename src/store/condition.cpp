#include "store/condition.hpp"

#include <new>

#include <taiyen/base/error.hpp>

namespace taiyen::store {

void Condition::check_usable(bool for_reading) const {
    if (!is_open()) throw Error(errc::closed, path_, "the heap is closed; open it again");
    if (core_.in_forked_child()) throw Error(errc::forked, path_, "the heap was opened before fork(); open it in the process that uses it");
    if (poisoned_)
        throw Error(errc::poisoned, path_, "an earlier failure made the heap unusable (" + poison_ + "); close it and open it again to recover");
    if (read_only_ && !for_reading) throw Error(errc::read_only, path_, "the heap was opened read-only; open it with open_only to change it");
}

void Condition::poison(const char* what, const char* why) noexcept {
    const std::lock_guard lock(mutex_);
    if (poisoned_) return;
    try {
        poison_ = std::string(what) + ": " + why;
    } catch (const std::bad_alloc&) {
        poison_ = "out of memory";  // short enough to need none
    }
    poisoned_ = true;
    events_.tell({.kind = EventKind::poisoned, .text = poison_});
}

std::string Condition::why_poisoned() const {
    const std::lock_guard lock(mutex_);
    return poison_;
}

void Condition::durable_step(const char* what, const std::function<void()>& step) {
    if (poisoned_) check_usable(true);  // (C1)
    try {
        step();
    } catch (const std::exception& error) {
        poison(what, error.what());
        throw;
    }
}

}  // namespace taiyen::store
