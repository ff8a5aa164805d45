#include "change/instrumented.hpp"

#include <atomic>

namespace taiyen::change {
namespace {
constinit std::atomic<bool> present{false};
}  // namespace

void register_instrumented_code() noexcept { present.store(true, std::memory_order_relaxed); }

bool instrumented_code_present() noexcept { return present.load(std::memory_order_relaxed); }

}  // namespace taiyen::change
