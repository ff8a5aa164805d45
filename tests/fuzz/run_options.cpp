// What only the libFuzzer programs have: what they ask of the address sanitizer, and random numbers that come again.

#include <cstdlib>

#include "base/planted.hpp"

/// What was freed is kept from reuse up to 16 MiB instead of 256: an input frees less than that, and fresh memory for each allocation costs a fifth of the executions. ASAN_OPTIONS overrules it.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=16:malloc_context_size=10"; }

/// In a run that is to be repeated (run.sh) the library's uuids and epochs are the same ones each time.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
#ifdef TAIYEN_PLANTED_BUGS
    if (std::getenv("TAIYEN_RUN_SEED") != nullptr) taiyen::repeatable_random = 1;
#endif
    return 0;
}
