#pragma once
/// The registered procedures of this process, by name.
/// Thread rule: safe; what `find_procedure` returned stays good: nothing is ever unregistered.

#include <cstdint>
#include <string>
#include <string_view>

#include <taiyen/change/procedure.hpp>

namespace taiyen::change {

struct Procedure {
    std::string signature;
    std::uint64_t signature_checksum = 0;
    ErasedProcedure forward;
    ErasedProcedure inverse;
};

/// Null: none of that name.
const Procedure* find_procedure(std::string_view name);
std::uint64_t signature_checksum(std::string_view signature) noexcept;

}  // namespace taiyen::change
