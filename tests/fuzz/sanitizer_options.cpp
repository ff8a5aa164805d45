// What the libFuzzer programs ask of the address sanitizer; ASAN_OPTIONS overrules it.

/// What was freed is kept from reuse up to 16 MiB instead of 256: an input frees less than that, and fresh memory for each allocation costs a fifth of the executions.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=16:malloc_context_size=10"; }
