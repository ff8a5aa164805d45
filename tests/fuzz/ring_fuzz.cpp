// Ring files as nobody writes them: read_identity and scan must say so by typed errors and ends, accept nothing that was not written, and stay inside
// the file.
//
// An input is either a whole file (first byte odd), or a recipe: a ring with some records, edits of its bytes, and which checksums are made right again
// afterwards. Without the last, what is accepted must be a prefix of what was written.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "fuzz/input.hpp"
#include "log/memory_file.hpp"
#include "log/ring.hpp"
#include "log/ring_forgery.hpp"

namespace {

using namespace taiyen;
using taiyen::fuzz::Input;
using namespace taiyen::log;
using namespace taiyen::log::test;

RingIdentity identity_of_recipe() {
    RingIdentity identity;
    identity.ring.bytes.fill(0x5a);
    identity.heap.bytes.fill(0xa5);
    identity.capacity_bytes = 32_KiB;
    return identity;
}

struct Outcome {
    bool threw = true;
    ScanResult result{};
    std::vector<Record> records;
};

/// Scans, and checks what holds for any file.
Outcome scan_checked(const MemoryFile& file, const RingIdentity& identity, const RingStart& start) {
    Outcome outcome;
    try {
        outcome.result = Ring::scan(file, identity, start, [&](const Record& record) {
            outcome.records.push_back(record);
            return true;
        });
        outcome.threw = false;
    } catch (const Error&) {
        return outcome;
    }
    std::uint64_t position = start.position;
    std::uint64_t sequence = start.sequence;
    for (const Record& record : outcome.records) {
        TAIYEN_CHECK(record.position == position && record.sequence == sequence);
        position += Ring::record_bytes(record.payload.size());
        ++sequence;
    }
    TAIYEN_CHECK(position - start.position <= identity.capacity_bytes);
    TAIYEN_CHECK(outcome.result.next.position == position && outcome.result.next.sequence == sequence);
    TAIYEN_CHECK(outcome.result.records == outcome.records.size() && outcome.result.next.epoch == start.epoch);
    return outcome;
}

/// The identity, if the file has one.
bool read_checked(const MemoryFile& file, RingIdentity& identity) {
    try {
        identity = Ring::read_identity(file);
    } catch (const Error& error) {
        TAIYEN_CHECK(error.code() == errc::not_a_heap || error.code() == errc::truncated || error.code() == errc::unsupported_version ||
                     error.code() == errc::foreign_byte_order || error.code() == errc::corrupt);
        return false;
    }
    TAIYEN_CHECK(file.bytes.size() >= Ring::header_bytes + identity.capacity_bytes);
    return true;
}

void whole_file(Input input) {
    MemoryFile file;
    const RingStart start{Epoch{0x0123'4567'89ab'cdef}, 28_KiB, 5, 0xfedc'ba98'7654'3210};  // the golden ring's
    file.bytes.assign(input.rest().begin(), input.rest().end());
    RingIdentity identity = identity_of_recipe();
    read_checked(file, identity);
    scan_checked(file, identity, start);
}

void recipe(Input input, std::uint64_t choices) {
    const bool fix_identity = (choices & 2U) != 0;
    const bool fix_headers = (choices & 4U) != 0;
    const bool fix_records = (choices & 8U) != 0;
    const bool fix_stamps = (choices & 16U) != 0;

    const RingIdentity identity = identity_of_recipe();
    const RingStart start{Epoch{99}, input.number(1) * 4_KiB, 1, 11};
    const auto file = std::make_shared<MemoryFile>();
    Ring::format(*file, identity);
    Ring ring(file, identity, start, start.position);
    std::vector<Record> written;
    for (std::uint64_t count = input.number(1) % 8; count > 0; --count) {
        Record record{static_cast<std::uint32_t>(count), count * 3, ring.next().sequence, ring.next().position, {}};
        record.payload.assign(input.number(2) % 12'000, static_cast<std::byte>(count * 37));
        if (!ring.fits(record.payload.size())) break;
        const std::span<const std::byte> piece(record.payload);
        ring.append(record.kind, record.number, {&piece, 1});
        written.push_back(std::move(record));
    }

    const std::vector<std::byte> original = file->bytes;
    const bool untouched = input.empty();
    while (!input.empty()) {
        const std::uint64_t what = input.number(1);
        const std::uint64_t offset = input.number(2) % file->bytes.size();
        std::byte* const at = file->bytes.data() + offset;
        std::byte* const sector = file->bytes.data() + round_down(offset, io::sector_bytes);
        switch (what % 8) {
            case 0: std::memset(sector, 0, io::sector_bytes); break;
            case 1:
                std::memmove(sector, file->bytes.data() + round_down(input.number(2) % file->bytes.size(), io::sector_bytes), io::sector_bytes);
                break;
            case 2: file->bytes.resize(file->bytes.size() - std::min<std::size_t>(input.number(2) % 100, file->bytes.size() - 1)); break;
            case 3: {
                const std::uint64_t value = input.number(8);
                std::memcpy(at, &value, std::min<std::size_t>(sizeof value, static_cast<std::size_t>(file->bytes.data() + file->bytes.size() - at)));
                break;
            }
            default: *at ^= static_cast<std::byte>(input.number(1));
        }
    }

    const bool complete = file->bytes.size() == Ring::header_bytes + identity.capacity_bytes;
    if (complete && fix_identity) {
        for (unsigned index = 0; index < layout::identity_slots; ++index) {
            layout::IdentitySlot slot;
            std::byte* const at = file->bytes.data() + index * layout::identity_slot_bytes;
            std::memcpy(static_cast<void*>(&slot), at, sizeof slot);
            forge_identity({at, sizeof slot}, index, slot);
        }
    }
    if (complete) {
        std::uint64_t seed = start.chain_seed;
        for (const Record& record : written) {
            const ByteCount bytes = Ring::record_bytes(record.payload.size());
            std::byte* const at = file->bytes.data() + Ring::file_offset(identity, record.position);
            for (ByteCount done = 0; fix_stamps && done < bytes; done += io::sector_bytes) {
                forge_stamp(file->bytes.data() + Ring::file_offset(identity, record.position + done), identity, start.epoch, record.position + done,
                            done == 0);
            }
            layout::RecordHeader header;
            std::memcpy(&header, at + sizeof(layout::SectorStamp), sizeof header);
            if (fix_headers) forge_header(at, identity, header);
            if (fix_records && at + bytes <= file->bytes.data() + file->bytes.size()) {
                forge_record({at, bytes}, seed);
                std::memcpy(&header, at + sizeof(layout::SectorStamp), sizeof header);
            }
            seed = header.record_checksum;
        }
    }

    RingIdentity found = identity;
    if (read_checked(*file, found)) {
        TAIYEN_CHECK(fix_identity || found == identity);
        scan_checked(*file, found, start);
    }
    const Outcome outcome = scan_checked(*file, identity, start);
    if (untouched) TAIYEN_CHECK(!outcome.threw && outcome.result.how == ScanEnd::end && outcome.records.size() == written.size());
    if (!fix_records) {
        TAIYEN_CHECK(outcome.records.size() <= written.size());
        for (std::size_t i = 0; i < outcome.records.size(); ++i) {
            const Record& a = outcome.records[i];
            const Record& b = written[i];
            TAIYEN_CHECK(a.kind == b.kind && a.number == b.number && a.position == b.position && a.payload == b.payload);
            for (ByteCount done = 0; done < Ring::record_bytes(a.payload.size()); done += io::sector_bytes) {
                const std::uint64_t offset = Ring::file_offset(identity, a.position + done);
                TAIYEN_CHECK(std::memcmp(file->bytes.data() + offset, original.data() + offset, io::sector_bytes) == 0);
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const std::uint64_t choices = input.number(1);
    if ((choices & 1U) != 0)
        whole_file(input);
    else
        recipe(input, choices);
    return 0;
}
