#pragma once
/// A group log on a gated file in memory.

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "gated_file.hpp"
#include "log/group_log.hpp"
#include "ring_fixture.hpp"
#include "throws.hpp"

namespace taiyen::log::test {

using taiyen::test::throws;

/// The bytes of the record with that serial: they tell the serial, and their length varies with it.
inline std::vector<std::byte> record_of(std::uint64_t serial, std::size_t size) { return payload_of(size, serial * 7919 + size); }

struct GroupLogFixture {
    explicit GroupLogFixture(ByteCount capacity = 64_KiB, const GroupLog::Options& options = {}, std::uint64_t position = 0)
        : identity{uuid_of(0x10), uuid_of(0x80), capacity, false}, start{Epoch{0x1122'3344'5566'7788}, position, 1, 0x99aa'bbcc'ddee'ff00} {
        Ring::format(*memory, identity);
        log = std::make_unique<GroupLog>(std::make_unique<Ring>(file, identity, start, start.position), Serial{0}, options);
    }

    /// The next serial's record; the caller's lock is ours.
    Serial append(std::size_t size) {
        const std::lock_guard lock(writer);
        const Serial serial{log->appended().value + 1};
        const auto bytes = record_of(serial.value, size);
        // In two pieces, to see that they are put together.
        const std::span<const std::byte> pieces[] = {std::span(bytes).first(size / 3), std::span(bytes).subspan(size / 3)};
        log->append(serial, pieces);
        sizes.push_back(size);
        return serial;
    }
    void commit(std::size_t size) { log->wait_durable(append(size)); }

    /// What a scan from `from` finds: the number of records in each group. Each record must be the right one.
    std::vector<std::size_t> groups(const RingStart& from, std::uint64_t first_serial = 1) const {
        std::vector<std::size_t> found;
        std::uint64_t serial = first_serial;
        const auto result = Ring::scan(*memory, identity, from, [&](const Record& group) {
            BOOST_REQUIRE_EQUAL(group.number, serial);
            found.push_back(0);
            BOOST_REQUIRE(for_each_in_group(group, [&](Serial at, std::span<const std::byte> bytes) {
                BOOST_REQUIRE_EQUAL(at.value, serial);
                const auto expected = record_of(serial, sizes.at(serial - 1));
                BOOST_REQUIRE(std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()));
                ++serial;
                ++found.back();
            }));
            return true;
        });
        BOOST_REQUIRE_EQUAL(result.how, ScanEnd::end);
        return found;
    }
    std::vector<std::size_t> groups() const { return groups(start); }

    std::shared_ptr<MemoryFile> memory = std::make_shared<MemoryFile>();
    std::shared_ptr<GatedFile> file = std::make_shared<GatedFile>(memory);
    RingIdentity identity;
    RingStart start;
    std::mutex writer;
    std::vector<std::size_t> sizes;  ///< by serial − 1
    std::unique_ptr<GroupLog> log;
};

}  // namespace taiyen::log::test
