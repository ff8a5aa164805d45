#include "series.hpp"

#include <algorithm>

namespace series {
namespace {

constexpr const char* root = "series";

/// Calls `visit(points from `from` on, before `to`)` of a series that is there.
template <class Visit>
void within(const AllSeries& all, std::string_view name, Time from, Time to, Visit&& visit) {
    const auto at = all.find(name);
    if (at == all.end() || to <= from) return;
    visit(at->second, at->second.lower_bound(from), at->second.lower_bound(to));
}

}  // namespace

SeriesStore::SeriesStore(const std::filesystem::path& file, const taiyen::PersistentOptions& options) : heap_(taiyen::open_or_create, file, options) {
    taiyen::transact(heap_, [&] { all_ = &heap_.find_or_construct<AllSeries>(root); });
}

void SeriesStore::append(std::string_view name, std::span<const Point> points) {
    taiyen::transact(heap_, [&] {
        auto at = all_->find(name);
        if (at == all_->end()) at = all_->try_emplace(taiyen::string(name)).first;
        for (const Point& point : points) at->second.insert_or_assign(point.time, point.value);
    });
}

std::size_t SeriesStore::forget(std::string_view name, Time before) {
    std::size_t gone = 0;
    taiyen::transact(heap_, [&] {
        const auto at = all_->find(name);
        if (at == all_->end()) return;
        Series& points = at->second;
        gone = points.rank(before);
        points.erase(points.begin(), points.select(gone));
    });
    return gone;
}

std::vector<std::string> SeriesStore::names() const {
    const taiyen::ReadLock lock(heap_);
    std::vector<std::string> names;
    for (const auto& [name, points] : *all_) names.emplace_back(name);
    return names;
}

std::vector<Point> SeriesStore::range(std::string_view name, Time from, Time to) const {
    const taiyen::ReadLock lock(heap_);
    std::vector<Point> found;
    within(*all_, name, from, to, [&](const Series&, auto at, auto end) {
        for (; at != end; ++at) found.push_back({at->first, at->second});
    });
    return found;
}

std::size_t SeriesStore::count(std::string_view name, Time from, Time to) const {
    const taiyen::ReadLock lock(heap_);
    std::size_t points = 0;
    within(*all_, name, from, to, [&](const Series& all, auto, auto) { points = all.rank(to) - all.rank(from); });
    return points;
}

std::vector<Bucket> SeriesStore::downsample(std::string_view name, Time from, Time to, Time step) const {
    TAIYEN_CHECK(step > 0);
    const taiyen::ReadLock lock(heap_);
    std::vector<Bucket> buckets;
    within(*all_, name, from, to, [&](const Series&, auto at, auto end) {
        for (; at != end; ++at) {
            const auto& [time, value] = *at;
            const Time begin = from + (time - from) / step * step;
            if (buckets.empty() || buckets.back().from != begin) buckets.push_back({begin, 0, value, value, 0});
            Bucket& bucket = buckets.back();
            ++bucket.points;
            bucket.least = std::min(bucket.least, value);
            bucket.greatest = std::max(bucket.greatest, value);
            bucket.sum += value;
        }
    });
    return buckets;
}

}  // namespace series
