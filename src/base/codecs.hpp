#pragma once
/// Packer and Unpacker: the codecs, with the memory that they keep between calls.
///
/// What Unpacker gets may be hostile: it writes nowhere but into `into`, and says whether the bytes were what they should. Thread rule: one thread.

#include <memory>
#include <span>

#include <taiyen/base/codec.hpp>
#include <taiyen/base/units.hpp>

namespace taiyen {

/// Throws: Error{invalid_argument} for a level that the codec doesn't have.
void check_level(Codec codec, int level);

class Packer {
public:
    Packer(Codec codec, int level);
    Packer(Packer&&) noexcept;
    ~Packer();

    /// Bytes that `pack` may need for so many.
    static ByteCount bound(Codec codec, ByteCount bytes);
    /// Returns how many bytes of `into` it used; 0: it would not become smaller. Throws: std::bad_alloc.
    ByteCount pack(std::span<const std::byte> bytes, std::span<std::byte> into);

private:
    struct State;
    std::unique_ptr<State> state_;
};

class Unpacker {
public:
    Unpacker();
    Unpacker(Unpacker&&) noexcept;
    ~Unpacker();

    /// Whether the bytes expand to exactly `into`. Throws: std::bad_alloc.
    bool unpack(Codec codec, std::span<const std::byte> bytes, std::span<std::byte> into);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace taiyen
