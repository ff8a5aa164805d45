#include "seal/seal.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

namespace taiyen::seal {
namespace {

using replicate::layout::SealedHead;

static_assert(crypto_kdf_KEYBYTES == sizeof SealingKey::bytes && crypto_aead_xchacha20poly1305_ietf_KEYBYTES == sizeof SealingKey::bytes);
static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == sizeof SealedHead::nonce);
static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == replicate::layout::sealed_tag_bytes);

/// What a key is used for: each has a key of its own.
enum class Use : std::uint64_t { sealing = 1, nonces = 2, identifier = 3 };

/// libsodium's characters are bytes here.
const unsigned char* in(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* out(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

SealingKey derived(const SealingKey& key, Use use) {
    SealingKey subkey;
    crypto_kdf_derive_from_key(out(subkey.bytes.data()), subkey.bytes.size(), static_cast<std::uint64_t>(use), "TAYIENSL", in(key.bytes.data()));
    return subkey;
}

/// What the tag holds beside the frame.
struct Associated {
    SealedHead head;
    std::uint64_t number;
};
static_assert(sizeof(Associated) == sizeof(SealedHead) + 8);

}  // namespace

Seal::Seal(const SealingKey& key) {
    if (::sodium_init() < 0) throw Error(errc::io_error, "libsodium can't be used: the system gives no random numbers; mend /dev/urandom");
    sealing_ = derived(key, Use::sealing);
    nonces_ = derived(key, Use::nonces);
    const SealingKey identifying = derived(key, Use::identifier);
    constexpr unsigned char what[] = {'T', 'A', 'Y', 'I', 'E', 'N', 'S', '\n'};
    unsigned char hash[32];
    crypto_generichash(hash, sizeof hash, what, sizeof what, in(identifying.bytes.data()), identifying.bytes.size());
    std::copy_n(hash, sizeof identifier_, identifier_);
}

bool Seal::has_sealed(const SealedHead& head) const { return std::ranges::equal(head.key, identifier_); }

std::vector<std::byte> Seal::seal(std::uint64_t number, std::span<const std::byte> frame) const {
    Associated about{{replicate::layout::sealed_magic, replicate::layout::sealed_version, 0, {}, {}}, number};
    std::ranges::copy(identifier_, about.head.key);
    crypto_generichash_state state;
    crypto_generichash_init(&state, in(nonces_.bytes.data()), nonces_.bytes.size(), sizeof about.head.nonce);
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&number), sizeof number);
    crypto_generichash_update(&state, in(frame.data()), frame.size());
    crypto_generichash_final(&state, about.head.nonce, sizeof about.head.nonce);
    ::sodium_memzero(&state, sizeof state);

    std::vector<std::byte> bytes(sizeof about.head + frame.size() + replicate::layout::sealed_tag_bytes);
    std::memcpy(bytes.data(), &about.head, sizeof about.head);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out(bytes.data() + sizeof about.head), nullptr, in(frame.data()), frame.size(),
                                               reinterpret_cast<const unsigned char*>(&about), sizeof about, nullptr, about.head.nonce,
                                               in(sealing_.bytes.data()));
    return bytes;
}

std::optional<std::vector<std::byte>> Seal::open(std::uint64_t number, std::span<const std::byte> bytes) const {
    Associated about{{}, number};
    if (bytes.size() < sizeof about.head + replicate::layout::sealed_tag_bytes) return std::nullopt;
    std::memcpy(&about.head, bytes.data(), sizeof about.head);
    const auto sealed = bytes.subspan(sizeof about.head);
    std::vector<std::byte> frame(sealed.size() - replicate::layout::sealed_tag_bytes);
    const int wrong = crypto_aead_xchacha20poly1305_ietf_decrypt(out(frame.data()), nullptr, nullptr, in(sealed.data()), sealed.size(),
                                                                 reinterpret_cast<const unsigned char*>(&about), sizeof about, about.head.nonce,
                                                                 in(sealing_.bytes.data()));
    if (wrong != 0) return std::nullopt;
    return frame;
}

}  // namespace taiyen::seal
