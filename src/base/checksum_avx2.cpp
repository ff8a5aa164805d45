// XXH3 with registers of 32 bytes: compiled with -mavx2, called only where the processor has them. Nothing but xxhash.h is included: what another file might share with this one would need such a processor, too.

#if defined(__AVX2__)

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen {

unsigned long long checksum_avx2(const void* bytes, unsigned long long size, unsigned long long seed) noexcept {
    return XXH3_64bits_withSeed(bytes, size, seed);
}

}  // namespace taiyen

#endif
