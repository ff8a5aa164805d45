#pragma once
/// The type of a stored object as a program would write it, from its fingerprint (taiyen/stl/detail/fingerprint.hpp).

#include <string>
#include <string_view>

namespace taiyen::inspect {

/// "taiyen::map<int, taiyen::string>". A name that is not understood is returned as it stands. Hostile input gives a short text in short time: the length of what
/// comes out is bounded before it is built (a mangled name of n bytes can stand for 2^n of text).
std::string type_text(std::string_view fingerprint);

}  // namespace taiyen::inspect
