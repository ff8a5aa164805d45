#pragma once
/// Somebody who types for ever: lines that `execute` carries out, random but repeatable.

#include <cstdint>
#include <string>

#include "document.hpp"

namespace cad::command {

/// SplitMix64 (Steele, Lea and Flood, 2014), because the standard distributions differ between libraries.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()();
    std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }
    /// In [0, 1).
    double fraction() { return static_cast<double>((*this)() >> 11U) * 0x1p-53; }

private:
    std::uint64_t state_;
};

/// Where somebody draws, and what they leave alone.
struct Playground {
    Box canvas{{0, 0}, {100, 100}};
    EntityId kept = 0;  ///< entities with ids up to this one are not touched
};

/// A command that changes the drawing: adds, moves, rotates or deletes entities, makes, renames or assigns layers.
std::string random_edit(const Drawing& drawing, const Playground& playground, Dice& dice);

}  // namespace cad::command
