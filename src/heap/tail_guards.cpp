#include "heap/tail_guards.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <taiyen/base/report.hpp>

namespace taiyen::heap {

const std::byte* TailGuards::damage(const Tails::value_type& tail) noexcept {
    const std::byte* const begin = tail.first + tail.second;
    const std::byte* const found = std::find_if(begin, begin + canary_bytes, [](std::byte byte) { return byte != canary; });
    return found == begin + canary_bytes ? nullptr : found;
}

void TailGuards::sift(const Engine& engine) noexcept {
    if (changes_seen_ == engine.outside_changes()) return;
    changes_seen_ = engine.outside_changes();
    std::erase_if(tails_, [&](const Tails::value_type& tail) {
        return engine.usable_size(tail.first) < tail.second + canary_bytes || damage(tail) != nullptr;
    });
}

void TailGuards::tell(const Tails::value_type& tail) const noexcept {
    const std::byte* const damaged = damage(tail);
    try {
        report({errc::stray_write, damaged,
                path_.string() + ": something wrote behind a block of " + std::to_string(tail.second) + " bytes, at offset " +
                    std::to_string(damaged - tail.first) + " of it; look for what writes beyond its end"});
    } catch (const std::bad_alloc&) {
        report({errc::stray_write, damaged, "something wrote behind a block"});
    }
}

void TailGuards::admit(const Engine& engine, WriteObserver* observer, void* block, ByteCount bytes) {
    std::byte* const end = static_cast<std::byte*>(block) + bytes;
    const std::lock_guard lock(mutex_);
    sift(engine);
    const auto place = tails_.insert_or_assign(static_cast<const std::byte*>(block), bytes).first;
    try {
        if (observer != nullptr) observer->about_to_write({static_cast<std::uint64_t>(end - span_)}, canary_bytes);
    } catch (...) {
        tails_.erase(place);
        throw;
    }
    std::memset(end, static_cast<int>(canary), canary_bytes);
}

void TailGuards::retire(const Engine& engine, const void* block) noexcept {
    Tails::node_type retired;
    {
        const std::lock_guard lock(mutex_);
        sift(engine);
        retired = tails_.extract(static_cast<const std::byte*>(block));
    }
    if (!retired) return;
    if (const Tails::value_type tail{retired.key(), retired.mapped()}; damage(tail) != nullptr) tell(tail);
}

std::optional<ByteCount> TailGuards::size_of(const void* block) const noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = tails_.find(static_cast<const std::byte*>(block));
    return found == tails_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t TailGuards::check(const Engine& engine) noexcept {
    std::vector<Tails::value_type> damaged;
    try {
        const std::lock_guard lock(mutex_);
        sift(engine);
        for (auto tail = tails_.begin(); tail != tails_.end();) {
            if (damage(*tail) != nullptr) damaged.push_back(*tail);
            tail = damage(*tail) != nullptr ? tails_.erase(tail) : std::next(tail);
        }
    } catch (const std::bad_alloc&) {}  // the rest next time
    for (const Tails::value_type& tail : damaged) tell(tail);
    return damaged.size();
}

}  // namespace taiyen::heap
