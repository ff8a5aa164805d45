#include "replicate/frame.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "replicate/packed_frame.hpp"
#include "store/opening_record.hpp"

namespace taiyen::replicate {
namespace {

std::uint64_t checksum_of_head(const FrameHead& head) {
    return checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(FrameHead, checksum)), head.version);
}

bool is_sealed(std::span<const std::byte> bytes) {
    std::uint64_t magic = 0;
    if (bytes.size() < sizeof magic) return false;
    std::memcpy(&magic, bytes.data(), sizeof magic);
    return magic == layout::sealed_magic;
}

}  // namespace

std::vector<std::byte> encode(FrameHead& head, std::span<const std::span<const std::byte>> body) {
    head.magic = layout::frame_magic;
    head.version = layout::frame_version;
    head.body_bytes = 0;
    for (const auto& piece : body) head.body_bytes += piece.size();
    std::vector<std::byte> bytes(sizeof head);
    bytes.reserve(sizeof head + head.body_bytes);
    for (const auto& piece : body) bytes.insert(bytes.end(), piece.begin(), piece.end());
    head.body_checksum = checksum(std::span(bytes).subspan(sizeof head), head.number);
    head.checksum = checksum_of_head(head);
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
}

FrameHead successor(const FrameHead& before, const Uuid& heap) {
    FrameHead head{};
    std::ranges::copy(heap.bytes, head.heap);
    head.number = before.number + 1;
    head.previous = before.checksum;
    head.epoch = before.epoch;
    head.epoch_frame = before.epoch_frame;
    std::ranges::copy(before.file, head.file);
    std::ranges::copy(before.attached, head.attached);
    std::ranges::copy(before.file_before, head.file_before);
    head.last_serial = before.last_serial;
    head.written_at = store::microseconds_of(store::time_now());
    head.newest_base = before.newest_base;
    head.covered_generation = before.covered_generation;
    head.covered_serial = before.covered_serial;
    head.bytes_since_base = before.bytes_since_base + sizeof head;  // and the body's, which isn't known yet
    return head;
}

EpochFrame encode_epoch(const FrameHead& before, const Uuid& heap, const Uuid& file, std::span<const std::uint8_t, 16> attached, Serial serial,
                        const KeptSerials& kept, FrameKind kind) {
    EpochFrame epoch{successor(before, heap), {}};
    epoch.head.kind = kind;
    ++epoch.head.epoch;
    epoch.head.epoch_frame = epoch.head.number;
    if (before.number != 0 && !std::ranges::equal(before.file, file.bytes)) std::ranges::copy(before.file, epoch.head.file_before);
    std::ranges::copy(file.bytes, epoch.head.file);
    std::ranges::copy(attached, epoch.head.attached);
    layout::EpochBody body{};
    body.serial = serial.value;
    ::gethostname(body.host, sizeof body.host - 1);
    std::vector<layout::KeptHead> heads;
    for (const auto& [group, first] : kept) std::ranges::copy(group, heads.emplace_back(layout::KeptHead{{}, first.value}).group);
    const std::array pieces{std::as_bytes(std::span(&body, 1)), std::as_bytes(std::span(heads))};
    for (const auto& piece : pieces) epoch.head.bytes_since_base += piece.size();
    epoch.bytes = encode(epoch.head, pieces);
    return epoch;
}

KeptSerials kept_at(ReplicationTarget& target, const FrameHead& newest) {
    KeptSerials kept;
    try {
        if (newest.epoch_frame < target.range().first) return kept;
        const Frame frame(target, newest.epoch_frame);
        (void)frame.begin_of_body<layout::EpochBody>();
        for (auto left = frame.body().subspan(sizeof(layout::EpochBody)); left.size() >= sizeof(layout::KeptHead);
             left = left.subspan(sizeof(layout::KeptHead))) {
            layout::KeptHead head;
            std::memcpy(&head, left.data(), sizeof head);
            kept[std::to_array(head.group)] = Serial{head.serial};
        }
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) throw;
        report(
            {errc::corrupt, nullptr, std::string("what the marks of groups need is not known, and kept only once they are opened: ") + error.what()});
    }
    return kept;
}

Frame::Frame(ReplicationTarget& target, std::uint64_t number, Lane lane) : target_(target.name()), number_(number) {
    try {
        bytes_ = target.read(number);
    } catch (const Error& error) {
        if (error.code() != errc::not_found) throw;
        throw_corrupt("it is missing");
    }
    if (is_sealed(bytes_)) {
        throw Error(errc::permission, target_,
                    "frame " + std::to_string(number) + " is sealed; name the file of its key (--key-file), in a program use taiyen::SealedTarget");
    }
    if (is_packed(bytes_)) {
        auto frame = unpack(bytes_);
        if (!frame) throw_corrupt("what it was packed into is another thing");
        bytes_ = std::move(*frame);
    }
    if (bytes_.size() < sizeof head_) throw_corrupt("it ends early");
    std::memcpy(&head_, bytes_.data(), sizeof head_);
    if (head_.magic != layout::frame_magic) throw_corrupt("it is none");
    if (head_.checksum != checksum_of_head(head_)) throw_corrupt("its head has another checksum");
    if (head_.version != layout::frame_version) {
        throw Error(errc::unsupported_version, target_,
                    "frame " + std::to_string(number) + " is of version " + std::to_string(head_.version) + "; use a newer library");
    }
    if (head_.number != number) throw_corrupt("it says that it is frame " + std::to_string(head_.number));
    if (head_.body_bytes != body().size()) throw_corrupt("its body has another size");
    if (head_.body_checksum != checksum(body(), number)) throw_corrupt("its body has another checksum");
    if (head_.kind < FrameKind::epoch || head_.kind > FrameKind::marks) throw_corrupt("its kind is unknown");
    if ((head_.kind >= FrameKind::group_epoch) != (lane == Lane::group)) {
        throw Error(errc::mismatch, target_,
                    lane == Lane::heap ? "it holds the cuts of a group, not a heap; name the place of one of its heaps, or restore the group"
                                       : "it holds a heap, not the cuts of a group; name the place that the group was given");
    }
    if (std::max({head_.newest_base, head_.epoch_frame, head_.begin}) > number) throw_corrupt("it speaks of frames behind it");
}

Uuid Frame::heap() const {
    Uuid uuid;
    std::ranges::copy(head_.heap, uuid.bytes.begin());
    return uuid;
}

Uuid Frame::file() const {
    Uuid uuid;
    std::ranges::copy(head_.file, uuid.bytes.begin());
    return uuid;
}

void Frame::require_follows(const FrameHead& before) const {
    if (planted(Bug::frame_chain_unchecked)) return;
    const bool follows = head_.number == before.number + 1 && head_.previous == before.checksum && std::ranges::equal(head_.heap, before.heap) &&
                         head_.last_serial >= before.last_serial && head_.epoch == before.epoch + (head_.kind == FrameKind::epoch ? 1 : 0) &&
                         (head_.kind == FrameKind::epoch || std::ranges::equal(head_.attached, before.attached));
    if (!follows) throw_corrupt("it doesn't continue the frame before it");
}

void Frame::throw_corrupt(const std::string& why) const {
    throw Error(errc::corrupt, target_,
                "frame " + std::to_string(number_) + " is damaged: " + why + "; make a new base, or restore what comes before it");
}

}  // namespace taiyen::replicate
