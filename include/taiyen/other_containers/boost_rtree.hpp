#pragma once
/// Boost.Geometry's r-tree in a heap. An opt-in; needs Boost, not part of the umbrella header.
///
/// Thread rule: as the container.

#include <cstdint>
#include <iterator>
#include <utility>

#include <boost/geometry.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <boost/version.hpp>

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

/// An r-tree that can be constructed with an allocator alone, as heaps do it: the base takes whatever it is given first for a range of values.
template <class T, class Parameters, class Indexable = boost::geometry::index::indexable<T>, class Equal = boost::geometry::index::equal_to<T>>
class boost_rtree : public boost::geometry::index::rtree<T, Parameters, Indexable, Equal, persistent_allocator<T>> {
    using Base = boost::geometry::index::rtree<T, Parameters, Indexable, Equal, persistent_allocator<T>>;

public:
    using allocator_type = persistent_allocator<T>;
    /// What this says of bytes in a heap: another number, another layout.
    static constexpr std::uint64_t layout_version = BOOST_VERSION;

    explicit boost_rtree(const allocator_type& allocator = allocator_type()) : Base({}, {}, {}, allocator) {}
    /// Packs the values, which makes a better tree than inserting them.
    template <std::input_iterator It>
    boost_rtree(It from, It to, const allocator_type& allocator = allocator_type()) : Base(from, to, {}, {}, {}, allocator) {}
    boost_rtree(const boost_rtree&) = default;
    boost_rtree(const boost_rtree& other, const allocator_type& allocator) : Base(other, allocator) {}
    boost_rtree(boost_rtree&&) = default;
    boost_rtree(boost_rtree&& other, const allocator_type& allocator) : Base(std::move(other), allocator) {}
    boost_rtree& operator=(const boost_rtree&) = default;
    boost_rtree& operator=(boost_rtree&&) = default;
    ~boost_rtree() = default;
};

}  // namespace taiyen
