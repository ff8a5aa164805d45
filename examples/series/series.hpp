#pragma once
/// Time series in a transactional heap: measurements by name and time, appended durably, read in ranges, thinned out.
///
/// Thread rule: safe. Durability: what changes the series is durable when it returns, all of it or nothing.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/taiyen.hpp>

namespace series {

/// Milliseconds, of whatever epoch.
using Time = std::int64_t;

struct Point {
    Time time = 0;
    double value = 0;
    bool operator==(const Point&) const = default;
};

/// What a stretch of time comes to.
struct Bucket {
    Time from = 0;
    std::uint64_t points = 0;
    double least = 0, greatest = 0, sum = 0;
    bool operator==(const Bucket&) const = default;
};

/// A tree with many points in a node: appending fills nodes, a range is read node by node. Ranked, so that points are counted without a walk.
using Series = taiyen::btree_map<Time, double, taiyen::ranked<>>;
/// Series stay where they are, however many names come.
using AllSeries = taiyen::ordered_map<taiyen::string, Series>;

class SeriesStore {
public:
    /// Opens the file or makes it. Throws: taiyen::Error, taiyen::HeapFull.
    explicit SeriesStore(const std::filesystem::path& file, const taiyen::PersistentOptions& options = {});

    /// A point at a time that is there already replaces the old one. Points in the order of time are the fastest. Throws: taiyen::HeapFull, and nothing has changed.
    void append(std::string_view name, std::span<const Point> points);
    /// Forgets what is older; returns how many points that were.
    std::size_t forget(std::string_view name, Time before);

    std::vector<std::string> names() const;
    /// From `from` on, before `to`. A series that isn't there is empty.
    std::vector<Point> range(std::string_view name, Time from = std::numeric_limits<Time>::min(), Time to = std::numeric_limits<Time>::max()) const;
    /// How many points there are. Complexity: logarithmic.
    std::size_t count(std::string_view name, Time from, Time to) const;
    /// The range in steps, but for steps without points. Requires: step > 0.
    std::vector<Bucket> downsample(std::string_view name, Time from, Time to, Time step) const;

private:
    mutable taiyen::TransactionalHeap heap_;
    AllSeries* all_;
};

}  // namespace series
