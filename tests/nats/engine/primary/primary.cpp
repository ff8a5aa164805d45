// A program that is killed: it lengthens a chain, and writes each length to the standard output once the target has confirmed it.
//
//   taiyen_nats_primary URL STREAM FILE SEED

#include <cstdio>
#include <memory>
#include <string>

#include <unistd.h>

#include <taiyen/nats/nats_target.hpp>

#include "nats/engine/chain.hpp"

int main(int, char** arguments) {
    try {
        taiyen::NatsOptions how;
        how.url = arguments[1];
        how.name = arguments[2];
        how.timeout = std::chrono::seconds(60);
        std::mt19937_64 random(std::stoull(arguments[4]));
        taiyen::PersistentOptions options;
        options.log_capacity = std::size_t{4} << 20U;
        taiyen::TransactionalHeap heap(taiyen::open_or_create, arguments[3], options);
        taiyen::ReplicationOptions replicated;
        replicated.acknowledge = taiyen::Acknowledge::replicated;
        replicated.confirm_timeout = std::chrono::minutes(10);
        const taiyen::Replication replication(heap, std::make_shared<taiyen::NatsTarget>(how), replicated);
        for (;;) {
            taiyen::Transaction transaction(heap);
            const std::uint64_t length = chain::lengthen(heap, random);
            transaction.commit();
            if (::write(STDOUT_FILENO, &length, sizeof length) != sizeof length) return 2;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "the primary: %s\n", error.what());
        return 1;
    }
}
