#include <taiyen/nats/nats_target.hpp>

#include <unistd.h>

#include <mutex>

#include <taiyen/base/error.hpp>

#include "nats/frame_parts.hpp"
#include "nats/stream.hpp"

namespace taiyen {

class NatsTarget::Parts {
public:
    explicit Parts(const NatsOptions& options) : linger(options.linger), stream_(options), parts_(stream_) {}

    std::string name() const { return stream_.name(); }
    bool is_of_parent() const noexcept { return ::getpid() != process_; }
    template <class F>
    auto with(F&& call) {
        if (is_of_parent()) throw Error(errc::forked, name(), "a forked child can't use its parent's connection; make a target of its own");
        const std::lock_guard lock(mutex_);
        return call(parts_);
    }

    const std::chrono::milliseconds linger;

private:
    const pid_t process_ = ::getpid();
    std::mutex mutex_;
    nats::Stream stream_;
    nats::FrameParts parts_;
};

NatsOptions nats_options(std::string_view address) {
    if (address.find('@') != std::string_view::npos)
        throw Error(errc::invalid_argument, nats::told(address),
                    "an address with a password is seen by others; name a file of credentials (--creds) instead");
    NatsOptions options;
    const std::size_t scheme = address.find("://");
    const std::size_t slash = scheme == std::string_view::npos ? scheme : address.find('/', scheme + 3);
    if (slash == std::string_view::npos || slash + 1 == address.size() || slash == scheme + 3)
        throw Error(errc::invalid_argument, "an address of a stream is nats://HOST:PORT/NAME, not '" + std::string(address) + "'");
    options.url = address.substr(0, slash);
    options.name = address.substr(slash + 1);
    return options;
}

NatsTarget::NatsTarget(const NatsOptions& options) : parts_(std::make_unique<Parts>(options)) {}
/// In a forked child the connection is the parent's, and stays.
NatsTarget::~NatsTarget() {
    if (parts_->is_of_parent()) (void)parts_.release();
}

std::string NatsTarget::name() const { return parts_->name(); }
std::chrono::milliseconds NatsTarget::linger() const { return parts_->linger; }
NatsTarget::Range NatsTarget::range() {
    return parts_->with([](nats::FrameParts& parts) { return parts.range(); });
}
bool NatsTarget::append(std::uint64_t number, std::span<const std::byte> frame) {
    return parts_->with([&](nats::FrameParts& parts) { return parts.append(number, frame); });
}
std::vector<std::byte> NatsTarget::read(std::uint64_t number) {
    return parts_->with([&](nats::FrameParts& parts) { return parts.read(number); });
}
void NatsTarget::trim(std::uint64_t first) {
    parts_->with([&](nats::FrameParts& parts) { parts.trim(first); });
}

}  // namespace taiyen
