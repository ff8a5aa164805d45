#pragma once
/// Keys that are no secret.

#include <cstddef>

#include <taiyen/seal/sealed_target.hpp>

namespace taiyen::seal::test {

/// Bytes that ascend from that one.
inline SealingKey key_of(unsigned first) {
    SealingKey key;
    for (std::byte& byte : key.bytes) byte = static_cast<std::byte>(first++);
    return key;
}

}  // namespace taiyen::seal::test
