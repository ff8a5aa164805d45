// What a program outside the project does with taiyen::nats before there is a server.

#include <cstdio>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

int main() {
    taiyen::NatsOptions options = taiyen::nats_options("nats://127.0.0.1:1/bank");
    options.timeout = std::chrono::milliseconds(500);
    try {
        const taiyen::NatsTarget target(options);
    } catch (const taiyen::Error& error) {
        std::puts(error.code() == taiyen::errc::unreachable ? "ok" : error.what());
        return 0;
    }
    std::puts("somebody answers at port 1");
}
