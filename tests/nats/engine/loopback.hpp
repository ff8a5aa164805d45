#pragma once
/// Addresses of this machine.

#include <netinet/in.h>

#include <cstdint>

namespace taiyen::nats::test {

/// 0: any port that is free.
inline sockaddr_in loopback(unsigned port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

}  // namespace taiyen::nats::test
