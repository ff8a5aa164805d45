#pragma once
/// Scopes of instrumented code on a heap in memory: what the store hooks gave against what really changed.

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "change/captured_core.hpp"
#include "change/change_sets.hpp"

namespace taiyen::change::test {

/// The first byte of `after` that no entry of `set` explains, as text; empty if there is none.
inline std::string unexplained(const std::vector<std::byte>& before, std::span<const std::byte> after, const ChangeSet& set) {
    std::vector<std::byte> explained = before;
    set.for_each(Direction::forward, [&](const Entry& entry) {
        if (entry.after.empty())
            std::memset(explained.data() + entry.where.value, 0, entry.length);
        else
            std::memcpy(explained.data() + entry.where.value, entry.after.data(), entry.length);
    });
    for (std::size_t i = 0; i < after.size(); ++i)
        if (explained[i] != after[i]) return "byte " + std::to_string(i) + " changed unseen";
    return {};
}

/// A heap with Capture::stores.
class Stage {
public:
    explicit Stage(ByteCount capacity = ByteCount{1} << 20U) : core_(capacity) { core_.capture(Capture::stores); }

    CapturedCore& core() { return core_; }
    /// Runs `edit`; what the hooks saw must be what changed.
    template <class F>
    void scope(const std::string& title, F&& edit) {
        start();
        edit();
        check(title);
    }
    void start() {
        ChangeSet unused;
        core_.recorder().cut(unused);
        before_.assign(core_.base(), core_.base() + core_.ranges().durable_bytes);
    }
    ChangeSet check(const std::string& title) {
        const std::span<const std::byte> after(core_.base(), core_.ranges().durable_bytes);
        ChangeSet set;
        core_.recorder().cut(set);
        const bool same = same_bytes(set, difference(before_, after));
        const std::string unseen = same ? std::string() : unexplained(before_, after, set);
        BOOST_TEST(unseen == "", title << ": " << unseen);
        BOOST_TEST((same || unseen != ""), title << ": the set differs from what comparing pages gives");
        failed_ = failed_ || !same;
        return set;
    }
    /// Runs `edit` and takes it back: every byte must be as before.
    template <class F>
    void taken_back(const std::string& title, F&& edit) {
        start();
        edit();
        core_.recorder().restore();
        const bool whole = std::memcmp(core_.base(), before_.data(), before_.size()) == 0;
        BOOST_TEST(whole, title << " was not taken back whole");
        failed_ = failed_ || !whole;
    }

    bool failed() const { return failed_; }

private:
    bool failed_ = false;
    CapturedCore core_;
    std::vector<std::byte> before_;
};

}  // namespace taiyen::change::test
