#include "volatile/block_guards.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <taiyen/base/report.hpp>

#include "base/demangle.hpp"

namespace taiyen::heap {

namespace {

std::string hexadecimal(std::uintptr_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}
std::string hexadecimal(const void* address) { return hexadecimal(reinterpret_cast<std::uintptr_t>(address)); }

std::string bytes_text(ByteCount bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

/// Index of the first and one behind the last byte that isn't `filling`; equal: all are.
struct Damaged {
    ByteCount first = 0;
    ByteCount end = 0;
};
Damaged damaged(const std::byte* begin, ByteCount bytes, std::byte filling) {
    const auto other = [filling](std::byte byte) { return byte != filling; };
    const std::byte* const first = std::find_if(begin, begin + bytes, other);
    if (first == begin + bytes) return {};
    const std::byte* last = begin + bytes;
    while (!other(last[-1])) --last;
    return {static_cast<ByteCount>(first - begin), static_cast<ByteCount>(last - begin)};
}

/// The function, or the program's or library's file and the offset in it (which addr2line takes).
std::string frame_text(void* frame) {
    Dl_info info{};
    if (::dladdr(frame, &info) == 0 || info.dli_fname == nullptr) return hexadecimal(frame);
    if (info.dli_sname != nullptr) return demangled(info.dli_sname).value_or(info.dli_sname);
    const std::string_view file(info.dli_fname);
    const auto slash = file.rfind('/');
    return std::string(file.substr(slash == std::string_view::npos ? 0 : slash + 1)) + "+" +
           hexadecimal(reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
}

}  // namespace

BlockGuards::BlockGuards(const VolatileOptions& options, MemoryTool tool, std::uintptr_t heap_begin, ByteCount heap_bytes)
    : tool_(tool), records_places_(options.record_places), aborts_(options.abort_on_damage), quarantine_max_(options.quarantine_bytes),
      heap_begin_(heap_begin), heap_bytes_(heap_bytes), name_(options.name) {
    places_.emplace_back();
    if (void* frame = nullptr; records_places_) ::backtrace(&frame, 1);  // loads what it needs now, not in somebody's allocation
}

// Places: backtrace(3), because it is in the C library, unwinds without frame pointers, and leaves names of lines to addr2line.

BlockGuards::Place BlockGuards::here() {
    if (!records_places_) return 0;
    Frames frames{};
    constexpr int own = 2;  // this function, and admit or retire
    std::array<void*, frames_max + own> all{};
    const int count = ::backtrace(all.data(), static_cast<int>(all.size()));
    for (int i = own; i < count; ++i) frames[static_cast<std::size_t>(i - own)] = all[static_cast<std::size_t>(i)];
    std::size_t hash = 0;
    for (void* const frame : frames) hash = (hash ^ reinterpret_cast<std::uintptr_t>(frame)) * 0x9E37'79B9'7F4A'7C15ULL;
    const auto [first, last] = place_numbers_.equal_range(hash);
    for (auto number = first; number != last; ++number)
        if (places_[number->second] == frames) return number->second;
    const auto place = static_cast<Place>(places_.size());
    places_.push_back(frames);
    place_numbers_.emplace(hash, place);
    return place;
}

std::string BlockGuards::place_text(Place place) const {
    std::string text;
    for (void* const frame : places_[place]) {
        if (frame == nullptr) break;
        if (!text.empty()) text += " < ";
        text += frame_text(frame);
    }
    return text;
}

// Coming and going.

void* BlockGuards::admit(void* raw, ByteCount raw_bytes, ByteCount bytes, ByteCount alignment) {
    Record record;
    record.raw = raw;
    record.raw_bytes = raw_bytes;
    record.front = front_bytes(alignment);
    record.bytes = bytes;
    // Whoever finds the record finds the canaries, too.
    tool_open(tool_, raw, raw_bytes);
    if (fills()) {
        std::memset(raw, static_cast<int>(canary), record.front);
        std::memset(record.block() + bytes, static_cast<int>(canary), record.back());
    }
    shut(record);
    const std::lock_guard lock(mutex_);
    record.allocated = here();
    records_.insert_or_assign(reinterpret_cast<std::uintptr_t>(raw), record);
    tool_block_begins(tool_, record.block(), bytes, canary_bytes);
    return record.block();
}

/// The canaries, and all of a freed block.
void BlockGuards::shut(const Record& record) const noexcept {
    tool_close(tool_, record.raw, record.front);
    if (!record.live) tool_close(tool_, record.block(), record.bytes);
    // From the first byte behind the block: the sanitizer's last eight bytes are cut where the block ends.
    tool_close(tool_, record.block() + record.bytes, record.back());
}

void BlockGuards::unlock_memory(const Record& record) const noexcept {
    if (tool_ == MemoryTool::address_sanitizer) tool_open(tool_, record.raw, record.raw_bytes);
}

const BlockGuards::Record* BlockGuards::find(const void* address) const {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    auto behind = records_.upper_bound(value);
    if (behind == records_.begin()) return nullptr;
    const Record& record = (--behind)->second;
    return value - behind->first < record.raw_bytes ? &record : nullptr;
}

bool BlockGuards::retire(void* block) noexcept {
    Findings findings;
    bool freed = false;
    try {
        const std::lock_guard lock(mutex_);
        auto* const record = const_cast<Record*>(find(block));
        if (record == nullptr || record->block() != block || !record->live) {
            findings.push_back(bad_free(block));
        } else {
            freed = true;
            look(*record, findings);
            record->live = false;
            if (fills()) std::memset(block, static_cast<int>(poison), record->bytes);
            tool_block_ends(tool_, block, record->bytes, canary_bytes);
            shut(*record);
            record->freed = here();
            quarantine_.push_back(reinterpret_cast<std::uintptr_t>(record->raw));
            quarantined_ += record->raw_bytes;
        }
    } catch (const std::bad_alloc&) {}  // without its place, its words, or kept until the heap is closed
    tell(findings);
    return freed;
}

void* BlockGuards::leave_quarantine(ByteCount kept_bytes) noexcept {
    Findings findings;
    void* raw = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (quarantined_ <= kept_bytes || quarantine_.empty()) return nullptr;
        const auto found = records_.find(quarantine_.front());
        quarantine_.pop_front();
        look(found->second, findings);
        raw = found->second.raw;
        quarantined_ -= found->second.raw_bytes;
        records_.erase(found);
    }
    tell(findings);
    return raw;
}

std::optional<ByteCount> BlockGuards::size_of(const void* block) const noexcept {
    const std::lock_guard lock(mutex_);
    const Record* const record = find(block);
    return record != nullptr && record->live && record->block() == block ? std::optional(record->bytes) : std::nullopt;
}

// Looking and telling.

std::string BlockGuards::name_of(const Record& record) const {
    std::string text = std::string(record.live ? "the block" : "the freed block") + " of " + bytes_text(record.bytes) + " at " +
                       hexadecimal(record.block()) + " of the heap " + (name_.empty() ? "at " + hexadecimal(heap_begin_) : name_);
    if (record.allocated != 0) text += ", allocated at " + place_text(record.allocated);
    if (record.freed != 0) text += (record.allocated != 0 ? "; freed at " : ", freed at ") + place_text(record.freed);
    return text;
}

void BlockGuards::tell(const Findings& findings) const noexcept {
    for (const Finding& finding : findings) report({finding.code, finding.address, finding.text});
    if (aborts_ && !findings.empty()) std::abort();
}

std::string BlockGuards::describe(const void* address) const {
    const std::lock_guard lock(mutex_);
    const Record* const record = find(address);
    if (record == nullptr) return "no block of the heap at " + hexadecimal(heap_begin_) + " is there";
    const auto* const place = static_cast<const std::byte*>(address);
    if (place == record->block()) return name_of(*record);
    if (place < record->block()) return bytes_text(static_cast<ByteCount>(record->block() - place)) + " before " + name_of(*record);
    return bytes_text(static_cast<ByteCount>(place - record->block())) + " behind the beginning of " + name_of(*record);
}

BlockGuards::Finding BlockGuards::bad_free(const void* block) const {
    const Record* const record = find(block);
    if (record != nullptr && record->block() == block)
        return {errc::double_free, block, "freed a second time: " + name_of(*record) + "; the free is ignored"};
    if (record != nullptr) {
        const auto distance = static_cast<const std::byte*>(block) - record->block();
        return {errc::double_free, block,
                "a pointer was freed that points " + bytes_text(static_cast<ByteCount>(std::abs(distance))) + (distance < 0 ? " before " : " into ") +
                    name_of(*record) + "; the free is ignored"};
    }
    if (reinterpret_cast<std::uintptr_t>(block) - heap_begin_ < heap_bytes_)
        return {errc::double_free, block,
                "a pointer was freed that is no block of the heap at " + hexadecimal(heap_begin_) +
                    " (freed long ago, or never allocated); the free is ignored"};
    return {errc::foreign_pointer, block,
            "a pointer was freed that lies outside of the heap at " + hexadecimal(heap_begin_) + "; the free is ignored"};
}

bool BlockGuards::look(const Record& record, Findings& findings) noexcept {
    if (!fills()) return false;
    unlock_memory(record);
    std::byte* const block = record.block();
    const Damaged before = damaged(static_cast<const std::byte*>(record.raw), record.front, canary);
    const Damaged behind = damaged(block + record.bytes, record.back(), canary);
    const Damaged inside = record.live ? Damaged{} : damaged(block, record.bytes, poison);
    const bool found = before.end != 0 || behind.end != 0 || inside.end != 0;
    if (found) {  // as before, so that what is told next is new
        std::memset(record.raw, static_cast<int>(canary), record.front);
        std::memset(block + record.bytes, static_cast<int>(canary), record.back());
        if (!record.live) std::memset(block, static_cast<int>(poison), record.bytes);
    }
    shut(record);
    try {
        const auto say = [&](const std::byte* where, const Damaged& damage, const std::string& text) {
            findings.push_back({errc::stray_write, where, text + ", and up to " + bytes_text(damage.end - damage.first) + " from there"});
        };
        if (before.end != 0)
            say(static_cast<const std::byte*>(record.raw) + before.first, before,
                "something wrote before " + name_of(record) + ": at offset -" + std::to_string(record.front - before.first));
        if (behind.end != 0)
            say(block + record.bytes + behind.first, behind,
                "something wrote behind " + name_of(record) + ": at offset " + std::to_string(record.bytes + behind.first));
        if (inside.end != 0)
            say(block + inside.first, inside, "something wrote into " + name_of(record) + ": at offset " + std::to_string(inside.first));
    } catch (const std::bad_alloc&) {}  // without words
    return found;
}

std::size_t BlockGuards::check() noexcept {
    Findings findings;
    std::size_t found = 0;
    {
        const std::lock_guard lock(mutex_);
        for (auto& [raw, record] : records_) found += look(record, findings) ? 1 : 0;
    }
    tell(findings);
    return found;
}

void BlockGuards::forget_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [raw, record] : records_)
        if (record.live) tool_block_ends(tool_, record.block(), record.bytes, canary_bytes);
    records_.clear();
    quarantine_.clear();
    quarantined_ = 0;
}

BlockGuards::Totals BlockGuards::totals() const {
    const std::lock_guard lock(mutex_);
    Totals totals;
    for (const auto& [raw, record] : records_) {
        if (!record.live) continue;
        ++totals.blocks;
        totals.bytes += record.bytes;
    }
    return totals;
}

std::string BlockGuards::place_of(const void* block) const {
    const std::lock_guard lock(mutex_);
    const Record* const record = find(block);
    return record != nullptr && record->live && record->allocated != 0 ? place_text(record->allocated) : std::string();
}

LiveBlocks BlockGuards::live_blocks(std::size_t listed_max) const {
    const std::lock_guard lock(mutex_);
    LiveBlocks all;
    for (const auto& [raw, record] : records_) {
        if (!record.live) continue;
        ++all.count;
        all.bytes += record.bytes;
        ++all.by_size[record.bytes];
        if (all.listed.size() == listed_max) continue;
        LiveBlock block;
        block.address = record.block();
        block.bytes = record.bytes;
        if (record.allocated != 0) block.place = place_text(record.allocated);
        std::memcpy(block.beginning.data(), record.block(), std::min(record.bytes, LiveBlock::beginning_max));
        all.listed.push_back(std::move(block));
    }
    return all;
}

}  // namespace taiyen::heap
