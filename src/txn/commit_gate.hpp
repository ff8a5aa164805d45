#pragma once
/// CommitGate: what else a transaction waits for than this machine's disk: replication, where the program asks for that.
/// Thread rule: safe. It is called under no lock of the heap.

#include <taiyen/base/units.hpp>

namespace taiyen::txn {

class CommitGate {
public:
    virtual ~CommitGate() = default;
    /// Before a transaction begins. Returns: it may. Throws: it may not.
    virtual void admit() = 0;
    /// Behind the durable write of a transaction. Throws: Error{unconfirmed}: it was committed, and that isn't known elsewhere.
    virtual void confirm(Serial serial) = 0;
};

}  // namespace taiyen::txn
