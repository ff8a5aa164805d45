#include "base/thread_number.hpp"

#include <atomic>

namespace taiyen::thread_number {

thread_local constinit ThreadNumber of_this = 0;

namespace {
constinit std::atomic<ThreadNumber> last{0};
}

ThreadNumber give() noexcept { return of_this = last.fetch_add(1, std::memory_order_relaxed) + 1; }

}  // namespace taiyen::thread_number
