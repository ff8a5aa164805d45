/// The program that the outside harnesses kill, unplug and starve: it works on a heap, and tells through its standard output what is durable (message.hpp).
/// Built from public headers only. Exit codes: 0 done, 2 wrong use, 3 a typed error, 4 anything else.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "message.hpp"
#include "world.hpp"

namespace outside {
namespace {

constexpr const char* usage =
    "usage: taiyen_outside_worker FILE [--mode archive|snapshot|undo|sync|async|steps] [--seed N] [--life N] [--steps N] [--threads N]\n"
    "                             [--log-kib N] [--capacity-kib N] [--keys N] [--large N] [--wait] [--control early|ignore]\n"
    "                             [--frames DIR] [--commits replicated|local]\n\n"
    "Works on the heap FILE until it is killed, or for N steps of each lane, and writes what is durable to standard output, in binary.\n"
    "  --seed, --keys, --large  what the steps write (as the harness that checks it)\n"
    "  --life N                 varies batches, closes and snapshots\n"
    "  --wait                   reads a byte from standard input first\n"
    "  --frames DIR             replicates into that directory (sync, steps)\n"
    "  --commits replicated     ... and commits wait for it\n"
    "  --control early          acknowledges before it commits: a harness must notice\n"
    "  --control ignore         acknowledges whatever came of it: a harness must notice\n";

enum class Mode { archive, snapshot, undo, sync, async, steps };
enum class Control { none, early, ignore };

struct Settings {
    std::string file;
    Mode mode = Mode::sync;
    Shape shape;
    std::uint64_t life = 1;
    std::uint64_t steps = 0;
    unsigned threads = 1;
    bool wait = false;
    Control control = Control::none;
    std::string frames;
    taiyen::Acknowledge acknowledge = taiyen::Acknowledge::replicated;
    taiyen::PersistentOptions options;
};

void tell(const Message& message) {
    ssize_t written = 0;
    do {
        written = write(STDOUT_FILENO, &message, sizeof message);
    } while (written < 0 && errno == EINTR);
    if (written != static_cast<ssize_t>(sizeof message)) _exit(5);  // nobody listens any more
}

/// What may fail and must then end the work; the control goes on as if nothing had happened.
void durable(const Settings& settings, const std::function<void()>& action) {
    try {
        action();
    } catch (const std::exception&) {
        if (settings.control != Control::ignore) throw;
    }
}

/// Heaps that are saved as a whole: some steps, a save, an acknowledgement for each lane.
template <class Heap>
class Saver {
public:
    explicit Saver(const Settings& settings) : settings_(settings), random_(settings.life) {}

    void run() {
        open();
        for (std::uint64_t batch = 0; settings_.steps == 0 || batch < settings_.steps; ++batch) {
            const std::uint64_t dice = random_() % 100;
            for (std::uint64_t steps = dice < 3 ? 40 : 1 + dice % 8; steps > 0; --steps) step();
            if (settings_.control == Control::early) acknowledge();
            durable(settings_, [&] { heap_->snapshot(); });
            if (settings_.control != Control::early) acknowledge();
            if (dice >= 96) {
                durable(settings_, [&] { heap_->close(); });
                open();
            }
        }
        durable(settings_, [&] { heap_->close(); });
        tell({Message::Kind::finished});
    }

private:
    void open() {
        tell({Message::Kind::opening});
        heap_.emplace(taiyen::open_or_create, settings_.file, settings_.options);
        tell({Message::Kind::opened});
        if constexpr (std::is_base_of_v<taiyen::SnapshotHeap, Heap>) {
            if (settings_.mode == Mode::undo) heap_->attach_undo();
        }
        world_ = &heap_->template find_or_construct<World>(world_name);
    }
    void step() {
        const auto lane = static_cast<unsigned>(world_->order % lanes);
        if constexpr (std::is_base_of_v<taiyen::SnapshotHeap, Heap>) {
            if (settings_.mode == Mode::undo) return step_of_history(lane);
        }
        take_step(*world_, settings_.shape, lane);
    }
    /// Some are cancelled, some undone; of these some are done again. None goes back behind the last save.
    void step_of_history(unsigned lane) {
        const std::uint64_t dice = random_() % 10;
        taiyen::UndoScope scope(*heap_, "a step");
        take_step(*world_, settings_.shape, lane);
        if (dice == 0) return scope.cancel();
        scope.commit();
        if (dice <= 3 && heap_->undo() && dice <= 2) heap_->redo();
    }
    void acknowledge() {
        for (unsigned lane = 0; lane < lanes; ++lane) tell({Message::Kind::acknowledged, lane, world_->lane[lane].step, world_->order});
    }

    const Settings& settings_;
    std::mt19937_64 random_;
    std::optional<Heap> heap_;
    World* world_ = nullptr;
};

/// Threads that commit, each on its own lane.
class Committer {
public:
    explicit Committer(const Settings& settings) : settings_(settings) {}

    void run() {
        tell({Message::Kind::opening});
        heap_.emplace(taiyen::open_or_create, settings_.file, settings_.options);
        if (!settings_.frames.empty()) {
            taiyen::ReplicationOptions how;
            how.acknowledge = settings_.acknowledge;
            how.base_after_bytes = std::size_t{256} << 10U;  // now and then beside the commits
            replication_.emplace(*heap_, std::make_shared<taiyen::DirectoryTarget>(settings_.frames), how);
        }
        tell({Message::Kind::opened});
        durable(settings_, [&] { taiyen::transact(*heap_, [&] { heap_->find_or_construct<World>(world_name); }); });
        world_ = heap_->find<World>(world_name);
        if (settings_.mode == Mode::steps) {
            durable(settings_, [&] { heap_->attach_undo(); });
            work_in_steps();
        } else if (settings_.threads == 1) {
            work(static_cast<unsigned>(settings_.life % lanes));
        } else {
            std::vector<std::jthread> threads;
            for (unsigned lane = 0; lane < settings_.threads; ++lane) threads.emplace_back([this, lane] { guarded(lane); });
        }
        if (failure_) std::rethrow_exception(failure_);
        replication_.reset();
        durable(settings_, [&] { heap_->close(); });
        tell({Message::Kind::finished});
    }

private:
    void guarded(unsigned lane) noexcept {
        try {
            work(lane);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = failure_ ? failure_ : std::current_exception();
            stop_ = true;
        }
    }

    void work(unsigned lane) {
        std::mt19937_64 random(settings_.life * lanes + lane);
        for (std::uint64_t i = 0; !stop_ && (settings_.steps == 0 || i < settings_.steps); ++i) {
            const std::uint64_t dice = random() % 1000;
            if (dice < 50) give_up(lane);
            durable(settings_, [&] { commit(lane); });
            if (settings_.control == Control::ignore || settings_.mode == Mode::sync || i % 8 == 7 || i + 1 == settings_.steps) {
                durable(settings_, [&] { heap_->wait_durable(serial_[lane]); });
                if (settings_.control != Control::early) tell(told_[lane]);
            }
            if (dice >= 990) durable(settings_, [&] { heap_->snapshot(); });
        }
    }

    /// Steps of a history on whatever lane is due. Some are cancelled, some undone, of these some done again. An undone step is withdrawn first: it may be durably undone at any moment.
    void work_in_steps() {
        std::mt19937_64 random(settings_.life);
        for (std::uint64_t i = 0; settings_.steps == 0 || i < settings_.steps * lanes; ++i) {
            const auto lane = static_cast<unsigned>(random() % lanes);
            const std::uint64_t dice = random() % 1000;
            durable(settings_, [&] { commit_step(lane, dice < 100); });
            if (dice < 100) continue;
            if (settings_.control != Control::early) tell(told_[lane]);
            if (dice < 300) {
                tell({Message::Kind::withdrawn, lane, told_[lane].step - 1, told_[lane].order - 1});
                bool undone = false;
                durable(settings_, [&] { undone = heap_->undo(); });
                if (dice < 200 && undone) durable(settings_, [&] { undone = !heap_->redo(); });
                if (!undone) tell(told_[lane]);
            }
            if (dice >= 990) durable(settings_, [&] { heap_->snapshot(); });
        }
    }

    void commit_step(unsigned lane, bool cancels) {
        taiyen::UndoScope scope(*heap_, "a step");
        take_step(*world_, settings_.shape, lane);
        if (cancels) return scope.cancel();
        told_[lane] = {Message::Kind::acknowledged, lane, world_->lane[lane].step, world_->order};
        if (settings_.control == Control::early) tell(told_[lane]);
        scope.commit();
    }

    void commit(unsigned lane) {
        Message& told = told_[lane];
        if (settings_.control == Control::ignore) told = {Message::Kind::acknowledged, lane, told.step + 1, 0};
        taiyen::Transaction transaction(*heap_);
        if (settings_.control == Control::early) tell({Message::Kind::acknowledged, lane, world_->lane[lane].step + 1, world_->order + 1});
        take_step(*world_, settings_.shape, lane);
        told = {Message::Kind::acknowledged, lane, world_->lane[lane].step, world_->order};
        serial_[lane] = transaction.commit();
    }

    /// A transaction that never happened.
    void give_up(unsigned lane) {
        taiyen::Transaction transaction(*heap_);
        take_step(*world_, settings_.shape, lane);
        transaction.rollback();
    }

    const Settings& settings_;
    std::optional<taiyen::TransactionalHeap> heap_;
    std::optional<taiyen::Replication> replication_;
    World* world_ = nullptr;
    std::array<Message, lanes> told_;
    std::array<taiyen::Serial, lanes> serial_;
    std::atomic<bool> stop_ = false;
    std::mutex mutex_;
    std::exception_ptr failure_;
};

bool parse(int count, char** words, Settings& settings) {
    settings.options.capacity = std::size_t{64} << 20U;
    settings.options.log_capacity = std::size_t{512} << 10U;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--wait") {
            settings.wait = true;
        } else if (!word.starts_with("--")) {
            settings.file = word;
        } else if (++i == count) {
            return false;
        } else {
            const std::string value = words[i];
            const std::uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
            if (word == "--mode") {
                if (value == "archive")
                    settings.mode = Mode::archive;
                else if (value == "snapshot")
                    settings.mode = Mode::snapshot;
                else if (value == "undo")
                    settings.mode = Mode::undo;
                else if (value == "sync")
                    settings.mode = Mode::sync;
                else if (value == "async")
                    settings.mode = Mode::async;
                else if (value == "steps")
                    settings.mode = Mode::steps;
                else
                    return false;
            } else if (word == "--control") {
                if (value == "early")
                    settings.control = Control::early;
                else if (value == "ignore")
                    settings.control = Control::ignore;
                else if (value != "none")
                    return false;
            } else if (word == "--frames") {
                settings.frames = value;
            } else if (word == "--commits") {
                if (value != "local" && value != "replicated") return false;
                settings.acknowledge = value == "local" ? taiyen::Acknowledge::local : taiyen::Acknowledge::replicated;
            } else if (word == "--seed")
                settings.shape.seed = number;
            else if (word == "--keys")
                settings.shape.keys = number;
            else if (word == "--large")
                settings.shape.large_bytes = number;
            else if (word == "--life")
                settings.life = number;
            else if (word == "--steps")
                settings.steps = number;
            else if (word == "--threads")
                settings.threads = static_cast<unsigned>(number);
            else if (word == "--log-kib")
                settings.options.log_capacity = number << 10U;
            else if (word == "--capacity-kib")
                settings.options.capacity = number << 10U;
            else
                return false;
        }
    }
    return !settings.file.empty() && settings.threads >= 1 && settings.threads <= lanes && settings.shape.keys > 0;
}

int run(const Settings& settings) {
    try {
        switch (settings.mode) {
            case Mode::archive: Saver<taiyen::ArchiveHeap>(settings).run(); break;
            case Mode::snapshot:
            case Mode::undo: Saver<taiyen::SnapshotHeap>(settings).run(); break;
            case Mode::sync:
            case Mode::async:
            case Mode::steps: Committer(settings).run(); break;
        }
        return 0;
    } catch (const taiyen::Error& error) {
        std::fprintf(stderr, "worker: %s\n", error.what());
        return 3;
    } catch (const std::bad_alloc& error) {
        std::fprintf(stderr, "worker: out of memory or heap: %s\n", error.what());
        return 3;
    } catch (const std::system_error& error) {  // a thread that the system refuses
        std::fprintf(stderr, "worker: %s\n", error.what());
        return 3;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "worker: untyped: %s\n", error.what());
        return 4;
    }
}

}  // namespace
}  // namespace outside

int main(int count, char** words) {
    outside::Settings settings;
    if (!outside::parse(count, words, settings)) {
        const bool asked = count == 2 && std::string(words[1]) == "--help";
        std::fputs(outside::usage, asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    signal(SIGPIPE, SIG_IGN);
    settings.options.durability = settings.mode == outside::Mode::async ? taiyen::Durability::async : taiyen::Durability::sync;
    if (settings.wait) {
        outside::tell({outside::Message::Kind::waiting});
        char byte = 0;
        if (read(STDIN_FILENO, &byte, 1) != 1) return 2;
    }
    return outside::run(settings);
}
