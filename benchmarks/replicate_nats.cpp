// How much of what a NATS server takes does a replicated heap get through, and what does a commit cost that waits for it?
//
// The peer is the smallest publisher that libnats allows: messages of the same size, with the same condition (Nats-Expected-Last-Sequence), to a stream of the same kind on the same server.
// Servers are started by hand; the head of the output says which.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nats/nats.h>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

#include "committers.hpp"
#include "harness.hpp"
#include "machine.hpp"

namespace {

void require(natsStatus status, const char* what) {
    if (status != NATS_OK) throw std::runtime_error(std::string(what) + ": " + natsStatus_GetText(status));
}

/// What the library puts into a message.
constexpr std::size_t message_bytes = std::size_t{256} << 10U;

class RawPublisher {
public:
    RawPublisher(const std::string& url, const std::string& name, unsigned replicas) : subject_("raw." + name), stream_("RAW_" + name) {
        require(natsConnection_ConnectTo(&connection_, url.substr(0, url.find(',')).c_str()), "connecting");
        require(natsConnection_JetStream(&context_, connection_, nullptr), "JetStream");
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        const char* subjects[] = {subject_.c_str()};
        config.Name = stream_.c_str();
        config.Subjects = subjects;
        config.SubjectsLen = 1;
        config.Discard = js_DiscardNew;
        config.Replicas = replicas;
        require(js_AddStream(nullptr, context_, &config, nullptr, nullptr), "making the stream");
    }
    RawPublisher(const RawPublisher&) = delete;
    RawPublisher& operator=(const RawPublisher&) = delete;
    ~RawPublisher() {
        (void)js_DeleteStream(context_, stream_.c_str(), nullptr, nullptr);
        jsCtx_Destroy(context_);
        natsConnection_Destroy(connection_);
    }
    /// Of that many bytes, in messages that are in flight together; then waits for all of them.
    void publish_flight(const std::vector<char>& bytes) {
        for (std::size_t begin = 0; begin < bytes.size(); begin += message_bytes, ++last_) {
            natsMsg* message = nullptr;
            const auto size = static_cast<int>(std::min(message_bytes, bytes.size() - begin));
            require(natsMsg_Create(&message, subject_.c_str(), nullptr, bytes.data() + begin, size), "making a message");
            require(natsMsgHeader_Set(message, "Nats-Expected-Last-Sequence", std::to_string(last_).c_str()), "its header");
            require(js_PublishMsgAsync(context_, &message, nullptr), "publishing");
        }
        require(js_PublishAsyncComplete(context_, nullptr), "waiting for answers");
    }
    void publish(const std::vector<char>& bytes) {
        natsMsg* message = nullptr;
        require(natsMsg_Create(&message, subject_.c_str(), nullptr, bytes.data(), static_cast<int>(bytes.size())), "making a message");
        require(natsMsgHeader_Set(message, "Nats-Expected-Last-Sequence", std::to_string(last_).c_str()), "its header");
        jsPubAck* ack = nullptr;
        const natsStatus status = js_PublishMsg(&ack, context_, message, nullptr, nullptr);
        natsMsg_Destroy(message);
        require(status, "publishing");
        last_ = ack->Sequence;
        jsPubAck_Destroy(ack);
    }

private:
    natsConnection* connection_ = nullptr;
    jsCtx* context_ = nullptr;
    const std::string subject_;
    const std::string stream_;
    std::uint64_t last_ = 0;
};

/// What goes through is counted.
class CountedTarget final : public taiyen::ReplicationTarget {
public:
    explicit CountedTarget(const taiyen::NatsOptions& options) : inner_(options) {}
    std::string name() const override { return inner_.name(); }
    std::chrono::milliseconds linger() const override { return inner_.linger(); }
    Range range() override { return inner_.range(); }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override {
        if (away) throw taiyen::Error(taiyen::errc::unreachable, name(), "it is away");
        const bool is_there = inner_.append(number, frame);
        bytes += frame.size();
        return is_there;
    }
    std::vector<std::byte> read(std::uint64_t number) override { return inner_.read(number); }
    void trim(std::uint64_t first) override { inner_.trim(first); }

    std::atomic<std::uint64_t> bytes{0};
    std::atomic<bool> away{false};

private:
    taiyen::NatsTarget inner_;
};

taiyen::NatsOptions target_options(const bench::Options& options, const std::string& name) {
    taiyen::NatsOptions found;
    found.url = options.text("--url");
    found.name = name;
    found.replicas = static_cast<unsigned>(options.number("--replicas"));
    found.timeout = std::chrono::seconds(30);
    return found;
}

taiyen::PersistentOptions heap_options(taiyen::Durability durability) {
    taiyen::PersistentOptions how;
    how.capture = taiyen::Capture::declared;
    how.durability = durability;
    how.log_capacity = std::size_t{1} << 30U;
    return how;
}

std::string fresh_name(const char* what) {
    static const auto began = std::chrono::system_clock::now().time_since_epoch().count();
    static unsigned made = 0;
    return std::string(what) + "_" + std::to_string(began % 1'000'000'000) + "_" + std::to_string(++made);
}

/// A heap whose transactions are held back while they are committed, and sent while nothing else happens.
class Shipped {
public:
    Shipped(const bench::Options& options, const std::filesystem::path& path, taiyen::Codec codec)
        : heap_(taiyen::create_only, path, heap_options(taiyen::Durability::async)), counters_(bench::make_counted(heap_, 16)),
          target_(std::make_shared<CountedTarget>(target_options(options, fresh_name("shipped")))) {
        taiyen::ReplicationOptions how;
        how.frame_bytes = options.number("--frame-kib") << 10U;
        how.retry = std::chrono::milliseconds(1);
        how.codec = codec;
        replication_.emplace(heap_, target_, how);
    }
    /// MB per second of that many transactions, as they went.
    double send(std::size_t count) {
        target_->away = true;
        for (std::size_t i = 0; i < count; ++i) bench::commit_one(heap_, counters_, 0, random_);
        const taiyen::Serial last = taiyen::ReadLock(heap_).serial();
        heap_.wait_durable(last);
        const taiyen::Serial there = replication_->replicated();
        const std::uint64_t sent_before = target_->bytes;
        target_->away = false;
        const double microseconds = bench::microseconds_of([&] { (void)replication_->wait_replicated(last, std::chrono::minutes(10)); });
        transactions.add(static_cast<double>(last.value - there.value) / microseconds * 1e6);
        const auto sent = static_cast<double>(target_->bytes - sent_before);
        bytes_each.add(sent / static_cast<double>(last.value - there.value));
        return sent / microseconds;
    }
    void stop() { replication_->stop(); }

    bench::Samples transactions;  ///< per second
    bench::Samples bytes_each;    ///< of a transaction

private:
    taiyen::TransactionalHeap heap_;
    bench::Counted& counters_;
    bench::Random random_{1};
    std::shared_ptr<CountedTarget> target_;
    std::optional<taiyen::Replication> replication_;
};

void shipping(const bench::Options& options, const std::filesystem::path& folder, std::chrono::milliseconds time) {
    RawPublisher raw(options.text("--url"), fresh_name("raw"), static_cast<unsigned>(options.number("--replicas")));
    const std::size_t frame_bytes = options.number("--frame-kib") << 10U;
    const std::vector<char> bytes(frame_bytes, 'x');
    const std::size_t count = options.quick() ? 100'000 : options.number("--transactions");
    taiyen::set_report_handler([](const taiyen::Incident&) noexcept {});
    Shipped plain(options, folder / "plain.tyn", taiyen::Codec::none);
    Shipped packed(options, folder / "packed.tyn", taiyen::Codec::lz4);
    const auto publish = [&] {
        const auto start = std::chrono::steady_clock::now();
        std::uint64_t sent = 0;
        while (std::chrono::steady_clock::now() - start < time) {
            raw.publish_flight(bytes);
            sent += bytes.size();
        }
        return static_cast<double>(sent) / bench::microseconds_since(start);
    };
    const std::vector<bench::Samples> samples = bench::interleave(
        options.rounds(), {{"published", publish}, {"plain", [&] { return plain.send(count); }}, {"packed", [&] { return packed.send(count); }}});
    plain.stop();
    packed.stop();
    std::printf("What has to be sent, sent: frames of %zu KiB, in messages of %zu KiB that are in flight together\n", frame_bytes >> 10U,
                message_bytes >> 10U);
    bench::Table table({"", "MB per second", "of those published", "transactions per second", "bytes of each"});
    table.row({"published by the smallest publisher", bench::spread(samples[0], 1), "1", "", ""});
    table.row({"frames as they are", bench::spread(samples[1], 1), bench::spread(bench::ratio(samples[1], samples[0]), 2),
               bench::spread(plain.transactions, 0), bench::spread(plain.bytes_each, 0)});
    table.row({"packed by LZ4", bench::spread(samples[2], 1), bench::spread(bench::ratio(samples[2], samples[0]), 2),
               bench::spread(packed.transactions, 0), bench::spread(packed.bytes_each, 0)});
    table.print();
    std::printf("A transaction is four stores of eight bytes.\n\n");
}

/// The middle of what each took, microseconds.
template <class F>
double median_of(std::chrono::milliseconds time, F&& action) {
    bench::Samples all;
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < time) all.add(bench::microseconds_of(action));
    return all.median();
}

void confirmed(const bench::Options& options, const std::filesystem::path& folder, std::chrono::milliseconds time) {
    RawPublisher raw(options.text("--url"), fresh_name("raw"), static_cast<unsigned>(options.number("--replicas")));
    const std::vector<char> message(512, 'x');
    bench::DirectFile bare(folder / "bare", std::size_t{64} << 20U);
    taiyen::TransactionalHeap heap(taiyen::create_only, folder / "confirmed.tyn", heap_options(taiyen::Durability::sync));
    bench::Counted& counters = bench::make_counted(heap, 16);
    const auto target = std::make_shared<CountedTarget>(target_options(options, fresh_name("confirmed")));
    taiyen::ReplicationOptions how;
    how.acknowledge = taiyen::Acknowledge::replicated;
    how.linger = std::chrono::milliseconds(0);
    taiyen::Replication replication(heap, target, how);
    bench::Random random(1);
    const auto write_and_publish = [&] {
        return median_of(time, [&] {
            bare.write(4096);
            raw.publish(message);
        });
    };
    const auto commit = [&] { return median_of(time, [&] { bench::commit_one(heap, counters, 0, random); }); };
    const auto rate_of = [&](unsigned threads) {
        std::atomic<bool> done{false};
        std::atomic<std::uint64_t> all{0};
        std::vector<std::thread> writers;
        const auto start = std::chrono::steady_clock::now();
        for (unsigned number = 0; number < threads; ++number) {
            writers.emplace_back([&, number] {
                bench::Random own(number + 1);
                for (; !done; ++all) bench::commit_one(heap, counters, number % bench::Counted::threads, own);
            });
        }
        std::this_thread::sleep_for(time);
        done = true;
        for (std::thread& writer : writers) writer.join();
        return static_cast<double>(all.load()) / (bench::microseconds_since(start) / 1e6);
    };
    const std::vector<bench::Samples> samples = bench::interleave(options.rounds(), {{"written and published", write_and_publish},
                                                                                     {"committed", commit},
                                                                                     {"one thread", [&] { return rate_of(1); }},
                                                                                     {"sixteen", [&] { return rate_of(16); }}});
    replication.stop();
    std::printf("Commits that wait for the target\n");
    bench::Table table({"", "microseconds, the middle of a round's", "ratio"});
    table.row({"a bare durable write of 4 KiB, then a message of 512 bytes published", bench::spread(samples[0], 0), "1"});
    table.row({"a commit", bench::spread(samples[1], 0), bench::spread(bench::ratio(samples[1], samples[0]), 2)});
    table.print();
    bench::Table threads({"", "commits per second", "of one thread's"});
    threads.row({"one thread", bench::spread(samples[2], 0), "1"});
    threads.row({"sixteen threads", bench::spread(samples[3], 0), bench::spread(bench::ratio(samples[3], samples[2]), 1)});
    threads.print();
}

int run(const bench::Options& options) {
    bench::print_head(options, "A heap that is replicated into NATS JetStream");
    std::printf("servers: %s, %s of them keep a stream\n\n", options.text("--url").c_str(), options.text("--replicas").c_str());
    try {
        const taiyen::NatsTarget probe(target_options(options, fresh_name("probe")));
    } catch (const taiyen::Error& error) {
        if (error.code() != taiyen::errc::unreachable) throw;
        std::printf("skipped: %s\n", error.what());
        return 0;
    }
    const bench::Folder folder(options.folder());
    const std::chrono::milliseconds time(options.quick() ? 300 : options.number("--milliseconds"));
    shipping(options, folder / ".", time);
    confirmed(options, folder / ".", time);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(
            argc, argv, "How much of what a NATS server takes does a replicated heap get through, and what does a commit cost that waits for it?", 9,
            bench::Priority::normal,
            {{"--url", "nats://127.0.0.1:4222", "of the servers, with commas between them; they run already"},
             {"--replicas", "1", "how many of them keep a stream"},
             {"--frame-kib", "1024", "of transactions in a frame"},
             {"--transactions", "1000000", "that are sent at once: 56 MB"},
             {"--milliseconds", "1000", "of each round"}},
            bench::Processors::all);
        return run(options);
    });
}
