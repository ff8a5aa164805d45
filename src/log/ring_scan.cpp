// Finds what a ring holds, from where somebody knows that it begins to where it ends, and how it ends.

#include <algorithm>
#include <cstring>
#include <future>
#include <limits>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "log/ring.hpp"
#include "log/ring_stamps.hpp"

namespace taiyen::log {
namespace {

using layout::block_bytes;
using layout::RecordHeader;
using layout::sector_bytes;
using layout::SectorStamp;

/// Serves blocks of the ring by logical position, through a window that is read directly. Who reads on is read ahead for: the window grows, and the next one comes while this one is looked at.
class BlockReader {
public:
    /// Nothing at or behind `limit` is read.
    BlockReader(const io::File& file, const RingIdentity& identity, std::uint64_t limit) : file_(file), identity_(identity), limit_(limit) {}

    /// Valid until the next call.
    const std::byte* block(std::uint64_t position) {
        if (position < begin_ || position >= end_) fill(position);
        return window_.data() + (position - begin_);
    }

private:
    static constexpr ByteCount first_window_bytes = 256_KiB;
    static constexpr ByteCount window_bytes_max = 2_MiB;

    void fill(std::uint64_t position) {
        const bool reads_on = end_ != 0 && position == end_;
        begin_ = end_ = 0;
        ByteCount bytes = 0;
        if (ahead_.valid()) {
            // Waited for even if something else is wanted: its buffer is ours. What went wrong there matters only if its bytes do.
            ahead_.wait();
            if (std::future<ByteCount> ahead = std::move(ahead_); position == ahead_position_) {
                bytes = ahead.get();
                std::swap(window_, ahead_window_);
            }
        }
        if (bytes == 0) bytes = read(position, window_);
        begin_ = position;
        end_ = position + bytes;
        if (reads_on) {
            size_ = std::min(2 * size_, window_bytes_max);
            read_ahead();
        }
    }

    void read_ahead() {
        if (end_ >= limit_) return;
        ahead_position_ = end_;
        try {
            ahead_ = std::async(std::launch::async, [this] { return read(ahead_position_, ahead_window_); });
        } catch (const std::system_error&) {
            // No thread to be had: every window is read when it is needed.
        }
    }

    /// As much as `size_` says, and the ring holds; returns how much.
    ByteCount read(std::uint64_t position, AlignedBuffer& window) const {
        const ByteCount wanted = std::min<std::uint64_t>({size_, identity_.capacity_bytes, limit_ - position});
        const ByteCount first = std::min<std::uint64_t>(wanted, identity_.capacity_bytes - position % identity_.capacity_bytes);
        window.grow(wanted);
        read(position, window.data(), first);
        if (first < wanted) read(position + first, window.data() + first, wanted - first);
        return wanted;
    }
    void read(std::uint64_t position, std::byte* to, ByteCount bytes) const {
        const std::uint64_t offset = Ring::file_offset(identity_, position);
        if (const ByteCount got = file_.read_direct({to, bytes}, offset); got != bytes)
            throw Error(errc::truncated, file_.path(), offset + got, "this ring file has become shorter");
    }

    const io::File& file_;
    const RingIdentity& identity_;
    std::uint64_t limit_;
    ByteCount size_ = first_window_bytes;
    AlignedBuffer window_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    AlignedBuffer ahead_window_;
    std::uint64_t ahead_position_ = 0;
    std::future<ByteCount> ahead_;  ///< last: its end waits for the thread that fills the window
};

/// How far behind a missing record a later one is looked for: it would prove that the missing one had been acknowledged.
constexpr ByteCount look_ahead_bytes = 1_MiB;

class Scanner {
public:
    Scanner(const io::File& file, const RingIdentity& identity, const RingStart& start, std::uint64_t end)
        : identity_(identity), stamper_(identity, start.epoch), limit_(std::min(start.position + identity.capacity_bytes, end)),
          reader_(file, identity, limit_), next_(start) {}

    /// Reads the record at `next()` into `record`; nothing: that was the end, and `how` says which.
    bool read(Record& record, ScanEnd& how) {
        if (next_.position == limit_) {
            how = ScanEnd::end;  // a full ring
            return false;
        }
        const std::byte* const first = reader_.block(next_.position);
        const SectorState beginning = judge(first, next_.position, true);
        if (beginning != SectorState::begins) {
            how = without_beginning(first, beginning);
            return false;
        }
        const auto header = load<RecordHeader>(first + sizeof(SectorStamp));
        if (header.magic != layout::record_magic || header.header_checksum != header_checksum(header, stamper_.ring_key())) {
            how = ScanEnd::corrupt;
            return false;
        }
        if (header.epoch != next_.epoch.value) {
            how = ScanEnd::end;  // of another life whose tag happens to be the same
            return false;
        }
        const ByteCount bytes = Ring::record_bytes(header.payload_bytes);
        if (header.sequence != next_.sequence || header.position != next_.position || header.flags != 0 || bytes > limit_ - next_.position ||
            std::memcmp(header.heap, identity_.heap.bytes.data(), sizeof header.heap) != 0) {
            how = ScanEnd::corrupt;
            return false;
        }
        if (const SectorState found = collect(bytes); found != SectorState::continues) {
            how = found == SectorState::stale && !begins_at(next_.position + bytes) ? ScanEnd::torn : ScanEnd::corrupt;
            torn_bytes_ = how == ScanEnd::torn ? bytes : 0;
            return false;
        }
        std::memset(raw_.data() + sizeof(SectorStamp) + offsetof(RecordHeader, record_checksum), 0, sizeof header.record_checksum);
        if (checksum(raw_, seed_of(next_)) != header.record_checksum && !planted(Bug::torn_group_accepted)) {
            how = ScanEnd::corrupt;
            return false;
        }
        record.kind = header.kind;
        record.number = header.number;
        record.sequence = header.sequence;
        record.position = next_.position;
        record.file_offset = Ring::file_offset(identity_, next_.position);
        extract_payload(header.payload_bytes, record.payload);
        next_.position += bytes;
        ++next_.sequence;
        next_.chain_seed = header.record_checksum;
        return true;
    }

    const RingStart& next() const { return next_; }
    ByteCount torn_bytes() const { return torn_bytes_; }

    /// The highest number of a record of this life and lap that begins behind `next()`, by headers with right checksums; 0: none.
    std::uint64_t newest_behind() {
        std::uint64_t newest = 0;
        for (std::uint64_t position = next_.position; position < limit_; position += block_bytes) {
            if (!begins_at(position)) continue;
            const auto header = load<RecordHeader>(reader_.block(position) + sizeof(SectorStamp));
            const bool is_right = header.magic == layout::record_magic && header.header_checksum == header_checksum(header, stamper_.ring_key()) &&
                                  header.epoch == next_.epoch.value && header.position == position;
            if (is_right) newest = std::max(newest, header.number);
        }
        return newest;
    }

private:
    SectorState judge(const std::byte* sector, std::uint64_t position, bool is_first) const {
        if ((planted(Bug::skip_stamp_check) || planted(Bug::torn_group_accepted)) &&
            (!is_first || load<RecordHeader>(sector + sizeof(SectorStamp)).magic == layout::record_magic)) {
            return is_first ? SectorState::begins : SectorState::continues;
        }
        return stamper_.judge(sector, position);
    }

    /// Reads the record's sectors into `raw_`, as far as they carry the right stamp. Memory grows only by what has been seen to be there.
    /// Returns `continues`, or the state of the first sector that isn't right.
    SectorState collect(ByteCount bytes) {
        raw_.clear();
        for (ByteCount at = 0; at < bytes; at += block_bytes) {
            const std::uint64_t position = next_.position + at;
            const std::byte* const block = reader_.block(position);
            for (ByteCount in_block = 0; in_block < block_bytes; in_block += sector_bytes) {
                const bool is_first = at + in_block == 0;
                const SectorState state = judge(block + in_block, position + in_block, is_first);
                if (state != (is_first ? SectorState::begins : SectorState::continues))
                    return state == SectorState::stale ? SectorState::stale : SectorState::damaged;
            }
            raw_.insert(raw_.end(), block, block + block_bytes);
        }
        return SectorState::continues;
    }

    void extract_payload(ByteCount payload_bytes, std::vector<std::byte>& payload) const {
        payload.resize(payload_bytes);
        ByteCount done = 0;
        for (ByteCount from = sizeof(SectorStamp) + sizeof(RecordHeader); done < payload_bytes;) {
            const ByteCount part = std::min(payload_bytes - done, sector_bytes - from % sector_bytes);
            std::memcpy(payload.data() + done, raw_.data() + from, part);
            done += part;
            from += part + sizeof(SectorStamp);
        }
    }

    /// The sector where a record should begin doesn't begin one.
    ScanEnd without_beginning(const std::byte* block, SectorState beginning) {
        bool others_there = false;
        bool others_stale = true;
        for (ByteCount at = sector_bytes; at < block_bytes; at += sector_bytes) {
            const SectorState state = stamper_.judge(block + at, next_.position + at);
            others_there = others_there || state == SectorState::begins || state == SectorState::continues;
            others_stale = others_stale && state == SectorState::stale;
        }
        // A single damaged sector among stale ones is rot where no record was ever complete.
        if (beginning == SectorState::continues || (beginning == SectorState::damaged && !others_stale)) return ScanEnd::corrupt;
        const std::uint64_t last = std::min(limit_, next_.position + look_ahead_bytes);
        for (std::uint64_t position = next_.position + block_bytes; position < last; position += block_bytes)
            if (begins_at(position)) return ScanEnd::corrupt;
        return others_there ? ScanEnd::torn : ScanEnd::end;
    }

    /// Whether a record of this life and lap begins there: the one before it had been acknowledged then.
    bool begins_at(std::uint64_t position) { return position < limit_ && stamper_.judge(reader_.block(position), position) == SectorState::begins; }

    const RingIdentity& identity_;
    Stamper stamper_;
    std::uint64_t limit_;
    BlockReader reader_;
    RingStart next_;
    std::vector<std::byte> raw_;
    ByteCount torn_bytes_ = 0;
};

}  // namespace

ScanResult Ring::scan(const io::File& file, const RingIdentity& identity, const RingStart& start, const std::function<bool(const Record&)>& sink,
                      std::uint64_t end) {
    if (!capacity_is_possible(identity.capacity_bytes) || start.position % block_bytes != 0 ||
        start.position > std::numeric_limits<std::uint64_t>::max() / 2) {
        throw Error(errc::corrupt, file.path(),
                    "a ring of " + std::to_string(identity.capacity_bytes) + " bytes can't begin at position " + std::to_string(start.position));
    }
    Scanner scanner(file, identity, start, end);
    ScanResult result{ScanEnd::end, start};
    for (Record record; scanner.read(record, result.how);) {
        ++result.records;
        if (!sink(record)) break;
    }
    result.next = scanner.next();
    result.torn_bytes = scanner.torn_bytes();
    return result;
}

std::uint64_t Ring::newest_behind(const io::File& file, const RingIdentity& identity, const RingStart& from) {
    return Scanner(file, identity, from, ~std::uint64_t{0}).newest_behind();
}

}  // namespace taiyen::log
