#pragma once
/// What libnats (https://nats-io.github.io/nats.c) makes, owned, and what it says, as errors.

#include <memory>
#include <string>

#include <nats/nats.h>

namespace taiyen::nats {

template <class T, void destroy(T*)>
struct Destroy {
    void operator()(T* it) const noexcept { destroy(it); }
};
using OptionsPointer = std::unique_ptr<natsOptions, Destroy<natsOptions, natsOptions_Destroy>>;
using MessagePointer = std::unique_ptr<natsMsg, Destroy<natsMsg, natsMsg_Destroy>>;
using InfoPointer = std::unique_ptr<jsStreamInfo, Destroy<jsStreamInfo, jsStreamInfo_Destroy>>;

/// `answered`: what the server said; empty: as the library tells it.
[[noreturn]] void throw_failed(const std::string& name, natsStatus status, jsErrCode code = jsErrCode{}, const std::string& answered = {});

inline void require(natsStatus status, const std::string& name, jsErrCode code = jsErrCode{}) {
    if (status != NATS_OK) throw_failed(name, status, code);
}

}  // namespace taiyen::nats
