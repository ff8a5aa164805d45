#include "crash/replay.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"

namespace taiyen::crash {

namespace fs = std::filesystem;
using io::Operation;
using io::sector_bytes;
using Kind = Operation::Kind;

namespace {

constexpr std::uint64_t sectors_per_page = page_bytes / sector_bytes;
constexpr std::array<std::byte, sector_bytes> zero_sector{};

std::uint64_t text_sum(const fs::path& path) {
    const std::string text = path.string();
    return checksum(std::as_bytes(std::span(text)), 0x6e61'6d65);
}

std::uint64_t sectors_for(std::uint64_t bytes) { return (bytes + sector_bytes - 1) / sector_bytes; }

}  // namespace

std::uint64_t device_of(const fs::path& directory) { return directory == data_directory ? 2 : directory == log_directory ? 3 : 1; }

void add_directories(io::SimulatedStorage& disk) {
    for (const char* const directory : {heap_directory, data_directory, log_directory}) disk.add_directory(directory, device_of(directory));
    for (const char* const name : {"cuts", "first", "second"}) disk.add_directory(std::string("/disk/") + name);  // of a group
}

Image image_of(const io::SimulatedStorage& disk) {
    Image image;
    for (const auto& [path, node] : disk.files()) image.files[path].assign(node->data(), node->data() + node->size_bytes());
    return image;
}

Replay::Replay(io::SimulatedStorage& disk, const Image& base) : disk_(disk) {
    for (const auto& [path, bytes] : base.files) {
        const auto node = disk.make_node(device_of(io::directory_of(path)));
        // Zero pages stay holes.
        node->resize(bytes.size());
        for (std::uint64_t at = 0; at < bytes.size(); at += page_bytes) {
            const auto page = std::span(bytes).subspan(at, std::min<std::uint64_t>(page_bytes, bytes.size() - at));
            if (!is_zero(page)) node->write(page, at);
        }
        disk.put(path, node);
        names_[path] = add_node(node);
    }
    live_names_ = names_;
    disk.mark();
}

std::uint64_t Replay::sum_of(std::uint64_t sector, const std::byte* bytes, std::size_t count) {
    if (bytes == nullptr || is_zero({bytes, count})) return 0;
    if (count == sector_bytes) return checksum({bytes, count}, sector);
    std::array<std::byte, sector_bytes> whole{};
    std::memcpy(whole.data(), bytes, count);
    return checksum(whole, sector);
}

int Replay::add_node(std::shared_ptr<Node> node) {
    FileState file;
    file.live.assign(node->data(), node->data() + node->size_bytes());
    file.node = std::move(node);
    refresh_all_sums(file);
    files_.push_back(std::move(file));
    return static_cast<int>(files_.size()) - 1;
}

int Replay::node_of(io::FileId file) const {
    const auto found = nodes_.find(file);
    TAIYEN_CHECK(found != nodes_.end());
    return found->second;
}

void Replay::refresh_sums(FileState& file, std::uint64_t first_sector, std::uint64_t last_sector) {
    const std::uint64_t size = file.node->size_bytes();
    if (file.sector_sums.size() < last_sector) file.sector_sums.resize(last_sector);
    for (std::uint64_t sector = first_sector; sector < last_sector; ++sector) {
        const std::uint64_t at = sector * sector_bytes;
        const std::uint64_t sum = at < size ? sum_of(sector, file.node->data() + at, std::min<std::uint64_t>(sector_bytes, size - at)) : 0;
        file.sum += sum - file.sector_sums[sector];
        file.sector_sums[sector] = sum;
    }
}

void Replay::refresh_all_sums(FileState& file) {
    refresh_sums(file, 0, std::max<std::uint64_t>(file.sector_sums.size(), sectors_for(file.node->size_bytes())));
}

// ---------------------------------------------------------------------------------------------- what is pending

void Replay::add_pending(Pending pending, std::vector<Unit> units) {
    if (units.empty()) return;
    pending.first_unit = units_.size();
    pending.units = units.size();
    units_.insert(units_.end(), units.begin(), units.end());
    pending_.push_back(pending);
    name_changes_.resize(pending_.size());
    unit_bytes_.resize(pending_.size());
}

void Replay::write_live(FileState& file, std::uint64_t offset, std::span<const std::byte> bytes) {
    if (file.live.size() < offset + bytes.size()) file.live.resize(offset + bytes.size());
    std::memcpy(file.live.data() + offset, bytes.data(), bytes.size());
}

/// The touched sectors as the page cache holds them now.
std::vector<Replay::Unit> Replay::sector_units(const FileState& file, std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t first = offset / sector_bytes;
    const std::uint64_t last = sectors_for(offset + length);
    auto bytes = std::make_unique<std::vector<std::byte>>((last - first) * sector_bytes);
    const std::uint64_t there = std::min<std::uint64_t>(bytes->size(), file.live.size() - first * sector_bytes);
    std::memcpy(bytes->data(), file.live.data() + first * sector_bytes, there);
    std::vector<Unit> units;
    units.reserve(last - first + 1);
    for (std::uint64_t sector = first; sector < last; ++sector) {
        const std::byte* const at = bytes->data() + (sector - first) * sector_bytes;
        units.push_back({.kind = UnitKind::sector, .sector = sector, .sum = sum_of(sector, at, sector_bytes), .bytes = at});
    }
    unit_bytes_.resize(pending_.size());
    unit_bytes_.push_back(std::move(bytes));
    return units;
}

/// The smallest size that the file may turn out to have.
std::uint64_t Replay::safe_size(int node) const {
    std::uint64_t size = files_[static_cast<std::size_t>(node)].node->size_bytes();
    for (const Pending& pending : pending_)
        if (pending.node == node && pending.has_size && !units_[pending.first_unit].gone) size = std::min(size, units_[pending.first_unit].sector);
    return size;
}

void Replay::begin_name(NameChange change, const Operation& operation, std::size_t number) {
    if (!change.removed.empty()) live_names_.erase(change.removed);
    if (!change.added.empty()) live_names_[change.added] = change.node;
    add_pending({.number = number, .kind = operation.kind, .node = -1}, {{.kind = UnitKind::name, .sector = 0, .sum = 0, .bytes = nullptr}});
    name_changes_.back() = std::move(change);
}

void Replay::begin(const Operation& operation, std::size_t number) {
    const fs::path path = operation.path.lexically_normal();
    switch (operation.kind) {
        case Kind::opened: {
            const auto found = live_names_.find(path);
            TAIYEN_CHECK(found != live_names_.end());
            nodes_[operation.file] = found->second;
            break;
        }
        case Kind::created:
        case Kind::created_unnamed: {
            const int node = add_node(disk_.make_node(device_of(operation.kind == Kind::created ? io::directory_of(path) : path)));
            nodes_[operation.file] = node;
            if (operation.kind == Kind::created) begin_name({.removed = {}, .added = path, .node = node}, operation, number);
            break;
        }
        case Kind::published: begin_name({.removed = {}, .added = path, .node = node_of(operation.file)}, operation, number); break;
        case Kind::renamed: {
            const auto found = live_names_.find(path);
            TAIYEN_CHECK(found != live_names_.end());
            begin_name({.removed = path, .added = operation.to.lexically_normal(), .node = found->second}, operation, number);
            break;
        }
        case Kind::removed:
            if (live_names_.contains(path)) begin_name({.removed = path, .added = {}, .node = -1}, operation, number);
            break;
        case Kind::written:
        case Kind::durably_written: {
            const int node = node_of(operation.file);
            FileState& file = files_[static_cast<std::size_t>(node)];
            if (operation.bytes.empty()) break;
            const std::uint64_t end = operation.offset + operation.bytes.size();
            Pending pending{.number = number, .kind = operation.kind, .node = node};
            std::vector<Unit> size;
            if (end > file.live.size()) {
                size.push_back({.kind = UnitKind::size, .sector = end, .sum = 0, .bytes = nullptr});
                pending.has_size = true;
            }
            write_live(file, operation.offset, operation.bytes);
            std::vector<Unit> units = sector_units(file, operation.offset, operation.bytes.size());
            units.insert(units.begin(), size.begin(), size.end());
            if (operation.kind == Kind::durably_written) {
                const bool inside = end <= safe_size(node);
                pending.covered = !operation.failed && inside;
                durable_writes_outside_ += inside ? 0 : 1;
            }
            add_pending(pending, std::move(units));
            break;
        }
        case Kind::allocated: {
            const int node = node_of(operation.file);
            FileState& file = files_[static_cast<std::size_t>(node)];
            const std::uint64_t end = operation.offset + operation.length;
            const std::uint64_t before = file.live.size();
            if (end > before) {
                file.live.resize(end);
                // It isn't done at once, and its size may have come any part of the way: a page, half, all.
                std::vector<Unit> sizes;
                for (const std::uint64_t size : {before / page_bytes * page_bytes + page_bytes, round_up((before + end) / 2, page_bytes), end})
                    if (size <= end && (sizes.empty() || size > sizes.back().sector))
                        sizes.push_back({.kind = UnitKind::size, .sector = size, .sum = 0, .bytes = nullptr});
                add_pending({.number = number, .kind = operation.kind, .node = node, .has_size = true}, std::move(sizes));
            }
            break;
        }
        case Kind::resized: {
            const int node = node_of(operation.file);
            FileState& file = files_[static_cast<std::size_t>(node)];
            if (operation.length != file.live.size()) {
                file.live.resize(operation.length);
                add_pending({.number = number, .kind = operation.kind, .node = node, .has_size = true},
                            {{.kind = UnitKind::size, .sector = operation.length, .sum = 0, .bytes = nullptr}});
            }
            break;
        }
        case Kind::punched: {
            const int node = node_of(operation.file);
            FileState& file = files_[static_cast<std::size_t>(node)];
            const std::uint64_t end = std::min<std::uint64_t>(operation.offset + operation.length, file.live.size());
            if (operation.offset >= end) break;
            TAIYEN_CHECK(operation.offset % page_bytes == 0 && (end % page_bytes == 0 || end == file.live.size()));
            std::memset(file.live.data() + operation.offset, 0, end - operation.offset);
            std::vector<Unit> units;
            for (std::uint64_t at = operation.offset; at < end; at += page_bytes)
                units.push_back({.kind = UnitKind::punched_page, .sector = at / sector_bytes, .sum = 0, .bytes = nullptr});
            add_pending({.number = number, .kind = operation.kind, .node = node}, std::move(units));
            break;
        }
        case Kind::directory_synced:
        case Kind::synced:
        case Kind::issued:
        case Kind::acknowledged: break;
    }
}

void Replay::make_durable(std::size_t index) {
    const Pending& pending = pending_[index];
    if (pending.node < 0) return;
    FileState& file = files_[static_cast<std::size_t>(pending.node)];
    for (std::size_t u = pending.first_unit; u < pending.first_unit + pending.units; ++u) {
        Unit& unit = units_[u];
        if (unit.gone) continue;
        unit.gone = true;
        if (unit.kind == UnitKind::size) {
            file.node->resize(unit.sector);
            refresh_all_sums(file);
            continue;
        }
        const std::uint64_t count = unit.kind == UnitKind::punched_page ? sectors_per_page : 1;
        const std::uint64_t at = unit.sector * sector_bytes;
        const std::uint64_t size = file.node->size_bytes();
        if (at < size) {
            const std::uint64_t length = std::min<std::uint64_t>(count * sector_bytes, size - at);
            if (unit.bytes == nullptr)
                file.node->punch(at, length);
            else
                file.node->write({unit.bytes, length}, at);
        }
        refresh_sums(file, unit.sector, unit.sector + count);
    }
}

/// Pending operations without units left go.
void Replay::drop_made_durable() {
    std::vector<Pending> kept;
    std::vector<Unit> kept_units;
    std::vector<std::unique_ptr<std::vector<std::byte>>> kept_bytes;
    std::vector<NameChange> kept_names;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        Pending pending = pending_[i];
        const auto first = units_.begin() + static_cast<std::ptrdiff_t>(pending.first_unit);
        const auto last = first + static_cast<std::ptrdiff_t>(pending.units);
        if (std::all_of(first, last, [](const Unit& unit) { return unit.gone; })) continue;
        pending.first_unit = kept_units.size();
        kept_units.insert(kept_units.end(), first, last);
        kept.push_back(pending);
        kept_bytes.push_back(std::move(unit_bytes_[i]));
        kept_names.push_back(std::move(name_changes_[i]));
    }
    pending_ = std::move(kept);
    units_ = std::move(kept_units);
    unit_bytes_ = std::move(kept_bytes);
    name_changes_ = std::move(kept_names);
}

void Replay::finish(const Operation& operation) {
    unit_bytes_.resize(pending_.size());
    switch (operation.kind) {
        case Kind::synced:
            for (std::size_t i = 0; i < pending_.size(); ++i) {
                if (pending_[i].node != node_of(operation.file) || pending_[i].orphaned) continue;
                if (operation.failed)
                    pending_[i].orphaned = true;  // a later sync says yes and covers nothing of it
                else
                    make_durable(i);
            }
            break;
        case Kind::durably_written: {
            if (pending_.empty() || !pending_.back().covered || operation.failed) return;
            const Pending mine = pending_.back();
            // What older operations have pending in these sectors can't come back over it (C2).
            std::uint64_t first = ~std::uint64_t{0};
            std::uint64_t last = 0;
            for (std::size_t u = mine.first_unit; u < mine.first_unit + mine.units; ++u) {
                first = std::min(first, units_[u].sector);
                last = std::max(last, units_[u].sector);
            }
            for (std::size_t i = 0; i + 1 < pending_.size(); ++i) {
                if (pending_[i].node != mine.node) continue;
                for (std::size_t u = pending_[i].first_unit; u < pending_[i].first_unit + pending_[i].units; ++u) {
                    Unit& unit = units_[u];
                    if (unit.kind == UnitKind::sector || unit.kind == UnitKind::punched_page)
                        unit.gone = unit.gone || (unit.sector >= first && unit.sector <= last);
                }
            }
            make_durable(pending_.size() - 1);
            break;
        }
        case Kind::directory_synced: {
            const fs::path directory = operation.path.lexically_normal();
            for (std::size_t i = 0; i < pending_.size(); ++i) {
                if (pending_[i].node >= 0) continue;
                NameChange& change = name_changes_[i];
                change.removed_durable = change.removed_durable || change.removed.empty() || io::directory_of(change.removed) == directory;
                change.added_durable = change.added_durable || change.added.empty() || io::directory_of(change.added) == directory;
                if (!change.removed_durable || !change.added_durable) continue;
                if (!change.removed.empty()) {
                    names_.erase(change.removed);
                    disk_.take_away(change.removed);
                }
                if (!change.added.empty()) {
                    names_[change.added] = change.node;
                    disk_.put(change.added, files_[static_cast<std::size_t>(change.node)].node);
                }
                units_[pending_[i].first_unit].gone = true;
            }
            break;
        }
        default: return;
    }
    drop_made_durable();
    disk_.mark();
}

// ---------------------------------------------------------------------------------------------- a crash state

void Replay::compose(const Selection& selection) {
    TAIYEN_CHECK(selection.size() == units_.size());
    ++composition_;
    composed_.resize(files_.size());
    for (std::size_t n = 0; n < files_.size(); ++n) {
        Composed& composed = composed_[n];
        composed.size = files_[n].node->size_bytes();
        composed.killed_from = ~std::uint64_t{0};
        composed.patches.clear();
    }
    for (const Pending& pending : pending_) {
        if (pending.node < 0) continue;
        FileState& file = files_[static_cast<std::size_t>(pending.node)];
        Composed& composed = composed_[static_cast<std::size_t>(pending.node)];
        const auto patch = [&](std::uint64_t sector, const std::byte* bytes, std::uint64_t sum, bool hole) {
            if (file.stamp.size() <= sector) {
                file.stamp.resize(sector + 1);
                file.patch_of_sector.resize(sector + 1);
            }
            if (file.stamp[sector] == composition_) {
                composed.patches[file.patch_of_sector[sector]] = {.sector = sector, .bytes = bytes, .sum = sum, .hole = hole};
                return;
            }
            file.stamp[sector] = composition_;
            file.patch_of_sector[sector] = static_cast<std::uint32_t>(composed.patches.size());
            composed.patches.push_back({.sector = sector, .bytes = bytes, .sum = sum, .hole = hole});
        };
        for (std::size_t u = pending.first_unit; u < pending.first_unit + pending.units; ++u) {
            const Unit& unit = units_[u];
            if (selection[u] == 0 || unit.gone) continue;
            switch (unit.kind) {
                case UnitKind::size:
                    if (unit.sector < composed.size) {
                        // A cut that came through: nothing behind it survives, and what a later growth shows there are zeros.
                        composed.killed_from = std::min(composed.killed_from, unit.sector);
                        for (Patch& earlier : composed.patches) {
                            const std::uint64_t at = earlier.sector * sector_bytes;
                            earlier.valid = at >= unit.sector ? 0 : std::min(earlier.valid, unit.sector - at);
                        }
                    }
                    composed.size = unit.sector;
                    break;
                case UnitKind::sector:
                    if (selection[u] == 2)
                        patch(unit.sector, zero_sector.data(), 0, false);
                    else
                        patch(unit.sector, unit.bytes, unit.sum, false);
                    break;
                case UnitKind::punched_page:
                    for (std::uint64_t sector = unit.sector; sector < unit.sector + sectors_per_page; ++sector) patch(sector, nullptr, 0, true);
                    break;
                case UnitKind::name: break;
            }
        }
    }
}

Replay::Names Replay::composed_names(const Selection& selection) const {
    Names names = names_;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (pending_[i].node >= 0 || selection[pending_[i].first_unit] == 0 || units_[pending_[i].first_unit].gone) continue;
        if (!name_changes_[i].removed.empty()) names.erase(name_changes_[i].removed);
        if (!name_changes_[i].added.empty()) names[name_changes_[i].added] = name_changes_[i].node;
    }
    return names;
}

std::uint64_t Replay::fingerprint(const Selection& selection) {
    compose(selection);
    std::uint64_t result = 0;
    for (const auto& [path, n] : composed_names(selection)) {
        const FileState& file = files_[static_cast<std::size_t>(n)];
        const Composed& composed = composed_[static_cast<std::size_t>(n)];
        std::uint64_t sum = file.sum;
        const std::uint64_t cut = std::min({composed.killed_from, composed.size, std::uint64_t{file.node->size_bytes()}});
        if (cut < file.node->size_bytes()) {
            for (std::uint64_t sector = cut / sector_bytes; sector < file.sector_sums.size(); ++sector) {
                const std::uint64_t at = sector * sector_bytes;
                sum -= file.sector_sums[sector];
                sum += at < cut ? sum_of(sector, file.node->data() + at, cut - at) : 0;
            }
        }
        for (const Patch& patch : composed.patches) {
            const std::uint64_t at = patch.sector * sector_bytes;
            if (patch.valid == 0 || at >= composed.size) continue;
            if (at >= cut) {
                // The base is gone here already.
            } else if (at + sector_bytes > cut) {
                sum -= sum_of(patch.sector, file.node->data() + at, cut - at);
            } else {
                sum -= patch.sector < file.sector_sums.size() ? file.sector_sums[patch.sector] : 0;
            }
            const std::uint64_t valid = std::min(patch.valid, composed.size - at);
            sum += valid == sector_bytes ? patch.sum : sum_of(patch.sector, patch.bytes, valid);
        }
        result += mix(text_sum(path), mix(sum, composed.size));
    }
    return result;
}

void Replay::mount(const Selection& selection) {
    compose(selection);
    const Names names = composed_names(selection);
    for (const auto& [path, n] : names_)
        if (!names.contains(path)) disk_.take_away(path);
    for (const auto& [path, n] : names) {
        FileState& file = files_[static_cast<std::size_t>(n)];
        const Composed& composed = composed_[static_cast<std::size_t>(n)];
        if (composed.killed_from < file.node->size_bytes()) file.node->resize(composed.killed_from);
        file.node->resize(composed.size);
        // Holes first: a page that was punched and then written again in part has data patches for that part.
        for (const Patch& patch : composed.patches) {
            const std::uint64_t at = patch.sector * sector_bytes;
            if (patch.hole && patch.valid != 0 && at < composed.size) {
                const std::uint64_t length = patch.sector % sectors_per_page == 0 ? page_bytes : sector_bytes;
                file.node->punch(at, std::min<std::uint64_t>(length, composed.size - at));
            }
        }
        for (const Patch& patch : composed.patches) {
            const std::uint64_t at = patch.sector * sector_bytes;
            if (!patch.hole && patch.valid != 0 && at < composed.size) file.node->write({patch.bytes, std::min(patch.valid, composed.size - at)}, at);
        }
        const auto before = names_.find(path);
        if (before == names_.end() || before->second != n) disk_.put(path, file.node);
    }
}

}  // namespace taiyen::crash
