#include "heap/root_directory.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/shape/shape.hpp>

#include "base/checksum.hpp"
#include "base/sentence.hpp"

namespace taiyen::heap {

using layout::DirectoryEntry;
using layout::DirectoryHead;
using layout::DirectorySlot;

namespace {

/// Of a name, as it is stored: FNV-1a with a final mix. Part of the format.
std::uint32_t hash_of(std::string_view name) {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325ULL;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3ULL;
    return static_cast<std::uint32_t>(mix(hash, name.size()));
}

std::uint64_t entry_length(std::uint64_t name_bytes, std::uint64_t fingerprint_bytes) {
    return round_up(sizeof(DirectoryEntry) + name_bytes + fingerprint_bytes, 8);
}

constexpr bool slot_empty(const DirectorySlot& slot) { return slot.entry == 0 && slot.hash == 0; }
constexpr DirectorySlot removed_slot{0, 1};

/// A run of this size has that many slots: one per 64 bytes.
constexpr std::uint32_t slots_for(std::uint64_t bytes) { return static_cast<std::uint32_t>(bytes / 64); }
constexpr std::uint64_t arena_begin(std::uint32_t slots) { return sizeof(DirectoryHead) + std::uint64_t{slots} * sizeof(DirectorySlot); }
constexpr std::uint32_t slots_usable(std::uint32_t slots) { return slots / 4 * 3; }
constexpr std::uint64_t run_bytes_max = std::uint64_t{1} << 31U;

/// No program's own: a name may begin with a zero, but not go on like that.
constexpr std::string_view shape_mark("\0shape ", 7);

/// What the names of a shape's parts begin with; their numbers follow. Part of the format.
std::string stem_of(std::string_view fingerprint) {
    std::string stem(shape_mark);
    const std::uint64_t hash = checksum(std::as_bytes(std::span(fingerprint)), shape_mark.size());
    for (unsigned shift = 64; shift != 0;) stem += "0123456789abcdef"[hash >> (shift -= 4) & 15U];
    return stem + ' ';
}

/// The entries of a shape.
std::vector<Root> parts_of(std::string_view fingerprint, std::string_view encoded) {
    constexpr std::size_t each = RootDirectory::fingerprint_bytes_max;
    const std::size_t count = (encoded.size() + each - 1) / each;
    TAIYEN_CHECK(count <= RootDirectory::shape_parts_max);
    const std::string stem = stem_of(fingerprint);
    std::vector<Root> parts;
    for (std::size_t i = 0; i < count; ++i) parts.push_back({stem + std::to_string(i), std::string(encoded.substr(i * each, each)), {}, 0, count});
    return parts;
}

void require_storable(const Root& root) {
    if (root.name.empty() || root.name.size() > RootDirectory::name_bytes_max)
        throw Error(errc::invalid_argument, "a root's name has 1 to 1024 bytes, not " + std::to_string(root.name.size()));
    if (root.fingerprint.size() > RootDirectory::fingerprint_bytes_max)
        throw Error(errc::invalid_argument, "a fingerprint has at most 4096 bytes, not " + std::to_string(root.fingerprint.size()));
}

}  // namespace

std::optional<RootDirectory::Table> RootDirectory::table() const {
    const std::uint64_t offset = pages_.super().directory;
    if (offset == 0) return std::nullopt;
    const Page page = static_cast<Page>(std::min<std::uint64_t>(offset / page_bytes, pages_.extent()));
    if (offset % page_bytes != 0 || !pages_.is_user(page))
        throw_corrupt(offsetof(layout::SuperBlock, directory), "the root directory lies outside the extent");
    const auto run = runs_.find(page);
    if (!run || run->kind != layout::RunKind::directory || !std::has_single_bit(run->bytes) || run->bytes > run_bytes_max)
        throw_corrupt(offset, "the root directory is not a run of its kind");
    Table table{offset, run->bytes, span_.at<DirectoryHead>(offset), span_.at<DirectorySlot>(offset + sizeof(DirectoryHead))};
    const DirectoryHead& head = *table.head;
    if (head.magic != layout::directory_magic || head.slots != slots_for(run->bytes) || head.live > head.used_slots ||
        head.used_slots > slots_usable(head.slots) || head.arena_end < arena_begin(head.slots) || head.arena_end > run->bytes)
        throw_corrupt(offset, "the head of the root directory");
    return table;
}

RootDirectory::View RootDirectory::view(const Table& table, std::uint32_t at) const {
    const std::uint64_t end = table.head->arena_end;
    if (at % 8 != 0 || at < arena_begin(table.head->slots) || at > end || end - at < sizeof(DirectoryEntry))
        throw_corrupt(table.offset, "a slot of the root directory points nowhere");
    const auto* entry = span_.at<DirectoryEntry>(table.offset + at);
    const std::uint64_t name_bytes = entry->name_bytes;
    const std::uint64_t fingerprint_bytes = entry->fingerprint_bytes;
    const std::uint64_t length = entry_length(name_bytes, fingerprint_bytes);
    if (name_bytes == 0 || name_bytes > name_bytes_max || fingerprint_bytes > fingerprint_bytes_max || length > end - at)
        throw_corrupt(table.offset + at, "an entry of the root directory is too long");
    const char* text = reinterpret_cast<const char*>(entry + 1);
    return {entry, {text, name_bytes}, {text + name_bytes, fingerprint_bytes}, length};
}

std::optional<std::uint32_t> RootDirectory::locate(const Table& table, std::string_view name, std::uint32_t hash) const {
    const std::uint32_t mask = table.head->slots - 1;
    for (std::uint32_t i = 0; i <= mask; ++i) {
        const std::uint32_t index = (hash + i) & mask;
        const DirectorySlot slot = table.slots[index];
        if (slot_empty(slot)) return std::nullopt;
        if (slot.entry != 0 && slot.hash == hash && view(table, slot.entry).name == name) return index;
    }
    return std::nullopt;
}

std::optional<Root> RootDirectory::find(std::string_view name) const {
    const auto found = table();
    if (!found) return std::nullopt;
    const auto index = locate(*found, name, hash_of(name));
    if (!index) return std::nullopt;
    const View entry = view(*found, found->slots[*index].entry);
    return Root{std::string(entry.name), std::string(entry.fingerprint), {entry.entry->object}, entry.entry->bytes, entry.entry->count};
}

std::vector<Root> RootDirectory::those(bool shapes) const {
    std::vector<Root> roots;
    const auto found = table();
    if (!found) return roots;
    std::uint64_t length = 0;
    for (std::uint32_t index = 0; index < found->head->slots; ++index) {
        if (found->slots[index].entry == 0) continue;
        const View entry = view(*found, found->slots[index].entry);
        length += entry.length;
        if (length > found->bytes) throw_corrupt(found->offset, "entries of the root directory overlap");
        const bool is_part = is_shape(entry.name) && entry.entry->object == 0 && entry.entry->bytes == 0;
        if (is_part == shapes)
            roots.push_back({std::string(entry.name), std::string(entry.fingerprint), {entry.entry->object}, entry.entry->bytes, entry.entry->count});
    }
    std::sort(roots.begin(), roots.end(), [](const Root& a, const Root& b) { return a.name < b.name; });
    return roots;
}

RootDirectory::Table RootDirectory::create(std::uint64_t bytes) {
    const std::uint64_t offset = std::uint64_t{runs_.allocate(bytes, 1, Content::any, layout::RunKind::directory)} * page_bytes;
    Table table{offset, bytes, span_.at<DirectoryHead>(offset), span_.at<DirectorySlot>(offset + sizeof(DirectoryHead))};
    span_.announce(table.head, bytes);
    std::memset(static_cast<void*>(table.head), 0, bytes);
    table.head->magic = layout::directory_magic;
    table.head->slots = slots_for(bytes);
    table.head->arena_end = static_cast<std::uint32_t>(arena_begin(table.head->slots));
    return table;
}

std::uint32_t RootDirectory::write(const Table& table, const DirectoryEntry& entry, std::string_view name, std::string_view fingerprint) {
    const std::uint32_t at = table.head->arena_end;
    const std::uint64_t length = entry_length(name.size(), fingerprint.size());
    auto* place = span_.at<DirectoryEntry>(table.offset + at);
    span_.announce(place, length);
    *place = entry;
    char* text = reinterpret_cast<char*>(place + 1);
    std::memcpy(text, name.data(), name.size());
    if (!fingerprint.empty()) std::memcpy(text + name.size(), fingerprint.data(), fingerprint.size());
    const std::uint64_t written = sizeof(DirectoryEntry) + name.size() + fingerprint.size();
    std::memset(reinterpret_cast<char*>(place) + written, 0, length - written);
    span_.store(table.head->arena_end, at + static_cast<std::uint32_t>(length));
    return at;
}

void RootDirectory::append(const Table& table, const DirectoryEntry& entry, std::string_view name, std::string_view fingerprint, std::uint32_t hash) {
    const std::uint32_t mask = table.head->slots - 1;
    std::uint32_t index = hash & mask;
    for (std::uint32_t tries = 0; table.slots[index].entry != 0; index = (index + 1) & mask)
        if (tries++ == mask) throw_corrupt(table.offset, "the root directory has no free slot");
    const std::uint32_t at = write(table, entry, name, fingerprint);
    DirectoryHead head = *table.head;
    head.live += 1;
    head.used_slots += slot_empty(table.slots[index]) ? 1 : 0;
    span_.store(table.slots[index], DirectorySlot{at, hash});
    span_.store(*table.head, head);
}

RootDirectory::Table RootDirectory::rebuild(const std::optional<Table>& old, std::uint64_t extra, std::size_t count) {
    std::uint64_t live_bytes = extra;
    std::size_t live = count;
    if (old)
        for (std::uint32_t index = 0; index < old->head->slots; ++index)
            if (old->slots[index].entry != 0) {
                live_bytes += view(*old, old->slots[index].entry).length;
                ++live;
            }
    // Twice what is needed, so that additions stay constant on average.
    std::uint64_t bytes = page_bytes;
    while (slots_usable(slots_for(bytes)) < live * 3 / 2 + 1 || bytes - arena_begin(slots_for(bytes)) < (old ? live_bytes * 3 / 2 : live_bytes))
        bytes *= 2;
    if (bytes > run_bytes_max) runs_.throw_full(extra);
    const Table fresh = create(bytes);
    if (old) {
        for (std::uint32_t index = 0; index < old->head->slots; ++index) {
            const DirectorySlot slot = old->slots[index];
            if (slot.entry == 0) continue;
            const View entry = view(*old, slot.entry);
            if (fresh.head->live + 2 > slots_usable(fresh.head->slots) || fresh.bytes - fresh.head->arena_end < entry.length)
                throw_corrupt(old->offset, "entries of the root directory overlap");
            append(fresh, *entry.entry, entry.name, entry.fingerprint, slot.hash);
        }
    }
    span_.store(pages_.super().directory, fresh.offset);
    if (old)
        if (const auto run = runs_.find(static_cast<Page>(old->offset / page_bytes))) runs_.free(*run);
    return fresh;
}

void RootDirectory::append(const Table& table, const Root& root, std::uint32_t hash) {
    append(table,
           {root.object.value, root.bytes, root.count, static_cast<std::uint32_t>(root.name.size()),
            static_cast<std::uint32_t>(root.fingerprint.size())},
           root.name, root.fingerprint, hash);
}

RootDirectory::Table RootDirectory::with_room(std::span<const Root> roots) {
    std::uint64_t length = 0;
    for (const Root& root : roots) length += entry_length(root.name.size(), root.fingerprint.size());
    const auto found = table();
    if (found && found->head->used_slots + roots.size() <= slots_usable(found->head->slots) && has_room(*found, length)) return *found;
    return rebuild(found, length, roots.size());
}

void RootDirectory::add(const Root& root, std::string_view shape) {
    require_storable(root);
    const std::uint32_t hash = hash_of(root.name);
    if (const auto found = table(); found && locate(*found, root.name, hash))
        throw Error(errc::name_taken, "the name \"" + root.name + "\" is taken; remove it first");
    std::vector<Root> all = parts_of(root.fingerprint, shape);
    const std::size_t parts = all.size();
    all.push_back(root);
    std::optional<Table> place;
    try {
        place = with_room(all);
        put_shape(*place, std::span(all).first(parts));
    } catch (const HeapFull&) {
        if (parts == 0) throw;
        place = with_room({&root, 1});  // a name does without
    } catch (const Error&) {            // what is damaged is a shape's
        place = with_room({&root, 1});
    }
    append(*place, root, hash);
}

void RootDirectory::add_first(std::span<const Root> roots) {
    std::uint64_t length = 0;
    for (const Root& root : roots) {
        require_storable(root);
        length += entry_length(root.name.size(), root.fingerprint.size());
    }
    std::uint64_t bytes = page_bytes;
    while (slots_usable(slots_for(bytes)) < roots.size() || bytes - arena_begin(slots_for(bytes)) < length) bytes *= 2;
    if (roots.empty()) return;
    if (bytes > run_bytes_max) runs_.throw_full(length);
    const Table table = create(bytes);
    for (const Root& root : roots) append(table, root, hash_of(root.name));
    span_.store(pages_.super().directory, table.offset);
}

void RootDirectory::replace(std::span<const std::pair<Root, std::string_view>> roots) {
    std::vector<Root> wanted;
    for (const auto& [root, shape] : roots) {
        require_storable(root);
        TAIYEN_CHECK(find(root.name).has_value());
        for (Root& part : parts_of(root.fingerprint, shape)) wanted.push_back(std::move(part));
        wanted.push_back(root);
    }
    if (wanted.empty()) return;
    const Table table = with_room(wanted);
    for (const auto& [root, shape] : roots)
        if (!locate(table, root.name, hash_of(root.name))) throw_corrupt(table.offset, "the name of a root can't be found by its hash");
    for (const auto& [root, shape] : roots) {
        put_shape(table, parts_of(root.fingerprint, shape));
        const std::uint32_t hash = hash_of(root.name);
        const std::uint32_t at = write(table,
                                       {root.object.value, root.bytes, root.count, static_cast<std::uint32_t>(root.name.size()),
                                        static_cast<std::uint32_t>(root.fingerprint.size())},
                                       root.name, root.fingerprint);
        const auto index = locate(table, root.name, hash);
        if (!index) throw_corrupt(table.offset, "the name of a root can't be found by its hash");
        span_.store(table.slots[*index], DirectorySlot{at, hash});
    }
}

bool RootDirectory::remove(std::string_view name) {
    const auto found = table();
    if (!found) return false;
    const auto index = locate(*found, name, hash_of(name));
    if (!index) return false;
    if (found->head->live == 0) throw_corrupt(found->offset, "the root directory counts fewer names than it has");
    span_.store(found->slots[*index], removed_slot);
    span_.store(found->head->live, found->head->live - 1);
    return true;
}

bool RootDirectory::move(std::string_view name, HeapOffset object) {
    const auto found = table();
    if (!found) return false;
    const auto index = locate(*found, name, hash_of(name));
    if (!index) return false;
    auto* const entry = const_cast<DirectoryEntry*>(view(*found, found->slots[*index].entry).entry);
    span_.store(entry->object, object.value);
    return true;
}

bool RootDirectory::retype(std::string_view name, std::string_view fingerprint) {
    auto found = table();
    if (!found) return false;
    const std::uint32_t hash = hash_of(name);
    auto index = locate(*found, name, hash);
    if (!index) return false;
    const View entry = view(*found, found->slots[*index].entry);
    Root root{std::string(name), std::string(fingerprint), {entry.entry->object}, entry.entry->bytes, entry.entry->count};
    require_storable(root);
    if (entry.fingerprint == fingerprint) return true;
    if (const std::uint64_t length = entry_length(name.size(), fingerprint.size()); !has_room(*found, length)) {
        found = rebuild(found, length);
        index = locate(*found, name, hash);
        if (!index) throw_corrupt(found->offset, "the name of a root can't be found by its hash");
    }
    const std::uint32_t at = write(
        *found, {root.object.value, root.bytes, root.count, static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(fingerprint.size())},
        name, fingerprint);
    span_.store(found->slots[*index], DirectorySlot{at, hash});
    return true;
}

bool RootDirectory::is_shape(std::string_view name) noexcept { return name.starts_with(shape_mark); }

std::optional<std::string> RootDirectory::shape(std::string_view fingerprint) const { return whole_shape(stem_of(fingerprint)); }

std::optional<std::string> RootDirectory::whole_shape(std::string_view stem) const {
    std::string text;
    std::uint64_t count = 1;  // of parts, as the first one says
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto part = find(std::string(stem) + std::to_string(i));
        if (!part || part->object.value != 0 || part->bytes != 0 || part->count == 0 || part->count > shape_parts_max) return std::nullopt;
        if (i == 0) count = part->count;
        if (part->count != count || part->fingerprint.empty()) return std::nullopt;
        if (i + 1 < count && part->fingerprint.size() != fingerprint_bytes_max) return std::nullopt;
        text += part->fingerprint;
    }
    return text;
}

void RootDirectory::put_shape(const Table& table, std::span<const Root> parts) {
    if (parts.empty()) return;
    const std::string stem = parts.front().name.substr(0, parts.front().name.size() - 1);
    for (std::uint64_t i = 0; i < shape_parts_max; ++i)
        if (const auto there = find(stem + std::to_string(i)); there && (there->object.value != 0 || there->bytes != 0)) return;
    for (std::uint64_t i = 0; i < shape_parts_max; ++i) remove(stem + std::to_string(i));
    for (const Root& part : parts) append(table, part, hash_of(part.name));
}

void RootDirectory::set_shape(std::string_view fingerprint, std::string_view encoded) {
    const std::vector<Root> parts = parts_of(fingerprint, encoded);
    put_shape(with_room(parts), parts);
}

std::vector<Root> RootDirectory::shapes() const {
    std::vector<Root> whole;
    std::string_view last;
    const std::vector<Root> all = those(true);
    for (const Root& first : all) {
        if (!first.name.ends_with(" 0") || first.name == last) continue;
        last = first.name;
        const std::string stem = first.name.substr(0, first.name.size() - 1);
        if (!whole_shape(stem)) continue;
        const std::uint64_t count = find(first.name)->count;
        for (std::uint64_t i = 0; i < count; ++i) whole.push_back(*find(stem + std::to_string(i)));
    }
    return whole;
}

std::vector<Damage> RootDirectory::bad_shapes() const {
    std::vector<Damage> bad;
    std::string last;
    for (const Root& part : those(true)) {
        const std::string stem = part.name.substr(0, part.name.rfind(' ') + 1);
        if (stem == last) continue;
        last = stem;
        try {
            const std::optional<std::string> text = whole_shape(stem);
            Shape::decode(std::as_bytes(std::span(text ? *text : std::string())));
        } catch (const Error& error) {
            if (error.code() == errc::unsupported_version) continue;  // of a newer library
            bad.push_back({{pages_.super().directory}, sentence_of(error)});
        }
    }
    return bad;
}

void RootDirectory::check(std::vector<Damage>& damages, std::size_t limit) const {
    try {
        const auto found = table();
        if (!found) return;
        std::uint32_t live = 0;
        std::uint32_t used = 0;
        for (std::uint32_t index = 0; index < found->head->slots && damages.size() < limit; ++index) {
            const DirectorySlot slot = found->slots[index];
            used += slot_empty(slot) ? 0 : 1;
            if (slot.entry == 0) continue;
            ++live;
            const View entry = view(*found, slot.entry);
            const std::uint64_t object = entry.entry->object;
            if (hash_of(entry.name) != slot.hash || locate(*found, entry.name, slot.hash) != index)
                damages.push_back({{found->offset + slot.entry}, "the name of a root can't be found by its hash"});
            if (object >= std::uint64_t{pages_.extent()} * page_bytes && entry.entry->bytes != 0 && damages.size() < limit)
                damages.push_back({{found->offset + slot.entry}, "a root's object lies outside the extent"});
        }
        if (damages.size() < limit && (live != found->head->live || used != found->head->used_slots))
            damages.push_back({{found->offset}, "the root directory's counts differ from its slots"});
    } catch (const Error& error) {
        if (damages.size() < limit) damages.push_back({{error.offset()}, error.what()});
    }
}

}  // namespace taiyen::heap
