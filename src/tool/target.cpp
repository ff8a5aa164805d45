#include "tool/target.hpp"

#include <time.h>

#include <algorithm>
#include <initializer_list>

#include <taiyen/base/error.hpp>
#include <taiyen/replicate/directory_target.hpp>

#ifdef TAIYEN_TOOL_NATS
#include <taiyen/nats/nats_target.hpp>
#endif
#ifdef TAIYEN_TOOL_SEAL
#include <taiyen/seal/sealed_target.hpp>
#endif

namespace taiyen::tool {
namespace {

bool is_address(const std::string& target) { return target.starts_with("nats://") || target.starts_with("tls://"); }

std::shared_ptr<ReplicationTarget> open_place(const Given& given, const std::string& target) {
    if (!is_address(target)) {
        for (const char* const option : {"creds", "ca", "cert", "key", "replicas", "allow-plaintext"})
            if (given.has(option))
                throw Error(errc::invalid_argument, target,
                            std::string("--") + option + " is for a server's stream, nats://HOST:PORT/NAME; this is a directory");
        return std::make_shared<DirectoryTarget>(target);
    }
#ifdef TAIYEN_TOOL_NATS
    NatsOptions options = nats_options(target);
    options.credentials = given.value("creds").value_or("");
    options.authority = given.value("ca").value_or("");
    options.certificate = given.value("cert").value_or("");
    options.key = given.value("key").value_or("");
    options.replicas = static_cast<unsigned>(std::min<std::size_t>(given.number("replicas", 1), 100));
    options.allow_plaintext = given.has("allow-plaintext");
    return std::make_shared<NatsTarget>(options);
#else
    throw Error(errc::invalid_argument, target, "this taiyen command was built without libnats, so it knows directories only");
#endif
}

}  // namespace

std::shared_ptr<ReplicationTarget> open_target(const Given& given, const std::string& target) {
    const auto key = given.value("key-file");
    const auto old_key = given.value("old-key-file");
    if (old_key && !key)
        throw Error(errc::invalid_argument, target, "--old-key-file is for frames from before; --key-file names the key of those to come");
    if (!key) return open_place(given, target);
#ifdef TAIYEN_TOOL_SEAL
    std::vector<SealingKey> keys{read_sealing_key(*key)};
    if (old_key) keys.push_back(read_sealing_key(*old_key));
    return std::make_shared<SealedTarget>(open_place(given, target), keys);
#else
    throw Error(errc::invalid_argument, target, "this taiyen command was built without libsodium, so it can't seal frames, nor open them");
#endif
}

std::vector<Option> with_target_options(std::vector<Option> own) {
    for (const Option& option : std::initializer_list<Option>{
             {"key-file", "PATH", "of sealed frames: 32 random bytes that only who owns the file may read"},
             {"old-key-file", "PATH", "of sealed frames: the key before that one, if there are frames under it"},
             {"creds", "PATH", "of a NATS server: user and key (.creds)"},
             {"ca", "PATH", "of a NATS server: the certificates to check its own with; asks for TLS"},
             {"cert", "PATH", "of a NATS server: this program's certificate, with --key"},
             {"key", "PATH", "of a NATS server: the key of --cert"},
             {"replicas", "N", "of a NATS cluster: how many servers keep the stream, if it is made now (1)"},
             {"allow-plaintext", "", "of a NATS server: go to another machine without TLS"},
         })
        own.push_back(option);
    return own;
}

std::chrono::system_clock::time_point time_given(const std::string& text) {
    tm parts{};
    for (const char* const format : {"%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S"}) {
        parts = {};
        const char* const end = ::strptime(text.c_str(), format, &parts);
        if (end == nullptr || *end != 0) continue;
        using Time = std::chrono::system_clock::time_point;
        const auto seconds_of = [](Time time) { return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()); };
        const std::chrono::seconds wanted(::timegm(&parts));  // a clock of nanoseconds ends in the year 2262
        return wanted >= seconds_of(Time::max()) ? Time::max() : wanted <= seconds_of(Time::min()) ? Time::min() : Time(wanted);
    }
    throw Error(errc::invalid_argument, "--at takes a time such as '2026-03-01 12:00:00 UTC', not '" + text + "'");
}

}  // namespace taiyen::tool
