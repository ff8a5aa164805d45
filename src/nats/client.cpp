#include "nats/client.hpp"

#include <new>
#include <string_view>

#include <taiyen/base/error.hpp>

namespace taiyen::nats {
namespace {

std::string sentence(natsStatus status, jsErrCode code, const std::string& answered) {
    std::string said = answered.empty() ? natsStatus_GetText(status) : answered;
    natsStatus last = NATS_OK;
    if (const char* const text = nats_GetLastError(&last); answered.empty() && text != nullptr && last == status) {
        std::string_view detail(text);
        if (const std::size_t end = detail.find("): "); detail.starts_with('(') && end != std::string_view::npos)
            detail.remove_prefix(end + 3);  // where in libnats
        if (!detail.empty() && detail != said) said += ": " + std::string(detail);
    }
    if (code != jsErrCode{}) said += " (" + std::to_string(static_cast<int>(code)) + ")";
    return said;
}

}  // namespace

void throw_failed(const std::string& name, natsStatus status, jsErrCode code, const std::string& answered) {
    const std::string said = sentence(status, code, answered);
    switch (static_cast<int>(code)) {
        case JSStorageResourcesExceededErr:
        case JSAccountResourcesExceededErr:
        case JSInsufficientResourcesErr:
        case JSStreamStoreFailedErr:
            throw Error(errc::no_space, name, "the server takes no more: " + said + "; give the stream or the server more room");
        case JSNotEnabledErr:
        case JSNotEnabledForAccountErr:
            throw Error(errc::unreachable, name, "the server keeps no streams: " + said + "; start it with JetStream (nats-server -js)");
        default: break;
    }
    switch (status) {
        case NATS_CONNECTION_AUTH_FAILED:
        case NATS_NOT_PERMITTED:
            throw Error(errc::permission, name, "the server refuses this program: " + said + "; give it credentials that may use the stream");
        case NATS_SSL_ERROR:
        case NATS_SECURE_CONNECTION_WANTED:
        case NATS_SECURE_CONNECTION_REQUIRED:
            throw Error(errc::permission, name, "no secure connection: " + said + "; look at the certificates, and at what the server asks for");
        case NATS_NO_RESPONDERS:
            throw Error(
                errc::unreachable, name,
                "no server answers for streams: " + said + "; start one with JetStream (nats-server -js), or wait until its cluster has a leader");
        case NATS_NO_MEMORY: throw std::bad_alloc();
        default: throw Error(errc::unreachable, name, said + "; start the server, or look at the network between");
    }
}

}  // namespace taiyen::nats
