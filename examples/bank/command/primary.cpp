#include "command/bank_process.hpp"
#include "command/bank_stream.hpp"
#include "command/commands.hpp"
#include "server.hpp"

namespace bank::command {

int primary(const Settings& settings) {
    taiyen::TransactionalHeap heap(taiyen::open_only, settings.file);
    taiyen::ReplicationOptions how;
    how.acknowledge = settings.promises_locally ? taiyen::Acknowledge::local : taiyen::Acknowledge::replicated;
    how.retry = std::chrono::milliseconds(100);
    const taiyen::Replication replication =
        once_they_answer([&] { return taiyen::Replication(heap, bank_stream(settings.url, settings.servers), how); });
    Server server(heap, settings.threads, tell);
    Load load(settings.seed, heap.find<Ledger>(ledger_name)->last_account);
    while (server.submit(load.next())) {}
    server.finish();
    return 1;
}

}  // namespace bank::command
