#pragma once
/// CommitGate: what else a transaction waits for than this machine's disk: replication, where the program asks for that.
/// Thread rule: safe.

#include <cstdint>

#include <taiyen/base/units.hpp>

namespace taiyen::txn {

class CommitGate {
public:
    virtual ~CommitGate() = default;
    /// Whether a transaction may begin while the log, of that capacity, ends there. Under the writer lock: it waits for nothing.
    virtual bool has_room(std::uint64_t log_end, ByteCount log_capacity) const noexcept = 0;
    /// Returns when it is worth asking again. Under no lock. Throws: no transaction may begin now.
    virtual void wait_for_room() = 0;
    /// Behind the durable write of a transaction, under no lock. Throws: Error{unconfirmed}: it was committed, and that isn't known elsewhere.
    virtual void confirm(Serial serial) = 0;
};

}  // namespace taiyen::txn
