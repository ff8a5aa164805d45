#pragma once
/// TxnSteps: what the undo history of a transactional heap must be: the names of its steps, and the objects before the first one and after each.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/units.hpp>
#include <taiyen/undo/history.hpp>

namespace taiyen::crash {

class TxnSteps {
public:
    using Objects = std::map<std::string, std::vector<std::byte>>;

    /// Of a new history that nobody gives another one.
    static constexpr ByteCount usual_room = 256_MiB;

    bool are_kept() const { return kept_; }
    /// For the history, in bytes.
    ByteCount room() const { return room_; }
    /// That are not undone.
    std::size_t done() const { return at_; }
    std::size_t undone() const { return names_.size() - at_; }
    /// Before the first step, and after each one.
    const std::vector<Objects>& contents() const { return contents_; }

    /// A history is attached that has no steps yet.
    void begin(const Objects& now);
    /// There is none any more.
    void end();
    void add(std::string_view name, const Objects& now);
    /// What the objects are then.
    const Objects& undo() { return contents_[--at_]; }
    const Objects& redo() { return contents_[++at_]; }
    /// The newest `count` become one.
    void squash(std::size_t count, std::string_view name);
    /// The history gets another room, and `dropped` steps have none there.
    void resize(ByteCount room, std::size_t dropped);
    /// The oldest ones may have fallen off: here they do as well. Throws std::runtime_error: what is left is something else.
    void lose_oldest(const std::vector<UndoStep>& found, const Objects& now);
    /// Throws std::runtime_error unless these are the steps.
    void compare(const std::vector<UndoStep>& found) const;

private:
    void drop_oldest(std::size_t count);
    /// Throws std::runtime_error unless `found` are the steps from `first` on, or fewer.
    void compare_from(std::size_t first, const std::vector<UndoStep>& found) const;

    bool kept_ = false;
    std::vector<std::string> names_;
    std::vector<Objects> contents_;
    std::size_t at_ = 0;
    ByteCount room_ = usual_room;
};

}  // namespace taiyen::crash
