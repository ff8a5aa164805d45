#pragma once
/// A manager whose engine a test slows down at random places, and in which it leaves out a duty.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <taiyen/object/object_manager.hpp>

#include "object/check_out_engine.hpp"

namespace taiyen::object::test {

/// What all engines of this seam do now. Set it while no other thread uses one.
struct TestSeam {
    static inline std::atomic<Duty> left_out{Duty::none};
    static inline std::atomic<unsigned> one_step_in{0};  ///< on average one in so many steps is interrupted; 0: none
    static inline std::atomic<std::uint64_t> seed{1};
    static inline thread_local std::function<void()> at_next_step;  ///< of this thread

    static void step() noexcept {
        if (at_next_step) std::exchange(at_next_step, nullptr)();
        const unsigned often = one_step_in.load(std::memory_order_relaxed);
        if (often == 0) return;
        thread_local std::minstd_rand random(static_cast<unsigned>(seed.fetch_add(0x9e37'79b9U)));
        if (random() % often != 0) return;
        if (random() % 8 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 60));
        } else {
            std::this_thread::yield();
        }
    }
    static bool skips(Duty duty) noexcept { return left_out.load(std::memory_order_relaxed) == duty; }
};

/// For as long as it lives.
struct Seamed {
    explicit Seamed(Duty left_out, unsigned one_step_in = 0, std::uint64_t seed = 1) {
        TestSeam::left_out = left_out;
        TestSeam::one_step_in = one_step_in;
        TestSeam::seed = seed;
    }
    ~Seamed() {
        TestSeam::left_out = Duty::none;
        TestSeam::one_step_in = 0;
    }
    Seamed(const Seamed&) = delete;
    Seamed& operator=(const Seamed&) = delete;
};

/// Patient: no clock comes to the help of a wake-up that was lost.
inline CheckOuts::Options patient(CheckOuts::Load load = {}) {
    CheckOuts::Options options;
    options.load = std::move(load);
    options.patience = std::chrono::hours(1);
    options.attempts = 8;
    return options;
}

template <class Object>
std::unique_ptr<ObjectManager<Object>> make_manager(CheckOuts::Options options = patient()) {
    return std::make_unique<ObjectManager<Object>>(std::make_unique<BasicCheckOuts<TestSeam>>(std::move(options)));
}

/// Far longer than anything that isn't lost takes.
inline constexpr std::chrono::seconds for_ever{60};

}  // namespace taiyen::object::test
