#pragma once
/// A ring on a file in memory together with the records that it must hold.

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "log/ring.hpp"
#include "memory_file.hpp"

namespace taiyen::log {
inline std::ostream& operator<<(std::ostream& out, ScanEnd how) {
    return out << (how == ScanEnd::end ? "end" : how == ScanEnd::torn ? "torn" : "corrupt");
}
}  // namespace taiyen::log

namespace taiyen::log::test {

inline Uuid uuid_of(std::uint8_t first) {
    Uuid uuid;
    for (std::size_t i = 0; i < uuid.bytes.size(); ++i) uuid.bytes[i] = static_cast<std::uint8_t>(first + i);
    return uuid;
}

/// Bytes that tell where they come from.
inline std::vector<std::byte> payload_of(std::size_t size, std::uint64_t seed) {
    std::vector<std::byte> bytes(size);
    std::mt19937_64 random(seed);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

inline bool same(const Record& a, const Record& b) {
    return a.kind == b.kind && a.number == b.number && a.sequence == b.sequence && a.position == b.position && a.payload == b.payload;
}

struct Scanned {
    ScanResult result;
    std::vector<Record> records;
};

inline Scanned scan_all(const io::File& file, const RingIdentity& identity, const RingStart& start) {
    Scanned scanned;
    scanned.result = Ring::scan(file, identity, start, [&](const Record& record) {
        scanned.records.push_back(record);
        return true;
    });
    return scanned;
}

class RingFixture {
public:
    explicit RingFixture(ByteCount capacity = 64_KiB, std::uint64_t position = 0)
        : identity{uuid_of(0x10), uuid_of(0x80), capacity, true}, start{Epoch{0x1122'3344'5566'7788}, position, 1, 0x99aa'bbcc'ddee'ff00} {
        Ring::format(*file, identity);
        open();
    }
    void open() { ring = std::make_unique<Ring>(file, identity, start, start.position); }

    /// Appends a record of `size` bytes and notes it.
    const Record& append(std::size_t size) {
        Record record;
        record.kind = static_cast<std::uint32_t>(7 + records.size());
        record.number = 1000 + records.size();
        record.sequence = ring->next().sequence;
        record.position = ring->next().position;
        record.payload = payload_of(size, record.sequence * 31 + size);
        const std::span<const std::byte> piece(record.payload);
        attempted = record;
        BOOST_REQUIRE_EQUAL(ring->append(record.kind, record.number, {&piece, 1}), record.position);
        records.push_back(std::move(record));
        return records.back();
    }

    Scanned scan() const { return scan_all(*file, identity, start); }

    /// The scan finds exactly the records noted, and ends like this.
    void require(ScanEnd how) const {
        const Scanned scanned = scan();
        BOOST_REQUIRE_EQUAL(scanned.result.how, how);
        require_records(scanned, records.size());
    }
    /// The scan finds the first `count` records noted.
    void require_records(const Scanned& scanned, std::size_t count) const {
        BOOST_REQUIRE_EQUAL(scanned.records.size(), count);
        BOOST_REQUIRE_EQUAL(scanned.result.records, count);
        for (std::size_t i = 0; i < count; ++i) BOOST_REQUIRE(same(scanned.records[i], records[i]));
    }
    /// The sector of the file at a logical position.
    std::byte* at(std::uint64_t position) const { return file->bytes.data() + Ring::file_offset(identity, position); }

    std::shared_ptr<MemoryFile> file = std::make_shared<MemoryFile>();
    RingIdentity identity;
    RingStart start;
    std::unique_ptr<Ring> ring;
    std::vector<Record> records;
    Record attempted;  ///< the last record that was handed to the ring
};

}  // namespace taiyen::log::test
