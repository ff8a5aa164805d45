#pragma once
/// shrink: what a random test that failed reports: the fewest and simplest operations found that still fail.
///
/// Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002), without the tests of single chunks: a failure seldom needs one chunk only.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace taiyen::test {

/// `fails(operations)` runs them from scratch. `simpler(operation)` proposes simpler ones, most wanted first. At most `runs` runs.
/// Requires: fails(operations), and every list of operations can be run, whatever was left out of it.
template <class Operation, class Fails, class Simpler>
std::vector<Operation> shrink(std::vector<Operation> operations, const Fails& fails, const Simpler& simpler, unsigned runs = 2000) {
    const auto still_fails = [&](const std::vector<Operation>& shorter) { return runs != 0 && (--runs, fails(shorter)); };
    bool changed = true;
    while (changed && runs != 0) {
        changed = false;
        // Without chunks, from halves down to single operations; from the end, since what comes last uses what came before.
        for (std::size_t chunk = std::max<std::size_t>(operations.size() / 2, 1);; chunk /= 2) {
            for (std::size_t end = operations.size(); end > 0;) {
                const std::size_t begin = end - std::min(chunk, end);
                std::vector<Operation> shorter(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(begin));
                shorter.insert(shorter.end(), operations.begin() + static_cast<std::ptrdiff_t>(end), operations.end());
                if (still_fails(shorter)) {
                    operations = std::move(shorter);
                    changed = true;
                }
                end = begin;
            }
            if (chunk <= 1) break;
        }
        for (std::size_t at = 0; at < operations.size(); ++at)
            for (bool again = true; again;) {
                again = false;
                for (const Operation& proposed : simpler(operations[at])) {
                    std::vector<Operation> other = operations;
                    other[at] = proposed;
                    if (!still_fails(other)) continue;
                    operations = std::move(other);
                    again = changed = true;
                    break;
                }
            }
    }
    return operations;
}

}  // namespace taiyen::test
