#include "crash/txn_steps.hpp"

#include <algorithm>
#include <stdexcept>

namespace taiyen::crash {

void TxnSteps::begin(const Objects& now) {
    kept_ = true;
    names_.clear();
    contents_ = {now};
    at_ = 0;
    room_ = usual_room;
}

void TxnSteps::end() {
    kept_ = false;
    names_.clear();
    contents_.clear();
    at_ = 0;
}

void TxnSteps::add(std::string_view name, const Objects& now) {
    names_.resize(at_);
    contents_.resize(at_ + 1);
    names_.emplace_back(name);
    contents_.push_back(now);
    ++at_;
}

void TxnSteps::squash(std::size_t count, std::string_view name) {
    const auto steps = static_cast<std::ptrdiff_t>(count - 1);
    contents_.erase(contents_.end() - 1 - steps, contents_.end() - 1);
    names_.resize(names_.size() - count + 1);
    names_.back() = name;
    at_ = names_.size();
}

void TxnSteps::resize(ByteCount room, std::size_t dropped) {
    if (dropped > at_) throw std::runtime_error("undone steps are dropped");
    drop_oldest(dropped);
    room_ = room;
}

void TxnSteps::drop_oldest(std::size_t count) {
    names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(count));
    contents_.erase(contents_.begin(), contents_.begin() + static_cast<std::ptrdiff_t>(count));
    at_ -= count;
}

void TxnSteps::compare_from(std::size_t first, const std::vector<UndoStep>& found) const {
    for (std::size_t i = 0; i < found.size(); ++i)
        if (i + first >= names_.size() || found[i].name != names_[i + first] || found[i].undone != (i + first >= at_))
            throw std::runtime_error("step " + std::to_string(i) + " of the history is another, '" + found[i].name + "'");
}

void TxnSteps::lose_oldest(const std::vector<UndoStep>& found, const Objects& now) {
    const std::size_t lost = names_.size() - std::min(names_.size(), found.size());
    compare_from(lost, found);
    if (found.empty()) {
        names_.clear();
        contents_ = {now};
        at_ = 0;
        return;
    }
    if (lost > at_) throw std::runtime_error("undone steps are lost, and older ones aren't");
    drop_oldest(lost);
}

void TxnSteps::compare(const std::vector<UndoStep>& found) const {
    if (found.size() != names_.size())
        throw std::runtime_error("the history has " + std::to_string(found.size()) + " steps instead of " + std::to_string(names_.size()));
    compare_from(0, found);
}

}  // namespace taiyen::crash
