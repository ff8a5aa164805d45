#include "world.hpp"

#include <algorithm>

namespace outside {

void take_step(World& world, const Shape& shape, unsigned lane) {
    Lane& own = world.lane[lane];
    const std::uint64_t number = own.step + 1;
    const Step step = step_of(shape, lane, number);
    if (step.erase) {
        own.entries.erase(step.key);
    } else {
        const std::string text = text_of(shape, lane, number);
        own.entries[step.key].assign(text.data(), text.size());
    }
    own.trail.push_back(step.mark);
    if (own.trail.size() > trail_max) own.trail.erase(own.trail.begin(), own.trail.begin() + trail_max / 2);
    own.step = number;
    ++world.order;
}

std::string difference(const Lane& is, const LaneModel& should, const Shape& shape, unsigned lane) {
    const std::string at = "lane " + std::to_string(lane) + " at step " + std::to_string(should.step) + ": ";
    if (is.step != should.step) return at + "the heap says step " + std::to_string(is.step);
    if (!std::ranges::equal(is.trail, should.trail)) return at + "the trail differs";
    if (is.entries.size() != should.entries.size()) return at + "there are " + std::to_string(is.entries.size()) + " entries";
    auto entry = is.entries.begin();
    for (const auto& [key, number] : should.entries) {
        if (entry->first != key) return at + "key " + std::to_string(key) + " is missing";
        if (std::string_view(entry->second) != text_of(shape, lane, number)) return at + "the text of key " + std::to_string(key) + " differs";
        ++entry;
    }
    return {};
}

}  // namespace outside
