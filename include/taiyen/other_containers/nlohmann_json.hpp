#pragma once
/// nlohmann's JSON values in a heap. An opt-in; needs nlohmann/json.hpp, not part of the umbrella header.
///
/// Their memory is that of the heap which the thread's DurableScope names (stl/durable_allocator.hpp): keep one open around whatever changes a value, temporaries included.
/// Thread rule: as the values.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <taiyen/stl/detail/layout.hpp>
#include <taiyen/stl/durable_allocator.hpp>

namespace taiyen {

using json_string = std::basic_string<char, std::char_traits<char>, durable_allocator<char>>;
using json = nlohmann::basic_json<std::map, std::vector, json_string, bool, std::int64_t, std::uint64_t, double, durable_allocator,
                                  nlohmann::adl_serializer, std::vector<std::uint8_t, durable_allocator<std::uint8_t>>>;

template <>
inline constexpr std::uint64_t layout_tag<json> =
    NLOHMANN_JSON_VERSION_MAJOR * 1'000'000 + NLOHMANN_JSON_VERSION_MINOR * 1'000 + NLOHMANN_JSON_VERSION_PATCH;

}  // namespace taiyen
