#pragma once
/// Several threads that begin together, for tests of what threads may do at once.
///
/// Boost.Test's checks are not made for threads: a thread's failure is what it throws, and the first of them comes out of `at_once`.

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace taiyen::test {

/// For use in threads: `what` says what is expected.
inline void require(bool condition, const char* what) {
    if (!condition) throw std::runtime_error(what);
}

/// Runs `action(0)` … `action(count - 1)`, each in a thread of its own. None begins before all are there.
inline void at_once(unsigned count, const std::function<void(unsigned)>& action) {
    std::atomic<unsigned> waiting{count};
    std::mutex mutex;
    std::exception_ptr failure;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < count; ++number) {
        threads.emplace_back([&, number] {
            waiting.fetch_sub(1);
            while (waiting.load() != 0) std::this_thread::yield();
            try {
                action(number);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace taiyen::test
