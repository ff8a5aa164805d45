// Frames as no heap sends them: restoring, or following, must end with a heap or a typed error. An error leaves nothing under the heap's name; what becomes a heap passes the engine's check, opens, and is worked with; and frames that
// nobody changed give the heap that was replicated.
//
// An input is a recipe: up to which transaction, edits of heads and bodies, whether the checksums and what a frame says of the one before are made right again afterwards, and who reads them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/taiyen.hpp>

#include "base/checksum.hpp"
#include "fuzz/input.hpp"
#include "io/disks/simulated_storage.hpp"
#include "replicate/following.hpp"
#include "replicate/packed_frame.hpp"
#include "replicate/pretended_target.hpp"
#include "replicate/restorer.hpp"
#include "replicate/shipper.hpp"
#include "store/heap_access.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::replicate;
using taiyen::fuzz::Input;
using taiyen::replicate::test::PretendedTarget;
using Bytes = std::vector<std::byte>;
using Words = taiyen::vector<std::uint64_t>;

const std::filesystem::path heap_path = "/disk/a.tyn";
const std::filesystem::path restored_path = "/disk/b.tyn";
constexpr std::uint64_t transactions = 9;

struct Opened {
    std::shared_ptr<store::HeapFile> file;
    TransactionalHeap heap;
};

Opened open(io::Storage& disk, const std::filesystem::path& path, store::OpenMode mode, bool follows = false) {
    PersistentOptions options;
    options.capacity = 1_MiB;
    options.log_capacity = 64_KiB;
    options.address = 0x2b80'0000'0000;
    if (follows) options.capture = Capture::declared;
    store::Tuning tuning;
    if (follows) tuning.role = store::RoleWanted::follower;
    tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
    auto file = store::HeapFile::open(disk, path, mode, HeapKind::transactional, options, tuning);
    return {file, HeapAccess::make<TransactionalHeap>(file)};
}

/// The frames of a heap with two bases, the second one of pages that changed, and transactions behind each.
std::map<std::uint64_t, Bytes> make_frames() {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    PretendedTarget target;
    Opened opened = open(disk, heap_path, store::OpenMode::create_only);
    const auto transact = [&](TransactionalHeap& heap) {
        Transaction transaction(heap);
        auto& words = heap.find_or_construct<Words>("words");
        words.resize(words.size() + 40, words.size());
        transaction.commit();
    };
    for (std::uint64_t i = 0; i < 3; ++i) transact(opened.heap);
    for (int attachment = 0; attachment < 2; ++attachment) {
        Shipper shipper(*opened.file, *txn::TransactionService::of(*opened.file), target, 1);
        shipper.attach();
        for (std::uint64_t i = 0; i < 3; ++i) {
            transact(opened.heap);
            shipper.ship();
        }
        shipper.keep({1}, Serial{4});
        if (attachment == 0) opened.heap.snapshot();
    }
    opened.heap.close();
    return target.frames();
}

void make_right(std::map<std::uint64_t, Bytes>& frames) {
    std::uint64_t previous = 0;
    for (auto& [number, bytes] : frames) {
        if (bytes.size() < sizeof(FrameHead)) continue;
        FrameHead head;
        std::memcpy(&head, bytes.data(), sizeof head);
        head.previous = previous;
        Bytes body(bytes.begin() + sizeof head, bytes.end());
        if (head.kind == FrameKind::base_done && body.size() >= sizeof(layout::BaseDone)) {
            layout::BaseDone done;
            std::memcpy(&done, body.data(), sizeof done);
            done.header.checksum = checksum(std::as_bytes(std::span(&done.header, 1)).first(offsetof(store::HeaderBlock, checksum)),
                                            mix(store::header_magic, done.header.sequence % 2));
            std::memcpy(body.data(), &done, sizeof done);
        } else if (head.kind == FrameKind::pages && body.size() >= sizeof(store::TablePage)) {
            store::TablePage table;
            std::memcpy(&table, body.data(), sizeof table);
            Uuid heap;
            std::ranges::copy(head.heap, heap.bytes.begin());
            table.checksum = store::table_page_checksum(table, heap);
            std::memcpy(body.data(), &table, sizeof table);
        }
        const std::array pieces{std::span<const std::byte>(body)};
        bytes = encode(head, pieces);
        previous = head.checksum;
    }
}

/// As a target keeps them; one of them may be another thing inside, for all that its checksum says. Whether it is.
bool pack(std::map<std::uint64_t, Bytes>& frames, Codec codec, Input& input) {
    FramePacker packer(codec);
    for (auto& [number, bytes] : frames) bytes = packer.pack(std::move(bytes));
    const std::uint64_t which = input.number(1);
    const auto frame = frames.find(which % 16 + 1);
    if (which < 128 || frame == frames.end() || !is_packed(frame->second)) return false;
    const Bytes before = frame->second;
    input.change(frame->second, input.number(2), 8);
    if (!is_packed(frame->second)) return true;
    layout::PackedHead head;
    std::memcpy(&head, frame->second.data(), sizeof head);
    const auto packed = std::span<const std::byte>(frame->second).subspan(sizeof head);
    head.checksum = checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(layout::PackedHead, checksum)), checksum(packed, head.frame_bytes));
    std::memcpy(frame->second.data(), &head, sizeof head);
    return frame->second != before;
}

/// Throws what opening throws.
std::uint64_t use(io::SimulatedStorage& disk) {
    Opened opened = open(disk, restored_path, store::OpenMode::open_only);
    TAIYEN_CHECK(opened.file->engine().check(1).empty());
    const Words* const words = opened.heap.find<Words>("words");
    const std::uint64_t size = words == nullptr ? 0 : words->size();
    {
        Transaction transaction(opened.heap);
        opened.heap.construct<std::uint64_t>("used") = 1;
        transaction.commit();
    }
    opened.heap.close();
    return size;
}

/// A follower that has read the first sound frames reads the rest.
void follow(const std::map<std::uint64_t, Bytes>& sound, PretendedTarget& target, std::uint64_t first, bool is_changed) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    PretendedTarget before;
    for (const auto& [number, bytes] : sound)
        if (number <= first) before.put(number, bytes);
    try {
        (void)Restorer(disk, before, restored_path, {}).run_for_follower();
    } catch (const Error&) {
        return;  // so early there is no base yet
    }
    Opened opened = open(disk, restored_path, store::OpenMode::open_only, true);
    Following following(*opened.file, *txn::TransactionService::of(*opened.file), target);
    bool is_refused = false;
    try {
        while (following.step()) {}
    } catch (const Error&) {
        is_refused = true;
    } catch (const std::bad_alloc&) {  // HeapFull
        is_refused = true;
    }
    if (!is_changed) {
        TAIYEN_CHECK(!is_refused && following.applied().value == transactions);
        TAIYEN_CHECK(opened.file->engine().check(1).empty() && opened.heap.find<Words>("words")->size() == transactions * 40);
    }
    try {
        opened.heap.close();
    } catch (const Error&) {
        TAIYEN_CHECK(is_changed);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::map<std::uint64_t, Bytes> sound = make_frames();
    static const bool quiet = [] {
        set_report_handler(+[](const Incident&) noexcept {});
        return true;
    }();
    (void)quiet;
    Input input(data, size);
    std::map<std::uint64_t, Bytes> frames = sound;
    RestoreOptions how;
    if (const std::uint64_t serial = input.number(1); serial != 0) how.serial = Serial{serial};
    const std::uint64_t what = input.number(1);
    bool is_changed = false;
    for (std::uint64_t edits = what % 8; edits != 0; --edits) {
        auto frame = frames.begin();
        std::advance(frame, static_cast<std::ptrdiff_t>(input.number(1) % frames.size()));
        const std::uint64_t offset = input.number(2);
        input.change(frame->second, offset, 8);
        is_changed = true;
    }
    if (what / 8 % 8 == 1 && !frames.empty()) {  // cut or lost
        auto frame = frames.begin();
        std::advance(frame, static_cast<std::ptrdiff_t>(input.number(1) % frames.size()));
        frame->second.resize(std::min<std::size_t>(frame->second.size(), input.number(2)));
        is_changed = true;
    }
    const std::uint64_t made = what / 64 % 4;
    if (made != 0) make_right(frames);
    if (made >= 2) is_changed = pack(frames, made == 2 ? Codec::lz4 : Codec::zstd, input) || is_changed;
    PretendedTarget target;
    for (auto& [number, bytes] : frames) target.put(number, bytes);
    try {
        const KeptSerials kept = kept_at(target, Frame(target, target.range().last).head());
        if (!is_changed) TAIYEN_CHECK(kept.size() == 1);
    } catch (const Error&) {}
    if (const std::uint64_t first = input.number(1); first != 0) {
        follow(sound, target, first % sound.size() + 1, is_changed);
        return 0;
    }

    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    std::optional<Restored> restored;
    try {
        restored = Restorer(disk, target, restored_path, how).run();
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {  // a heap that says that it is full
    }
    TAIYEN_CHECK(restored.has_value() == disk.find(restored_path).has_value());
    if (!is_changed) TAIYEN_CHECK(restored.has_value() == (!how.serial || (how.serial->value >= 3 && how.serial->value <= transactions)));
    if (!restored) return 0;
    try {
        const std::uint64_t words = use(disk);
        if (!is_changed) TAIYEN_CHECK(words == restored->serial.value * 40 && words != 0);
    } catch (const Error&) {
        TAIYEN_CHECK(is_changed);
    } catch (const std::bad_alloc&) {
        TAIYEN_CHECK(is_changed);
    }
    return 0;
}
