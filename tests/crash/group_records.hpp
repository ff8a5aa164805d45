#pragma once
/// Records for the group log alone: serial n has bytes that follow from n.

#include <algorithm>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <vector>

#include "io/storage.hpp"
#include "log/group_log.hpp"

namespace taiyen::crash::group {

using log::GroupLog;
using log::Ring;

inline const std::filesystem::path log_path = "/disk/heap.tyn.log";

inline log::RingIdentity identity_of_test(ByteCount capacity) {
    log::RingIdentity identity;
    identity.ring.bytes.fill(0x33);
    identity.heap.bytes.fill(0x44);
    identity.capacity_bytes = capacity;
    identity.is_new = false;
    return identity;
}

inline std::vector<std::byte> bytes_of(std::uint64_t serial) {
    std::mt19937_64 random(serial);
    std::vector<std::byte> bytes(random() % 10 == 0 ? random() % 6000 : random() % 400);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

inline void append(GroupLog& log, std::uint64_t serial) {
    const auto bytes = bytes_of(serial);
    const std::span<const std::byte> piece(bytes);
    log.append({serial}, {&piece, 1});
}

struct Found {
    std::uint64_t last;
    log::RingStart next;
};

/// The serials behind `before`, each with its content; whole groups only. Throws if anything is wrong.
inline Found scan(const io::File& file, const log::RingIdentity& identity, const log::RingStart& start, std::uint64_t before) {
    std::uint64_t last = before;
    const auto result = Ring::scan(file, identity, start, [&](const log::Record& group) {
        const bool sound = log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> bytes) {
            if (serial.value != last + 1)
                throw std::runtime_error("serial " + std::to_string(serial.value) + " follows serial " + std::to_string(last));
            const auto expected = bytes_of(serial.value);
            if (!std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()))
                throw std::runtime_error("serial " + std::to_string(serial.value) + " has another content");
            last = serial.value;
        });
        if (!sound) throw std::runtime_error("a record is no group");
        return true;
    });
    if (result.how == log::ScanEnd::corrupt) throw std::runtime_error("a crash is taken for corruption");
    return {last, result.next};
}

}  // namespace taiyen::crash::group
