#include <taiyen/seal/sealed_target.hpp>

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "replicate/frame_layout.hpp"
#include "seal/seal.hpp"

namespace taiyen {

namespace {

[[noreturn]] void throw_refused(errc code, const ReplicationTarget& target, std::uint64_t number, const std::string& why) {
    throw Error(code, target.name(), "frame " + std::to_string(number) + why);
}

}  // namespace

using replicate::layout::SealedHead;

class SealedTarget::Seals {
public:
    explicit Seals(std::span<const SealingKey> keys) : seals_(keys.begin(), keys.end()) {}

    const seal::Seal& newest() const { return seals_.front(); }
    /// Null: it was sealed with another key.
    const seal::Seal* of(const SealedHead& head) const {
        const auto found = std::ranges::find_if(seals_, [&](const seal::Seal& seal) { return seal.has_sealed(head); });
        return found == seals_.end() ? nullptr : &*found;
    }

private:
    std::vector<seal::Seal> seals_;
};

SealedTarget::SealedTarget(std::shared_ptr<ReplicationTarget> target, std::span<const SealingKey> keys) : target_(std::move(target)) {
    if (!target_) throw Error(errc::invalid_argument, "a sealed target needs a target to seal; name one");
    if (keys.empty()) throw Error(errc::invalid_argument, target_->name(), "sealing needs a key; name one");
    seals_ = std::make_unique<const Seals>(keys);
}

SealedTarget::~SealedTarget() = default;

std::string SealedTarget::name() const { return target_->name(); }
std::chrono::milliseconds SealedTarget::linger() const { return target_->linger(); }
SealedTarget::Range SealedTarget::range() { return target_->range(); }
void SealedTarget::trim(std::uint64_t first) { target_->trim(first); }

bool SealedTarget::append(std::uint64_t number, std::span<const std::byte> frame) {
    return target_->append(number, seals_->newest().seal(number, frame));
}

std::vector<std::byte> SealedTarget::read(std::uint64_t number) {
    const std::vector<std::byte> bytes = target_->read(number);
    SealedHead head{};
    if (!bytes.empty()) std::memcpy(&head, bytes.data(), std::min(bytes.size(), sizeof head));
    if (head.magic != replicate::layout::sealed_magic)
        throw_refused(errc::corrupt, *target_, number,
                      " isn't sealed: who wrote it had no key; restore what comes before it, and seal into another place");
    if (bytes.size() >= sizeof head) {
        if (head.version != replicate::layout::sealed_version)
            throw_refused(errc::unsupported_version, *target_, number,
                          " is sealed in version " + std::to_string(head.version) + "; use a newer library");
        const seal::Seal* const seal = seals_->of(head);
        if (seal == nullptr) throw_refused(errc::permission, *target_, number, " is sealed with another key; name that one");
        if (auto frame = seal->open(number, bytes)) return std::move(*frame);
    }
    throw_refused(errc::corrupt, *target_, number,
                  " has a broken seal: it was changed, cut, or put in another one's place; make a new base, or restore what comes before it");
}

}  // namespace taiyen
