#pragma once
/// SealedTarget: frames that only who has the key can read, or write: for an engine, a disk or a network that others use, too.
///
///   const taiyen::SealingKey key = taiyen::read_sealing_key("/etc/bank.key");   // head -c 32 /dev/urandom > bank.key; chmod 600 bank.key
///   auto target = std::make_shared<taiyen::SealedTarget>(std::make_shared<taiyen::DirectoryTarget>("/backup/bank"), std::vector{key});
///   taiyen::Replication replication(heap, target);
///
/// A library of its own: link taiyen::seal (find_package(taiyen COMPONENTS seal)). It needs libsodium.
/// Sizes and times of frames are seen by others, who may also delete frames, or keep them back: a restore then ends earlier.
/// Format: src/replicate/FORMAT.md, "Sealed"; guide: doc/replication.md.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/replicate/replication_target.hpp>

namespace taiyen {

/// Thirty-two random bytes; they are wiped when it is destroyed.
struct TAIYEN_EXPORT SealingKey {
    std::array<std::byte, 32> bytes{};

    SealingKey() = default;
    SealingKey(const SealingKey&) = default;
    SealingKey& operator=(const SealingKey&) = default;
    ~SealingKey();
};

/// The key in a file of exactly 32 bytes, which nobody but its owner may read. Throws: Error{not_found | permission | not_a_regular_file | invalid_argument | io_error}: it names the file, never what is in it.
TAIYEN_EXPORT SealingKey read_sealing_key(const std::filesystem::path& path);

/// Another target, whose frames are sealed: XChaCha20-Poly1305 over each frame and its number. Thread rule: safe.
class TAIYEN_EXPORT SealedTarget final : public ReplicationTarget {
public:
    /// The first key seals, any of them opens. Throws: Error{invalid_argument}: no target, or no key.
    SealedTarget(std::shared_ptr<ReplicationTarget> target, std::span<const SealingKey> keys);
    ~SealedTarget() override;

    /// The target's own.
    std::string name() const override;
    std::chrono::milliseconds linger() const override;
    Range range() override;
    bool append(std::uint64_t number, std::span<const std::byte> frame) override;
    /// Throws: Error{corrupt}: it isn't sealed, or is changed, cut or another frame; Error{permission}: it is sealed with another key; Error{unsupported_version}; what the target throws.
    std::vector<std::byte> read(std::uint64_t number) override;
    void trim(std::uint64_t first) override;

private:
    class Seals;
    std::shared_ptr<ReplicationTarget> target_;
    std::unique_ptr<const Seals> seals_;
};

}  // namespace taiyen
