#include "txn/readers_here.hpp"

#include <taiyen/base/error.hpp>

namespace taiyen::txn {

thread_local constinit ReadersHere::Readers ReadersHere::here{};

void ReadersHere::throw_full() { throw Error(errc::invalid_argument, "a thread can read 32 heaps at once; end some of its ReadLocks first"); }

}  // namespace taiyen::txn
