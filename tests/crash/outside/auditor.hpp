#pragma once
/// Opens a heap as a reader and holds it against the model and against what was told.
///
/// A heap passes if it opens, verify() finds nothing (a reader, who repairs nothing, may find headers and a second copy that wait for the next writer), each lane equals its model at the step that the heap says, no lane is behind what was acknowledged, and the steps of all lanes are
/// together as many as the transactions that ran: no holes.
/// Thread rule: one thread.

#include <array>
#include <filesystem>
#include <string>

#include "message.hpp"
#include "model.hpp"

namespace outside {

/// What an audit saw.
struct Found {
    bool exists = false;
    std::array<std::uint64_t, lanes> step{};
    std::uint64_t order = 0;
    bool clean = true;                        ///< nothing had to be recovered
    std::uint64_t transactions_replayed = 0;  ///< from the log
    std::uint64_t snapshots_replayed = 0;     ///< from the journal
    std::uint64_t records_cut = 0;            ///< torn ends
};

class Auditor {
public:
    explicit Auditor(const Shape& shape) : shape_(shape) {}

    /// As whom the heap is opened: a reader leaves the files as the crash left them, a writer recovers them.
    enum class As { reader, writer };
    /// Empty if all is well; else one sentence. `told`: what must be there; if nothing was told not even the heap must.
    std::string audit(const std::filesystem::path& heap, const Told& told, As who = As::reader);
    const Found& found() const { return found_; }

private:
    std::string compare(const std::filesystem::path& path, const Told& told, As who);

    Shape shape_;
    std::array<LaneModel, lanes> models_;
    Found found_;
};

/// What a heap must still hold after `found` was seen in it.
inline Told at_least(const Found& found) {
    Told told;
    told.opening = told.opened = found.exists;
    told.step = found.step;
    told.order = found.order;
    return told;
}

}  // namespace outside
