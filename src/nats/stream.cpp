#include "nats/stream.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <nats/nats.h>

#include <taiyen/base/error.hpp>

#include "nats/client.hpp"

namespace taiyen::nats {
namespace {

/// Larger ones gain nothing, and of several the server takes the next while it writes one.
constexpr std::size_t message_bytes = std::size_t{320} << 10U;  // a frame of a MiB, with its head, makes four
/// Of what a server takes for a message, its headers' share.
constexpr std::size_t header_bytes = 512;
constexpr int32_t message_bytes_least = 4096;

/// Behind the scheme, user and password.
std::string_view place_in(std::string_view url) {
    if (const std::size_t at = url.find("://"); at != std::string_view::npos) url.remove_prefix(at + 3);
    if (const std::size_t user = url.rfind('@'); user != std::string_view::npos) url.remove_prefix(user + 1);
    return url;
}

bool is_loopback(std::string_view url) {
    const std::string_view place = place_in(url);
    if (place.starts_with("[::1]")) return true;
    const std::string host(place.substr(0, place.find_first_of(":/")));
    in_addr address{};
    return host == "localhost" || (::inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24U == 127);
}

std::vector<std::string_view> pieces_of(std::string_view urls) {
    std::vector<std::string_view> pieces;
    while (!urls.empty()) {
        const std::size_t comma = std::min(urls.find(','), urls.size());
        if (comma != 0) pieces.push_back(urls.substr(0, comma));
        urls.remove_prefix(std::min(comma + 1, urls.size()));
    }
    return pieces;
}

bool uses_tls(const NatsOptions& options) {
    const auto pieces = pieces_of(options.url);
    return !options.authority.empty() || !options.certificate.empty() || !options.server_name.empty() ||
           std::ranges::any_of(pieces, [](std::string_view url) { return url.starts_with("tls://"); });
}

NatsOptions checked(NatsOptions options) {
    const auto refuse = [&](const std::string& why) { throw Error(errc::invalid_argument, told(options.url), why); };
    const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
    if (options.name.empty() || options.name.size() > 64 || !std::ranges::all_of(options.name, is_allowed))
        refuse("a stream's name has up to 64 letters, digits, '-' and '_', not '" + options.name + "'; name one: nats://HOST/NAME");
    if (options.replicas < 1 || options.replicas > 5) refuse("a stream is kept by one to five servers, not " + std::to_string(options.replicas));
    if (options.certificate.empty() != options.key.empty()) refuse("a certificate and its key belong together; name both, or neither");
    options.timeout = std::clamp<std::chrono::milliseconds>(options.timeout, std::chrono::milliseconds(10), std::chrono::hours(1));
    const auto pieces = pieces_of(options.url);
    if (pieces.empty()) refuse("no server is named; name one: nats://HOST:4222");
    for (const std::string_view url : pieces) {
        const std::size_t at = url.find("://");
        if (at != std::string_view::npos && url.substr(0, at) != "nats" && url.substr(0, at) != "tls")
            refuse("a server's address begins with nats:// or tls://");
        if (!uses_tls(options) && !options.allow_plaintext && !is_loopback(url))
            refuse("without TLS whoever sees the network reads the heap, and may change it; use tls://, or allow plain text");
    }
    return options;
}

Message message_of(const natsMsg* message, std::uint64_t sequence) {
    const auto* const data = reinterpret_cast<const std::byte*>(natsMsg_GetData(message));
    return {sequence, {data, data + natsMsg_GetDataLength(message)}};
}

}  // namespace

std::string told(std::string_view url) {
    const std::size_t at = url.find("://");
    std::string_view place = place_in(url);
    while (place.ends_with('/')) place.remove_suffix(1);
    return std::string(at == std::string_view::npos ? "nats" : url.substr(0, at)) + "://" + std::string(place);
}

Stream::Stream(const NatsOptions& options)
    : options_(checked(options)), name_(told(pieces_of(options_.url).front()) + "/" + options_.name), stream_("TAIYEN_" + options_.name),
      subject_("taiyen." + options_.name) {
    connect();
}

void Stream::connect() {
    natsOptions* made = nullptr;
    require(natsOptions_Create(&made), name_);
    const OptionsPointer to(made);
    const auto text = [](const std::filesystem::path& path) { return path.c_str(); };
    std::vector<std::string> urls;
    for (const std::string_view url : pieces_of(options_.url)) urls.emplace_back(url);
    std::vector<const char*> servers;
    for (const std::string& url : urls) servers.push_back(url.c_str());
    const int64_t patience = options_.timeout.count();
    require(natsOptions_SetServers(made, servers.data(), static_cast<int>(servers.size())), name_);
    require(natsOptions_SetName(made, "taiyen"), name_);
    require(natsOptions_SetTimeout(made, patience), name_);
    require(natsOptions_SetMaxReconnect(made, -1), name_);
    require(natsOptions_SetReconnectWait(made, 250), name_);
    require(natsOptions_SetFailRequestsOnDisconnect(made, true), name_);
    require(natsOptions_SetSendAsap(made, true), name_);
    // A machine that is gone without a word is noticed, by what is written and by what isn't answered.
    require(natsOptions_SetWriteDeadline(made, patience), name_);
    require(natsOptions_SetPingInterval(made, std::max<int64_t>(patience, 1000)), name_);
    require(natsOptions_SetMaxPingsOut(made, 2), name_);
    // The library's own tells standard error.
    require(natsOptions_SetErrorHandler(made, [](natsConnection*, natsSubscription*, natsStatus, void*) {}, nullptr), name_);
    if (!options_.credentials.empty()) {
        if (!std::filesystem::exists(options_.credentials))
            throw Error(errc::not_found, options_.credentials, "there are no such credentials; name the .creds file");
        require(natsOptions_SetUserCredentialsFromFiles(made, text(options_.credentials), nullptr), name_);
    }
    if (uses_tls(options_)) {
        require(natsOptions_SetSecure(made, true), name_);
        if (!options_.authority.empty()) require(natsOptions_LoadCATrustedCertificates(made, text(options_.authority)), name_);
        if (!options_.certificate.empty()) require(natsOptions_LoadCertificatesChain(made, text(options_.certificate), text(options_.key)), name_);
        if (!options_.server_name.empty()) require(natsOptions_SetExpectedHostname(made, options_.server_name.c_str()), name_);
    } else if (!options_.allow_plaintext) {
        require(natsOptions_SetIgnoreDiscoveredServers(made, true), name_);  // a cluster's other servers may be other machines
    }
    natsConnection* connection = nullptr;
    require(natsConnection_Connect(&connection, made), name_);
    connection_.reset(connection);
    jsOptions wait;
    jsOptions_Init(&wait);
    wait.Wait = patience;
    jsCtx* context = nullptr;
    require(natsConnection_JetStream(&context, connection, &wait), name_);
    context_.reset(context);
    publisher_ = std::make_unique<Publisher>(connection, name_, stream_, subject_, options_.timeout);
    is_version_known_ = false;
}

/// One that is over, since the server has refused this program, begins anew.
void Stream::require_connected() {
    if (connection_ && context_ && !natsConnection_IsClosed(connection_.get())) return;
    close_reader();
    publisher_.reset();
    context_.reset();
    connection_.reset();
    connect();
}

void Stream::Close::operator()(natsConnection* connection) const noexcept { natsConnection_Destroy(connection); }
void Stream::Close::operator()(jsCtx* context) const noexcept { jsCtx_Destroy(context); }

Stream::~Stream() { close_reader(); }

std::size_t Stream::message_bytes_max() const {
    const int64_t allowed = std::max<int64_t>(std::min(natsConnection_GetMaxPayload(connection_.get()), stream_message_max_), 2 * header_bytes);
    return std::min(message_bytes, static_cast<std::size_t>(allowed) - header_bytes);
}

std::optional<MessageLog::State> Stream::state() {
    require_connected();
    jsStreamInfo* found = nullptr;
    jsErrCode code{};
    const natsStatus status = js_GetStreamInfo(&found, context_.get(), stream_.c_str(), nullptr, &code);
    if (status == NATS_NOT_FOUND || code == JSStreamNotFoundErr) return std::nullopt;
    require(status, name_, code);
    const InfoPointer info(found);
    const jsStreamConfig& is = *info->Config;
    const auto refuse = [&](const std::string& why) {
        throw Error(errc::mismatch, name_,
                    "the stream " + stream_ + " " + why + "; make another one, or let this program make it under another name");
    };
    if (is.SubjectsLen != 1 || subject_ != is.Subjects[0]) refuse("is not that of the subject " + subject_ + " alone");
    if (is.Storage != js_FileStorage) refuse("isn't kept in files");
    const bool is_limited = is.MaxMsgs > 0 || is.MaxBytes > 0;
    const bool drops_old = is.MaxAge > 0 || (is_limited && is.Discard != js_DiscardNew) || is.Retention != js_LimitsPolicy;
    if (drops_old || (is.MaxMsgsPerSubject > 0 && !is.DiscardNewPerSubject))
        refuse("drops messages by itself (its age, retention or discard policy)");
    if (is.NoAck) refuse("acknowledges nothing");
    if (is.MaxMsgSize > 0 && is.MaxMsgSize < message_bytes_least) refuse("takes messages of " + std::to_string(is.MaxMsgSize) + " bytes at most");
    require_version();
    stream_message_max_ = is.MaxMsgSize > 0 ? is.MaxMsgSize : std::numeric_limits<int32_t>::max();
    return State{info->State.FirstSeq, info->State.LastSeq, info->State.Msgs};
}

/// Servers tell their version with a stream's configuration, since 2.11; the library leaves it out.
void Stream::require_version() {
    if (is_version_known_) return;
    natsMsg* found = nullptr;
    require(natsConnection_RequestString(&found, connection_.get(), ("$JS.API.STREAM.INFO." + stream_).c_str(), "", options_.timeout.count()), name_);
    const MessagePointer answer(found);
    const std::string_view told(natsMsg_GetData(found), static_cast<std::size_t>(natsMsg_GetDataLength(found)));
    if (told.find("\"_nats.level\"") == std::string_view::npos)
        throw Error(errc::mismatch, name_,
                    "the server is older than version 2.11, which syncs and orders less than is promised here; use a newer one");
    is_version_known_ = true;
}

void Stream::create() {
    require_connected();
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    const char* subjects[] = {subject_.c_str()};
    config.Name = stream_.c_str();
    config.Description = "frames of a replicated heap (taiyen)";
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Discard = js_DiscardNew;
    config.Replicas = options_.replicas;
    jsErrCode code{};
    const natsStatus status = js_AddStream(nullptr, context_.get(), &config, nullptr, &code);
    if (status != NATS_OK && code != JSStreamNameExistErr) throw_failed(name_, status, code);
    (void)state();  // somebody else may have made it otherwise
}

std::optional<MessageLog::Placed> Stream::append(std::span<const Outgoing> messages, std::uint64_t after) {
    require_connected();
    return publisher_->publish(messages, after);
}

std::optional<Message> Stream::get(std::uint64_t sequence) {
    require_connected();
    natsMsg* found = nullptr;
    jsErrCode code{};
    const natsStatus status = js_GetMsg(&found, context_.get(), stream_.c_str(), sequence, nullptr, &code);
    if (status == NATS_NOT_FOUND || code == JSNoMessageFoundErr || code == JSStreamNotFoundErr) return std::nullopt;
    require(status, name_, code);
    const MessagePointer message(found);
    return message_of(found, sequence);
}

void Stream::close_reader() noexcept {
    if (reader_ == nullptr) return;
    (void)natsSubscription_Unsubscribe(reader_);
    natsSubscription_Destroy(reader_);
    reader_ = nullptr;
}

std::vector<Message> Stream::get_many(std::uint64_t sequence, std::size_t count) {
    require_connected();
    if (reader_ != nullptr && reader_next_ != sequence) close_reader();
    jsErrCode code{};
    if (reader_ == nullptr) {
        jsSubOptions how;
        jsSubOptions_Init(&how);
        how.Stream = stream_.c_str();
        how.Config.DeliverPolicy = js_DeliverByStartSequence;
        how.Config.OptStartSeq = sequence;
        how.Config.AckPolicy = js_AckNone;
        how.Config.MemoryStorage = true;
        how.Config.InactiveThreshold = std::chrono::nanoseconds(std::chrono::seconds(30)).count();
        require(js_PullSubscribe(&reader_, context_.get(), subject_.c_str(), nullptr, nullptr, &how, &code), name_, code);
        reader_next_ = sequence;
    }
    natsMsgList list{};
    const natsStatus status = natsSubscription_Fetch(&list, reader_, static_cast<int>(count), options_.timeout.count(), &code);
    std::vector<Message> found;
    const auto take = [&] {
        for (int i = 0; i < list.Count; ++i) {
            jsMsgMetaData* meta = nullptr;
            if (natsMsg_GetMetaData(&meta, list.Msgs[i]) != NATS_OK) return;
            const std::uint64_t at = meta->Sequence.Stream;
            jsMsgMetaData_Destroy(meta);
            if (at < reader_next_) continue;
            found.push_back(message_of(list.Msgs[i], at));
            reader_next_ = at + 1;
        }
    };
    try {
        take();
    } catch (...) {
        natsMsgList_Destroy(&list);
        close_reader();
        throw;
    }
    natsMsgList_Destroy(&list);
    if (status != NATS_OK) close_reader();  // it may be gone at the server: whoever needs more asks for single messages, or for another one
    return found;
}

void Stream::trim(std::uint64_t first) {
    require_connected();
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = options_.timeout.count();
    options.Stream.Purge.Sequence = first;
    jsErrCode code{};
    require(js_PurgeStream(context_.get(), stream_.c_str(), &options, &code), name_, code);
}

}  // namespace taiyen::nats
