#pragma once
/// What a worker tells through its standard output: whole messages, each written at once, so that threads and a kill never leave half of one.

#include <algorithm>
#include <array>
#include <cstdint>

#include "model.hpp"

namespace outside {

struct Message {
    enum class Kind : std::uint32_t {
        waiting,       ///< for a byte on standard input
        opening,       ///< the heap is about to be created or opened
        opened,        ///< it is there
        acknowledged,  ///< everything of the lane up to `step`, and of all lanes up to `order`, is durable
        withdrawn,     ///< a step of the lane is about to be undone: `step` and `order` are what is there without it
        finished,      ///< the heap is closed
    };
    Kind kind = Kind::opening;
    std::uint32_t lane = 0;
    std::uint64_t step = 0;
    std::uint64_t order = 0;
};

/// All that was told so far.
struct Told {
    bool waiting = false;
    bool opening = false;
    bool opened = false;
    bool finished = false;
    std::array<std::uint64_t, lanes> step{};
    std::uint64_t order = 0;
    std::uint64_t acknowledgements = 0;
    std::uint64_t withdrawals = 0;
    // The least of them since `begin_stretch`: what was withdrawn may have been told again since.
    std::array<std::uint64_t, lanes> least_step{};
    std::uint64_t least_order = 0;

    void begin_stretch() {
        least_step = step;
        least_order = order;
    }
    void hear(const Message& message) {
        switch (message.kind) {
            case Message::Kind::waiting: waiting = true; break;
            case Message::Kind::opening: opening = true; break;
            case Message::Kind::opened: opened = true; break;
            case Message::Kind::finished: finished = true; break;
            case Message::Kind::acknowledged:
                step[message.lane] = std::max(step[message.lane], message.step);
                order = std::max(order, message.order);
                ++acknowledgements;
                break;
            case Message::Kind::withdrawn:
                step[message.lane] = std::min(step[message.lane], message.step);
                order = std::min(order, message.order);
                least_step[message.lane] = std::min(least_step[message.lane], message.step);
                least_order = std::min(least_order, message.order);
                ++withdrawals;
                break;
        }
    }
    /// What was there at any moment between this and `next`, the end of the stretch that began here.
    Told throughout(const Told& next) const {
        Told both = *this;
        both.order = std::min(order, next.least_order);
        for (unsigned lane = 0; lane < lanes; ++lane) both.step[lane] = std::min(step[lane], next.least_step[lane]);
        return both;
    }
};

}  // namespace outside
