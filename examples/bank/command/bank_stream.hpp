#pragma once
/// The stream in which a cluster's primary and follower meet.

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

#include "command/figures.hpp"

namespace bank::command {

inline constexpr std::chrono::seconds cluster_patience(60);
inline constexpr const char* stream_name = "bank";
/// The stream's name among servers.
inline const std::string stream_of_servers = "TAIYEN_bank";

inline std::shared_ptr<taiyen::NatsTarget> bank_stream(const std::string& url, unsigned servers) {
    taiyen::NatsOptions options;
    options.url = url;
    options.name = stream_name;
    options.replicas = servers;
    options.timeout = std::chrono::seconds(2);
    return std::make_shared<taiyen::NatsTarget>(options);
}

/// Does what a cluster that elects leaders can't answer for some seconds, again and again, for a minute at most. Throws: as the step.
template <class Step>
auto once_they_answer(Step step) {
    const auto end = Clock::now() + cluster_patience;
    while (true) {
        try {
            return step();
        } catch (const taiyen::Error& error) {
            const bool may_pass = error.code() == taiyen::errc::unreachable || error.code() == taiyen::errc::no_space;
            if (!may_pass || Clock::now() > end) throw;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

}  // namespace bank::command
