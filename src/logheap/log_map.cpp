// The record of a LogMap: the entries of one hash, one behind the other.
//
//     entry = | EntryHead 24 | key | zeros up to a multiple of 8 | value | zeros up to a multiple of 8 |

#include <taiyen/logheap/log_map.hpp>

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "logheap/log_layout.hpp"

namespace taiyen::logheap {

namespace {

struct EntryHead {
    std::uint32_t magic;
    std::uint32_t key_bytes;
    std::uint64_t map;  ///< hash of its name
    std::uint64_t value_bytes;
};
static_assert(sizeof(EntryHead) == 24);
constexpr std::uint32_t entry_magic = 0x4d'4c'79'74;  // "tyLM"

/// Ids of maps have it, ids that a heap gives never reach it.
constexpr std::uint64_t map_bit = std::uint64_t{1} << 63U;

struct Entry {
    std::uint64_t map;
    ByteMap::Bytes key;
    ByteMap::Bytes value;
    ByteMap::Bytes all;  ///< with its head
};

/// Calls `f(Entry)` until it returns false.
template <class F>
void for_each_entry(const LogView& record, const std::filesystem::path& path, F&& f) {
    ByteMap::Bytes rest = record.bytes();
    while (!rest.empty()) {
        EntryHead head{};
        if (rest.size() >= sizeof head) std::memcpy(&head, rest.data(), sizeof head);
        const std::uint64_t key_room = round_up(std::uint64_t{head.key_bytes}, 8);
        if (head.magic != entry_magic || key_room > rest.size() - sizeof head || head.value_bytes > rest.size() - sizeof head - key_room ||
            round_up(head.value_bytes, 8) > rest.size() - sizeof head - key_room) {
            throw Error(errc::type_mismatch, path,
                        "the value " + std::to_string(static_cast<std::uint64_t>(record.id())) +
                            " is no map's, but a key of a map has its id; put it under an id below 2^63");
        }
        const std::uint64_t length = sizeof head + key_room + round_up(head.value_bytes, 8);
        if (!f(Entry{head.map, rest.subspan(sizeof head, head.key_bytes), rest.subspan(sizeof head + key_room, head.value_bytes),
                     rest.first(length)}))
            return;
        rest = rest.subspan(length);
    }
}

void append_padded(std::vector<std::byte>& to, ByteMap::Bytes bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
    to.resize(round_up(to.size(), 8));
}

bool same(ByteMap::Bytes a, ByteMap::Bytes b) { return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0); }

/// The record's other entries, and that one if `value` is given.
std::vector<std::byte> record_with(const LogView& old, const std::filesystem::path& path, std::uint64_t map, ByteMap::Bytes key,
                                   const ByteMap::Bytes* value) {
    std::vector<std::byte> made;
    made.reserve(old.bytes().size() + sizeof(EntryHead) + key.size() + (value != nullptr ? value->size() : 0) + 16);
    if (value != nullptr) {
        if (key.size() > UINT32_MAX) throw Error(errc::invalid_argument, path, "a key has at most 4 GiB");
        append_padded(made, layout::bytes_of(EntryHead{entry_magic, static_cast<std::uint32_t>(key.size()), map, value->size()}));
        append_padded(made, key);
        append_padded(made, *value);
    }
    if (!old) return made;
    for_each_entry(old, path, [&](const Entry& entry) {
        if (entry.map != map || !same(entry.key, key)) made.insert(made.end(), entry.all.begin(), entry.all.end());
        return true;
    });
    return made;
}

}  // namespace

void throw_size_of_stored(std::size_t found, std::size_t wanted) {
    throw Error(
        errc::type_mismatch, std::filesystem::path(),
        "what is stored has " + std::to_string(found) + " bytes, the type " + std::to_string(wanted) + "; open the map with the types it has");
}

ByteMap::ByteMap(LogHeap& heap, std::string_view name, unsigned hash_bits)
    : heap_(&heap), map_(checksum(std::as_bytes(std::span(name)), 0)), mask_((std::uint64_t{1} << hash_bits) - 1) {}

LogId ByteMap::id_of(Bytes key) const { return LogId{(checksum(key, map_) & mask_) | map_bit}; }

ByteMap::Found ByteMap::find(Bytes key) const {
    LogView record = heap_->get(id_of(key));
    if (!record) return {};
    std::optional<Bytes> value;
    for_each_entry(record, heap_->path(), [&](const Entry& entry) {
        if (entry.map == map_ && same(entry.key, key)) value = entry.value;
        return !value;
    });
    if (!value) return {};
    return {std::move(record), *value};
}

// Nobody waits for room or for the disk with a view: its segment couldn't be cleaned.

ByteMap::Done ByteMap::put(Bytes key, Bytes value, When when) const {
    const LogId id = id_of(key);
    for (;;) {
        LogView record = heap_->get(id);
        bool was_there = false;
        if (record) {
            for_each_entry(record, heap_->path(), [&](const Entry& entry) {
                was_there = entry.map == map_ && same(entry.key, key);
                return !was_there;
            });
        }
        if (when == (was_there ? When::absent : When::present)) return {false, was_there};
        const std::vector<std::byte> made = record_with(record, heap_->path(), map_, key, &value);
        const LogHandle handle = record.handle();
        const Serial version = record.version();
        record = LogView();
        if (version.value != 0 ? heap_->replace(handle, version, made) : heap_->insert(id, made).has_value()) return {true, was_there};
    }
}

bool ByteMap::replace(LogHandle handle, Serial version, Bytes key, Bytes value) const {
    std::vector<std::byte> made;
    {
        const LogView record = heap_->get(handle);
        if (!record || record.version() != version) return false;
        made = record_with(record, heap_->path(), map_, key, &value);
    }
    return heap_->replace(handle, version, made);
}

bool ByteMap::erase(Bytes key) const {
    for (;;) {
        Found found = find(key);
        if (!found.record) return false;
        const std::vector<std::byte> rest = record_with(found.record, heap_->path(), map_, key, nullptr);
        const LogHandle handle = found.record.handle();
        const Serial version = found.record.version();
        found.record = LogView();
        if (rest.empty() ? heap_->remove(handle, version) : heap_->replace(handle, version, rest)) return true;
    }
}

void ByteMap::for_each(const std::function<void(Bytes key, Bytes value)>& f) const {
    heap_->for_each(
        [&](const LogView& record) {
            for_each_entry(record, heap_->path(), [&](const Entry& entry) {
                if (entry.map == map_) f(entry.key, entry.value);
                return true;
            });
        },
        LogId{map_bit});
}

}  // namespace taiyen::logheap
