#pragma once
/// A manager whose engine a test slows down at random places, and in which it plants a bug.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <taiyen/object/object_manager.hpp>

#include "base/planted.hpp"
#include "object/check_out_engine.hpp"

namespace taiyen::object::test {

/// What threads do between two steps of an engine. Set it while no other thread uses one.
struct TestSteps {
    static inline std::atomic<unsigned> one_in{0};  ///< on average one in so many steps is interrupted; 0: none
    static inline std::atomic<std::uint64_t> seed{1};
    static inline thread_local std::function<void()> at_next_step;  ///< of this thread

    static void step() noexcept {
        if (at_next_step) std::exchange(at_next_step, nullptr)();
        const unsigned often = one_in.load(std::memory_order_relaxed);
        if (often == 0) return;
        thread_local std::minstd_rand random(static_cast<unsigned>(seed.fetch_add(0x9e37'79b9U)));
        if (random() % often != 0) return;
        if (random() % 8 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 60));
        else
            std::this_thread::yield();
    }
};

/// For as long as it lives, engines have this bug, and threads are interrupted so often.
struct Hampered {
    explicit Hampered(Bug bug, unsigned one_step_in = 0, std::uint64_t seed = 1) {
        planted_bug = bug;
        TestSteps::one_in = one_step_in;
        TestSteps::seed = seed;
    }
    ~Hampered() {
        planted_bug = Bug::none;
        TestSteps::one_in = 0;
    }
    Hampered(const Hampered&) = delete;
    Hampered& operator=(const Hampered&) = delete;
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
    at_planted_step = TestSteps::step;
    return std::make_unique<ObjectManager<Object>>(std::make_unique<CheckOutEngine>(std::move(options)));
}

/// Far longer than anything that isn't lost takes.
inline constexpr std::chrono::seconds for_ever{60};

}  // namespace taiyen::object::test
