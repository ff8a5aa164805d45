#include "base/codecs.hpp"

#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <taiyen/base/error.hpp>

namespace taiyen {
namespace {

constexpr int zstd_level_max = 19;  // above, windows and tables grow that chunks of a MiB have no use for
constexpr int lz4_level_max = 12;

char* text(std::byte* bytes) { return reinterpret_cast<char*>(bytes); }
const char* text(const std::byte* bytes) { return reinterpret_cast<const char*>(bytes); }

struct FreeCompressor {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeExpander {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

void check_level(Codec codec, int level) {
    const int most = codec == Codec::zstd ? zstd_level_max : codec == Codec::lz4 ? lz4_level_max : 0;
    if (codec < Codec::none || codec > Codec::zstd || level < 0 || level > most) {
        throw Error(errc::invalid_argument,
                    "there is no such level of compression: zstd has 1 to 19, lz4 1 to 12, none has none, and 0 leaves it to the codec");
    }
}

struct Packer::State {
    Codec codec;
    int level;
    std::unique_ptr<ZSTD_CCtx, FreeCompressor> zstd;
    std::vector<std::byte> lz4;
};

Packer::Packer(Codec codec, int level) : state_(new State{codec, level, nullptr, {}}) {
    if (codec == Codec::zstd) {
        state_->zstd.reset(ZSTD_createCCtx());
        if (!state_->zstd) throw std::bad_alloc();
    } else if (codec == Codec::lz4) {
        state_->lz4.resize(static_cast<std::size_t>(level > 1 ? LZ4_sizeofStateHC() : LZ4_sizeofState()));
    }
}
Packer::Packer(Packer&&) noexcept = default;
Packer::~Packer() = default;

ByteCount Packer::bound(Codec codec, ByteCount bytes) {
    switch (codec) {
        case Codec::none: return 0;
        case Codec::lz4: return static_cast<ByteCount>(LZ4_compressBound(static_cast<int>(bytes)));
        case Codec::zstd: break;
    }
    return ZSTD_compressBound(bytes);
}

ByteCount Packer::pack(std::span<const std::byte> bytes, std::span<std::byte> into) {
    ByteCount used = 0;
    if (state_->codec == Codec::zstd) {
        used = ZSTD_compressCCtx(state_->zstd.get(), into.data(), into.size(), bytes.data(), bytes.size(), state_->level == 0 ? 3 : state_->level);
        if (ZSTD_isError(used) != 0) throw std::bad_alloc();  // `into` is as large as it may have to be: nothing else can be wrong
    } else if (state_->codec == Codec::lz4) {
        const auto from = static_cast<int>(bytes.size());
        const auto room = static_cast<int>(into.size());
        used = static_cast<ByteCount>(
            state_->level > 1 ? LZ4_compress_HC_extStateHC(state_->lz4.data(), text(bytes.data()), text(into.data()), from, room, state_->level)
                              : LZ4_compress_fast_extState(state_->lz4.data(), text(bytes.data()), text(into.data()), from, room, 1));
    }
    return used < bytes.size() ? used : 0;
}

struct Unpacker::State {
    std::unique_ptr<ZSTD_DCtx, FreeExpander> zstd;
};

Unpacker::Unpacker() : state_(new State) {}
Unpacker::Unpacker(Unpacker&&) noexcept = default;
Unpacker::~Unpacker() = default;

bool Unpacker::unpack(Codec codec, std::span<const std::byte> bytes, std::span<std::byte> into) {
    switch (codec) {
        case Codec::none:
            if (bytes.size() != into.size()) return false;
            std::memcpy(into.data(), bytes.data(), bytes.size());
            return true;
        case Codec::lz4:
            return LZ4_decompress_safe(text(bytes.data()), text(into.data()), static_cast<int>(bytes.size()), static_cast<int>(into.size())) ==
                   static_cast<int>(into.size());
        case Codec::zstd:
            if (!state_->zstd) {
                state_->zstd.reset(ZSTD_createDCtx());
                if (!state_->zstd) throw std::bad_alloc();
            }
            return ZSTD_decompressDCtx(state_->zstd.get(), into.data(), into.size(), bytes.data(), bytes.size()) == into.size();
    }
    return false;
}

}  // namespace taiyen
