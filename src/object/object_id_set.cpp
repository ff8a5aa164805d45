#include <taiyen/object/object_id_set.hpp>

#include <stdexcept>
#include <string>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"

namespace taiyen::object {

void throw_bad_ids(std::uint64_t offset, const char* what) {
    throw Error(errc::corrupt, {}, offset, std::string("a serialised set of ids is damaged: ") + what + "; take another copy of the bytes");
}

void throw_short_ids(std::uint64_t bytes) {
    throw Error(errc::truncated, {}, bytes, "a serialised set of ids has only " + std::to_string(bytes) + " bytes; take another copy of them");
}

void throw_foreign_ids() {
    throw Error(errc::foreign_byte_order, "a serialised set of ids comes from a machine with another byte order; serialise it on one with this");
}

void throw_unknown_version(std::uint32_t version) {
    throw Error(errc::unsupported_version, "a serialised set of ids has version " + std::to_string(version) + ", this library reads version " +
                                               std::to_string(serialised_version) + "; use a newer library");
}

void throw_too_many_ids() { throw std::length_error("a set of ids can't hold all 2^64 of them: leave one out"); }

void throw_no_such_number(std::uint64_t number, std::uint64_t size) {
    throw std::out_of_range("a set of " + std::to_string(size) + " ids has none with number " + std::to_string(number) + "; numbers begin with 0");
}

std::uint64_t ids_checksum(const std::byte* bytes, std::size_t count) noexcept { return checksum({bytes, count}, serialised_magic); }

}  // namespace taiyen::object
