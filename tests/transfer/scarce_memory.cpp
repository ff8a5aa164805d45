// The same memory as in the tests of the files.
#include "store/scarce_memory.cpp"  // NOLINT
