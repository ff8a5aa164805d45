#pragma once
/// Whether a container in a heap still finds its keys by its hash: a hash that changes with the process, or with a rebuild, loses all of them in silence.

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>

#include <taiyen/heap/detail/access.hpp>
#include <taiyen/stl/detail/fingerprint.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen::stl {

template <class C>
concept hashed_container = has_allocator<C> && requires(const C& table, const typename C::key_type& key) {
    typename C::hasher;
    table.find(key) == table.end();
    table.begin();
};
/// Some of them look at every element while they are small, and need no hash to find a key; but they say where it should be.
template <class C>
concept bucketed_container = hashed_container<C> && requires(const C& table, const typename C::key_type& key) {
    table.begin(table.bucket(key)) == table.end(table.bucket(key));
};

template <class C>
bool is_found(const C& table, const typename C::value_type& element, const typename C::key_type& key) {
    if constexpr (bucketed_container<C>) {
        constexpr int looked_at_max = 64;  // in a bucket of many
        const auto bucket = table.bucket(key);
        auto at = table.begin(bucket);
        for (int n = 0; n < looked_at_max; ++n, ++at) {
            if (at == table.end(bucket)) return false;
            if (std::addressof(*at) == std::addressof(element)) return true;
        }
        return true;
    } else {
        return table.find(key) != table.end();
    }
}

/// Looks for a few keys of the container. Complexity: constant.
template <class C>
bool keys_are_found(const C& table) {
    constexpr int keys_max = 8;  // one of a few buckets is right by chance
    auto at = table.begin();
    for (int n = 0; n < keys_max && at != table.end(); ++n, ++at) {
        if constexpr (std::is_same_v<typename C::key_type, typename C::value_type>) {
            if (!is_found(table, *at, *at)) return false;
        } else {
            if (!is_found(table, *at, at->first)) return false;
        }
    }
    return true;
}

/// Where a named object is a container with a hash: throws Error{type_mismatch} if it finds its keys no more. Once for each name of an open heap.
template <class T>
void check_keys(const heap::HeapCore& core, std::string_view name, const T& object) {
    if constexpr (hashed_container<T>) {
        if (heap::was_looked_at(core, name)) return;
        if (!keys_are_found(object)) heap::throw_other_hash(core, name, fingerprint<T>());
        heap::set_looked_at(core, name);
    }
}

}  // namespace taiyen::stl
