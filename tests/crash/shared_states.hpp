#pragma once
/// SharedStates: the states of a life by number. A copy shares them: each crash state is judged with one, and copying what a heap should have held at each of its saves took half of the time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace taiyen::crash {

template <class State>
class SharedStates {
public:
    /// With one, number 0.
    SharedStates() { push_back(State{}); }

    std::size_t size() const { return states_.size(); }
    const State& operator[](std::uint64_t number) const { return *states_[number]; }

    void push_back(State state) { states_.push_back(std::make_shared<const State>(std::move(state))); }
    void pop_back() { states_.pop_back(); }
    /// The first `count` only. Requires: there are as many.
    void cut(std::uint64_t count) noexcept { states_.erase(states_.begin() + static_cast<std::ptrdiff_t>(count), states_.end()); }
    void replace(std::uint64_t number, State state) { states_[number] = std::make_shared<const State>(std::move(state)); }

private:
    std::vector<std::shared_ptr<const State>> states_;
};

}  // namespace taiyen::crash
