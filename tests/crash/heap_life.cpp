#include "crash/heap_life.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "base/checksum.hpp"
#include "crash/disk_sums.hpp"
#include "crash/piece_of_life.hpp"
#include "store/geometry.hpp"
#include "store/header.hpp"
#include "store/heap_access.hpp"
#include "store/rot_behind.hpp"
#include "transfer/pointer_places.hpp"

namespace taiyen::crash {
namespace {

/// Address space of an annex.
constexpr ByteCount annex_room = 4_MiB;

std::string number_text(std::uint64_t number) { return std::to_string(number); }

}  // namespace

std::vector<std::byte> bytes_for(ByteCount size, std::uint64_t seed) {
    std::vector<std::byte> bytes(size);
    std::mt19937_64 random(seed);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(bytes.data() + at, &word, std::min(sizeof word, size - at));
    }
    return bytes;
}

bool names_data_file(io::Storage& disk, const std::filesystem::path& heap) {
    if (!disk.find(heap)) return false;
    const store::Slots slots = store::read_slots(*disk.open(heap, io::Access::read_only));
    return slots.newest() != nullptr && !slots.newest()->data.is_nil();
}

const std::filesystem::path& HeapSetup::path() { return heap_path; }

std::filesystem::path HeapSetup::data_path() const { return apart ? std::string(data_directory) + "/x.tyn.data" : heap_path.string() + ".data"; }

std::filesystem::path HeapSetup::log_path() const { return apart ? std::string(log_directory) + "/x.tyn.log" : heap_path.string() + ".log"; }

HeapLife::HeapLife(io::Storage& disk, io::RecordingStorage* marks, const HeapSetup& setup, History history)
    : disk_(disk), marks_(marks), setup_(setup), history_(std::move(history)), acknowledged_(history_.size() - 1), issued_(acknowledged_) {}

PersistentOptions HeapLife::options(HeapKind kind) const {
    PersistentOptions options;
    options.log_capacity = setup_.log_bytes;
    if (setup_.apart) options.log_file = setup_.log_path();
    // A transactional heap makes the data file that is named; that of an earlier life lies there until the heap has no use for it any more.
    if (kind == HeapKind::transactional ? setup_.data_file || (setup_.apart && disk_.find(setup_.data_path()) && names_data_file(disk_, heap_path))
                                        : setup_.apart) {
        options.data_file = setup_.data_path();
    }
    options.capacity = setup_.capacity;
    options.position_independent = setup_.elsewhere;
    options.detach_data_file = setup_.detach_data_file;
    options.dirty_limit = 1_GiB;  // asking the system for one takes longer than recovering
    return options;
}

store::Tuning HeapLife::tuning() const {
    store::Tuning tuning;
    tuning.journal_bytes = setup_.journal_bytes;
    tuning.batch_bytes = 32_KiB;
    tuning.log_replay = store::test::make_byte_replay;
    return tuning;
}

void HeapLife::issue(std::uint64_t save) {
    issued_ = save;
    if (marks_ != nullptr) marks_->issue(save);
}

void HeapLife::acknowledge(std::uint64_t save) {
    acknowledged_ = save;
    if (marks_ != nullptr) marks_->acknowledge(save);
}

void HeapLife::create() {
    issue(1);
    model_ = {};
    history_.cut(1);
    history_.push_back(model_);
    open_as(store::OpenMode::create_only, setup_.kind);
    acknowledge(1);
    if (setup_.annex) open_annex();
}

void HeapLife::open() { open(setup_.kind); }

void HeapLife::open(HeapKind kind) {
    open_without_annex(kind);
    if (setup_.annex) open_annex();
}

void HeapLife::open_without_annex(HeapKind kind) {
    const store::OpenMode mode = kind == HeapKind::volatile_heap ? store::OpenMode::read_only : store::OpenMode::open_only;
    open_as(mode, kind == HeapKind::volatile_heap ? HeapKind::archive : kind);
    model_ = history_[compare()];
}

void HeapLife::open_as(store::OpenMode mode, HeapKind kind) {
    const std::optional<vm::Reservation> other = mode == store::OpenMode::create_only ? std::nullopt : take_its_place();
    PersistentOptions with = options(kind);
    if (mode == store::OpenMode::read_only) with.verify = Verify::at_first_touch;  // what recovery shows must be what the checksums say
    heap_ = store::HeapFile::open(disk_, heap_path, mode, kind, with, tuning());
    if (setup_.elsewhere && (heap_->links() != heap::Links::distances || (other && heap_->ranges().durable == other->address())))
        throw std::runtime_error("the heap was not opened elsewhere");
    owner_.emplace(HeapAccess::make<ArchiveHeap>(heap_));
    if (kind == HeapKind::transactional) {
        log_ = std::make_shared<store::test::ByteLog>(*heap_);
        heap_->join(log_);
    }
}

std::optional<vm::Reservation> HeapLife::take_its_place() const {
    if (!setup_.elsewhere) return std::nullopt;
    const store::Slots slots = store::read_slots(*disk_.open(heap_path, io::Access::read_only));
    if (slots.newest() == nullptr) return std::nullopt;
    return vm::Reservation(slots.newest()->base, heap::slot_bytes);
}

void HeapLife::compare_distances() const {
    const std::byte* const links = object("links");
    std::set<std::uintptr_t> objects;
    for (const heap::Root& root : heap_->engine().roots()) objects.insert(heap_->ranges().durable + root.object.value);
    const ByteCount bytes = heap_->engine().find_root("links")->bytes;
    for (const std::byte* at = links; at + sizeof(std::uintptr_t) <= links + bytes; at += sizeof(std::uintptr_t)) {
        std::uintptr_t distance = 0;
        std::memcpy(&distance, at, sizeof distance);
        const auto place = reinterpret_cast<std::uintptr_t>(at);
        if (distance != 1 && !objects.contains(heap::distance_target(place, distance))) throw std::runtime_error("a distance leads to no object");
    }
}

void HeapLife::open_annex() {
    heap_->open_annex(annex_room);
    compare();
}

void HeapLife::close() {
    heap_->close();
    abandon();
}

void HeapLife::close_without_snapshot() {
    log_->snapshot_at_close = false;
    close();
}

void HeapLife::abandon() {
    owner_.reset();
    log_.reset();
    heap_.reset();
}

std::byte* HeapLife::object(const std::string& name) const {
    const auto root = heap_->engine().find_root(name);
    return root ? reinterpret_cast<std::byte*>(heap_->ranges().durable + root->object.value) : nullptr;
}

void HeapLife::put(const std::string& name, ByteCount size, std::uint64_t seed) {
    std::byte* const block = own_block(name, size);
    const auto bytes = bytes_for(size, seed);
    std::memcpy(block, bytes.data(), size);
    model_.objects[name] = bytes;
    model_.linked = false;
}

std::byte* HeapLife::own_block(const std::string& name, ByteCount size) {
    heap::Engine& engine = heap_->engine();
    std::byte* const before = object(name);
    auto* const block = static_cast<std::byte*>(before == nullptr ? engine.allocate(size) : engine.resize(before, size));
    if (before != nullptr) engine.remove_root(name);
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(block) - heap_->ranges().durable);
    engine.add_root({.name = name, .fingerprint = "bytes", .object = {offset}, .bytes = size, .count = 1});
    return block;
}

void HeapLife::put_sparse(const std::string& name, ByteCount size) {
    std::vector<std::byte>& expected = model_.objects[name];
    expected.assign(size, std::byte{0});
    expected.back() = std::byte{1};
    std::memcpy(own_block(name, size), expected.data(), size);
}

void HeapLife::make_room(ByteCount bytes) {
    heap_->extend(heap_->image().mapped() + bytes);
    log_->save_quiesced();
}

void HeapLife::make_room_cut_short(ByteCount bytes) {
    const std::unique_ptr<io::File> data = disk_.open(setup_.data_path(), io::Access::read_write);
    std::vector<std::byte> headers(store::chunks_offset);
    TAIYEN_CHECK(data->read(headers, 0) == headers.size());
    make_room(bytes);
    data->write(headers, 0);
    data->sync();
}

void HeapLife::write_annex(ByteCount at, ByteCount size, std::uint64_t seed) {
    std::byte* const annex = heap_->open_annex(annex_room);
    heap_->extend_annex(at + size);
    std::vector<std::byte>& expected = model_.annex;
    if (expected.empty())  // begun anew, over what an earlier one may have left
        expected.assign(annex, annex + heap_->image().annex().used());
    expected.resize(heap_->image().annex().used());
    const auto bytes = bytes_for(size, seed);
    std::memcpy(expected.data() + at, bytes.data(), size);
    std::memcpy(annex + at, bytes.data(), size);
    const std::uint64_t number = history_.size();
    std::memcpy(expected.data(), &number, sizeof number);
    std::memcpy(annex, &number, sizeof number);
}

void HeapLife::touch(const std::string& name, std::uint64_t seed) {
    std::vector<std::byte>& expected = model_.objects.at(name);
    const std::size_t at = seed % expected.size();
    const std::size_t count = std::min<std::size_t>(expected.size() - at, 1 + seed / 7 % 64);
    const auto bytes = bytes_for(count, seed);
    std::memcpy(object(name) + at, bytes.data(), count);
    std::memcpy(expected.data() + at, bytes.data(), count);
}

void HeapLife::rot(const std::string& name, bool in_data) {
    const store::PageFile& file = in_data ? *heap_->files().data() : heap_->files().backing();
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object(name)) - heap_->ranges().durable;
    const HeapOffset place{round_up(offset, page_bytes) + page_bytes};
    file.file().write(bytes_for(io::sector_bytes, 9), file.layout.file_offset(place) + io::sector_bytes);
    file.file().sync();
}

void HeapLife::scrub() {
    int rounds = 0;  // a read that fails once hides what it would have shown
    PageNumber next{0};
    do {
        std::vector<store::DamagedPage> damaged;
        heap_->healing().look_over(next, store::Healing::scrubbed_bytes_max, damaged);
        for (const store::DamagedPage& page : damaged) {
            // Where a read fails it isn't healed, and life must not go on as if it were.
            if (heap_->healing().heal_one(page) == store::Healed::lost)
                throw Error(errc::io_error, heap_->path(), "the scrub could not restore a page");
        }
    } while (next.value != 0 || ++rounds < 2);
}

void HeapLife::link() {
    constexpr const char* name = "links";
    put(name, (heap_->engine().roots().size() + 1) * sizeof(std::uintptr_t), 0);
    std::vector<std::uintptr_t> links;
    for (const heap::Root& root : heap_->engine().roots()) links.push_back(heap_->ranges().durable + root.object.value);
    if (setup_.elsewhere) {
        const auto first = reinterpret_cast<std::uintptr_t>(object(name));
        for (std::size_t i = 0; i < links.size(); ++i) links[i] -= first + i * sizeof(std::uintptr_t);
        links.resize(model_.objects.at(name).size() / sizeof(std::uintptr_t), 1);
    }
    links.resize(model_.objects.at(name).size() / sizeof(std::uintptr_t));
    std::memcpy(object(name), links.data(), links.size() * sizeof(std::uintptr_t));
    std::memcpy(model_.objects.at(name).data(), links.data(), links.size() * sizeof(std::uintptr_t));
    model_.linked = setup_.elsewhere;
}

void HeapLife::move(std::uintptr_t slots) {
    const std::uint64_t number = history_.size();
    const std::uintptr_t from = heap_->ranges().durable;
    const Relocation moved(from, setup_.capacity, from + slots * heap::slot_bytes);
    Model after = model_;  // if it comes to nothing, life goes on where it is
    after.address = moved.map(from);
    std::vector<std::byte>& links = after.objects.at("links");
    for (std::size_t at = 0; at < links.size(); at += sizeof from) {
        std::uintptr_t link = 0;
        std::memcpy(&link, links.data() + at, sizeof link);
        link = moved.map(link);
        std::memcpy(links.data() + at, &link, sizeof link);
    }
    std::memcpy(after.objects.at(number_name).data(), &number, sizeof number);
    after.annex.clear();
    // The number of the save travels with it.
    const std::uint64_t number_at = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object(number_name)) - from);
    const transfer::HeapView view{heap_->engine(), reinterpret_cast<const std::byte*>(from), from, setup_.capacity, heap_->path()};
    transfer::RelocationWords words(view);
    transfer::PointerPlaces places(view);
    RebaseReport report;
    words.find(places, nullptr, report, 0, {});
    std::set<std::uint64_t> pages{number_at / page_bytes};
    for (const auto& page : places.pages()) pages.insert(page.number);
    std::vector<PageNumber> listed;
    for (const std::uint64_t page : pages) listed.push_back({page});
    history_.push_back(after);
    issue(number);
    heap_->save_moved(after.address, listed, [&](std::span<const PageNumber> batch, std::span<std::byte> images) {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            places.patch(batch[i], images.subspan(i * page_bytes, page_bytes), moved);
            if (batch[i].value == number_at / page_bytes)
                std::memcpy(images.data() + i * page_bytes + number_at % page_bytes, &number, sizeof number);
        }
    });
    acknowledge(number);
    model_ = std::move(after);
    close();
}

void HeapLife::resize(ByteCount capacity) {
    heap_->save_resized(capacity);
    close();
    open();
    if (heap_->engine().capacity() != capacity) throw std::runtime_error("the heap has another capacity than was asked for");
    close();
}

void HeapLife::remove(const std::string& name) {
    std::byte* const block = object(name);
    heap_->engine().remove_root(name);
    heap_->engine().deallocate(block);
    model_.objects.erase(name);
    model_.linked = false;
}

void HeapLife::save() {
    const std::uint64_t number = history_.size();
    const std::string text = number_text(number);
    const bool linked = model_.linked;
    put(number_name, sizeof number, 0);
    model_.linked = linked;  // it stays where it is
    std::memcpy(object(number_name), &number, sizeof number);
    std::memcpy(model_.objects[number_name].data(), &number, sizeof number);
    if (!heap_->image().annex().is_open())
        model_.annex.clear();  // nobody carries it on
    else if (has_annex())
        write_annex(0, sizeof number, 0);
    model_.address = setup_.elsewhere ? 0 : heap_->ranges().durable;
    history_.push_back(model_);
    issue(number);
    if (!log_) {
        heap_->save();
        acknowledge(number);
        return;
    }
    log_->commit();
    acknowledge(number);
    if (number % 3 == 0)
        log_->snapshot();
    else if (number % 7 == 0)
        log_->save_quiesced();
}

std::uint64_t HeapLife::compare() const {
    std::uint64_t number = 1;
    if (const std::byte* const block = object(number_name)) std::memcpy(&number, block, sizeof number);
    if (number == 0 || number >= history_.size()) throw std::runtime_error("the heap holds save " + number_text(number) + ", which never was");
    if (const std::uintptr_t address = history_[number].address; address != 0 && address != heap_->ranges().durable) {
        throw std::runtime_error("the heap of save " + number_text(number) + " lay at " + number_text(address) + " and is found at " +
                                 number_text(heap_->ranges().durable));
    }
    const auto& expected = history_[number].objects;
    const auto roots = heap_->engine().roots();
    if (roots.size() != expected.size()) {
        throw std::runtime_error("save " + number_text(number) + " has " + number_text(expected.size()) + " objects, the heap " +
                                 number_text(roots.size()));
    }
    for (const heap::Root& root : roots) {
        const auto found = expected.find(root.name);
        if (found == expected.end() || found->second.size() != root.bytes)
            throw std::runtime_error("save " + number_text(number) + " has no object '" + root.name + "' of " + number_text(root.bytes) + " bytes");
        const auto* const bytes = reinterpret_cast<const std::byte*>(heap_->ranges().durable + root.object.value);
        if (std::memcmp(bytes, found->second.data(), root.bytes) != 0)
            throw std::runtime_error("object '" + root.name + "' differs from what save " + number_text(number) + " saved");
    }
    if (heap_->image().annex().is_open()) compare_annex(number);
    if (history_[number].linked) compare_distances();
    return number;
}

void HeapLife::compare_annex(std::uint64_t number) const {
    const std::vector<std::byte>& expected = history_[number].annex;
    const std::byte* const annex = heap_->open_annex(annex_room);
    const ByteCount bytes = heap_->image().annex().used();
    if (expected.empty()) {
        if (bytes != 0 && !is_zero({annex, page_bytes})) throw std::runtime_error("save " + number_text(number) + " has no annex, the heap has one");
    } else if (bytes != expected.size() || std::memcmp(annex, expected.data(), bytes) != 0) {
        std::uint64_t found = 0;
        if (bytes != 0) std::memcpy(&found, annex, sizeof found);
        throw std::runtime_error("the annex of save " + number_text(number) + " has " + number_text(expected.size()) +
                                 " bytes, the heap's is another one: of " + number_text(bytes) + " bytes, of save " + number_text(found));
    }
}

void HeapLife::prove() const {
    for (const heap::Damage& damage : heap_->engine().check(1)) throw std::runtime_error("engine: " + damage.what);
    if (setup_.heals) heap_->healing().heal();
    if (setup_.rots) {
        judge_files(true);
        heap_->healing().heal();
    }
    judge_files(false);
}

void HeapLife::judge_files(bool rotten) const {
    const Report report = owner_->verify();
    for (const Finding& finding : report.findings) {
        const bool of_history = finding.what.starts_with("the undo history ");  // what fills the annex here is none
        if (finding.severity != Severity::note && !of_history && !(rotten && lies_behind(finding)))
            throw std::runtime_error("verify: " + finding.path.string() + " at " + number_text(finding.offset) + ": " + finding.what);
    }
}

bool HeapLife::lies_behind(const Finding& finding) const {
    const store::PageFile& file =
        heap_->files().data() != nullptr && finding.path == heap_->files().data()->path() ? *heap_->files().data() : heap_->files().backing();
    if (finding.path != file.path()) return false;
    const auto parts = store::test::parts_behind(file.header, file.file().info().size_bytes);
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.first <= finding.offset && finding.offset < part.second; });
}

void change_something(HeapLife& life, std::mt19937_64& random) {
    if (life.has_annex() && random() % 2 == 0) life.write_annex(random() % 30'000, 1 + random() % 3000, random());
    const std::string name(1, static_cast<char>('a' + random() % 4));
    const bool there = life.heap().engine().find_root(name).has_value();
    const std::uint64_t what = random() % 8;
    if (!there || what == 0)
        life.put(name, 1 + random() % 3000, random());
    else if (what == 1)
        life.remove(name);
    else
        life.touch(name, random());
}

// ---------------------------------------------------------------------------------------------- the subject

void leave_behind_the_end(io::SimulatedStorage& disk, const std::filesystem::path& heap) {
    const auto node = disk.node(heap);
    const std::unique_ptr<io::File> file = disk.open(heap, io::Access::read_only);
    const store::Slots slots = store::read_slots(*file);
    const std::vector<std::byte> pages(3 * page_bytes, std::byte{0x5a});
    node->write(pages, store::FileLayout(slots.newest()->annex.places).file_offset({slots.newest()->extent}));
    node->write(pages, node->size_bytes());
}

void make_zero(io::SimulatedStorage& disk, const std::filesystem::path& path) {
    const auto node = disk.node(path);
    node->write(std::vector<std::byte>(node->size_bytes()), 0);
}

void rot_behind_the_end(io::SimulatedStorage& disk, const std::filesystem::path& heap, const std::filesystem::path& data) {
    store::test::rot_behind(disk, heap, 1);
    store::test::rot_behind(disk, data, 2);
}

void HeapSubject::rot(io::SimulatedStorage& disk) const {
    if (setup_.rots) rot_behind_the_end(disk, heap_path, setup_.data_path());
}

std::uint64_t HeapSubject::check(io::SimulatedStorage& disk, std::uint64_t state) {
    if (!disk.find(heap_path) && !setup_.misses_heap) return check_missing(disk, state);
    rot(disk);
    const std::uint64_t choice = mix(state, 0x7761'7973);
    HeapSetup setup = setup_;
    setup.detach_data_file = !setup.remakes_data && misses_data(disk, state);
    std::uint64_t as_reader = 0;
    if (choice % 8 == 0 && !setup.remakes_data) {
        // A reader sees the same save and writes nothing; it is refused where the data file is missing.
        const std::uint64_t before = disk_sum(disk);
        HeapLife life(disk, nullptr, setup, history_);
        life.open(HeapKind::volatile_heap);
        as_reader = life.compare();
        life.close();
        if (disk_sum(disk) != before) throw std::runtime_error("a read-only opening changed the files");
    }
    HeapLife life(disk, nullptr, setup, history_);
    const HeapKind kind = setup.kind == HeapKind::transactional && choice / 65536 % 2 == 0 ? HeapKind::transactional : HeapKind::archive;
    if (choice / 4096 % 4 == 0)
        life.open_without_annex(kind);  // and later saves end it
    else
        life.open(kind);
    const std::uint64_t save = life.compare();
    if (setup.detach_data_file && save > lost_->number)
        throw std::runtime_error("save " + number_text(save) + " was made without the lost data file, but the heap still names it");
    setup.detach_data_file = false;  // once is enough
    if (as_reader != 0 && as_reader != save)
        throw std::runtime_error("a reader saw save " + std::to_string(as_reader) + ", a writer recovers save " + std::to_string(save));
    for (const heap::Damage& damage : life.heap().engine().check(1)) throw std::runtime_error("engine: " + damage.what);
    if (choice / 8 % 4 == 0) life.prove();
    if (choice / 32 % 8 == 0) {
        // Recovering twice equals recovering once.
        const auto once = page_sums(disk);
        disk.disconnect();
        life.abandon();
        HeapLife again(disk, nullptr, setup, history_);
        again.open(HeapKind::archive);
        if (again.compare() != save) throw std::runtime_error("a second recovery finds another save");
        if (page_sums(disk) != once) throw std::runtime_error("a second recovery changed pages");
        disk.disconnect();
        again.abandon();
        return save;
    }
    if (choice / 256 % 8 == 0) {
        // Life goes on: more saves, a clean close, and everything is there.
        std::mt19937_64 random(state);
        for (int more = 0; more < 3; ++more) {
            change_something(life, random);
            life.save();
        }
        life.close();
        HeapLife after(disk, nullptr, setup, life.history());
        after.open();
        if (after.compare() + 1 != life.history().size()) throw std::runtime_error("a save made after recovery is not there after closing");
        after.prove();
        disk.disconnect();
        after.abandon();
        return save;
    }
    disk.disconnect();
    life.abandon();
    return save;
}

std::uint64_t HeapSubject::check_missing(io::SimulatedStorage& disk, std::uint64_t state) const {
    // No heap under its name: nothing must be in the way of creating it.
    HeapLife life(disk, nullptr, setup_);
    life.create();
    std::mt19937_64 random(state);
    change_something(life, random);
    life.save();
    life.prove();
    disk.disconnect();
    life.abandon();
    return 0;
}

bool HeapSubject::misses_data(io::SimulatedStorage& disk, std::uint64_t state) const {
    const std::filesystem::path data = setup_.data_path();
    if (!lost_ || disk.find(data)) return false;
    if (!lost_->bytes.empty() && mix(state, 0x6261'636b) % 4 == 0) {
        const auto node = disk.make_node(device_of(io::directory_of(data)));
        node->write(lost_->bytes, 0);
        disk.put(data, node);
        return false;
    }
    return names_data_file(disk, heap_path);
}

std::unique_ptr<Subject> HeapSubject::live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t state) {
    History history = history_;
    history.cut(save + 1);
    std::mt19937_64 random(state);
    HeapLife life(disk, &disk, setup_, history);
    if (save == 0)
        life.create();
    else
        life.open();
    const std::uint64_t saves = random() % 3;
    for (std::uint64_t more = 0; more < saves; ++more) {
        change_something(life, random);
        if (random() % 8 == 0) life.put("large", 40'000, random());
        life.save();
    }
    if (random() % 4 != 0) life.close();
    std::optional<LostFile> lost = lost_;
    if (lost) lost->number = save;
    auto next = std::make_unique<HeapSubject>(setup_, life.history(), std::move(lost));
    return next;
}

}  // namespace taiyen::crash
