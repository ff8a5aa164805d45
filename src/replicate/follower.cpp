#include <taiyen/replicate/follower.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <taiyen/base/report.hpp>

#include "io/storage.hpp"
#include "replicate/deposed_file.hpp"
#include "replicate/following.hpp"
#include "replicate/restorer.hpp"
#include "store/heap_access.hpp"
#include "txn/readers_here.hpp"

namespace taiyen {
namespace {

using Clock = std::chrono::steady_clock;

/// The place in the target is noted so often at least: behind a crash, frames from there on are looked at again.
constexpr std::chrono::seconds note_every{30};
/// Whether a target that has nothing new still has what was read last is asked so often.
constexpr std::chrono::seconds look_back_every{1};

/// Only replicated bytes get into it.
PersistentOptions of_follower(PersistentOptions options) {
    options.capture = Capture::declared;
    options.audit = Audit::off;
    options.durability = Durability::sync;
    return options;
}

std::shared_ptr<store::HeapFile> open_follower(ReplicationTarget& target, const std::filesystem::path& path, const FollowerOptions& options) {
    if (options.replace_deposed) {
        (void)replicate::set_deposed_aside(io::posix_storage(), path, options.heap, [&] {
            const ReplicationTarget::Range range = target.range();
            if (range.empty()) throw Error(errc::not_found, target.name(), "nothing was replicated there");
            return replicate::Frame(target, range.last).heap();
        });
    }
    if (!io::posix_storage().find(path)) {
        RestoreOptions how;
        how.progress = options.progress;
        replicate::Restorer(io::posix_storage(), target, path, how).run_for_follower();
    }
    const PersistentOptions own = of_follower(options.heap);
    store::Tuning tuning;
    tuning.role = store::RoleWanted::follower;
    tuning.elsewhere = options.store_only;
    tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, own); };
    return HeapAccess::open(path, store::OpenMode::open_only, HeapKind::transactional, own, tuning);
}

}  // namespace

const char* name_of(FollowerState state) noexcept {
    switch (state) {
        case FollowerState::following: return "following";
        case FollowerState::away: return "away";
        case FollowerState::stopped: return "stopped";
        case FollowerState::failed: break;
    }
    return "failed";
}

/// The heap, the thread that changes it, and what they need.
class Follower::Thread {
public:
    Thread(std::shared_ptr<ReplicationTarget> target, const std::filesystem::path& path, const FollowerOptions& options)
        : target_(std::move(target)), options_(options), file_(open_follower(*target_, path, options)),
          service_(std::static_pointer_cast<txn::TransactionService>(txn::TransactionService::of(*file_)->shared_from_this())),
          heap_(HeapAccess::make<TransactionalHeap>(file_)), following_(*file_, *service_, *target_), path_(path) {
        status_.target = target_->name();
        status_.applied = status_.newest = following_.applied();
        try {
            thread_ = std::thread([this] { run(); });
        } catch (const std::system_error& error) {
            throw Error(errc::too_many_threads, path_,
                        std::string("no thread can be made to follow the heap: ") + error.what() + "; raise the limit of threads (ulimit -u)");
        }
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    ~Thread() { stop(); }

    bool is_of_parent() const noexcept { return file_->in_forked_child(); }

    const TransactionalHeap& heap() const {
        require_parent();
        if (options_.store_only)
            throw Error(errc::invalid_argument, path_,
                        "a follower that only stores has no heap to read; make it without FollowerOptions::store_only");
        return heap_;
    }

    Serial applied() const {
        require_parent();
        return following_.applied();
    }

    bool wait_for(Serial serial, std::chrono::milliseconds patience) const {
        require_parent();
        std::unique_lock lock(mutex_);
        const auto until = Clock::now() + std::min<std::chrono::milliseconds>(patience, std::chrono::hours(24 * 365));
        changed_.wait_until(lock, until, [&] { return status_.applied >= serial || is_over(); });
        if (status_.applied >= serial) return true;
        if (is_over()) throw_over();
        return false;
    }

    void require_fresh(std::chrono::milliseconds age) const {
        require_parent();
        const std::lock_guard lock(mutex_);
        if (status_.state == FollowerState::failed) throw_over();
        const auto now = age_now();
        if (now <= age) return;
        throw Error(errc::stale, path_,
                    "it has not been up to date with " + status_.target +
                        (up_to_date_at_ ? " for " + std::to_string(now.count()) + " ms" : " since it was opened") +
                        (status_.last_error.empty() ? "" : " (" + status_.last_error + ")") + "; read it where it is changed, or wait");
    }

    FollowerStatus status() const {
        require_parent();
        const std::lock_guard lock(mutex_);
        FollowerStatus status = status_;
        status.age = age_now();
        return status;
    }

    void stop() noexcept {
        if (is_of_parent()) return;
        if (thread_.get_id() == std::this_thread::get_id()) {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            return;
        }
        const std::lock_guard one(ending_);
        if (!thread_.joinable()) return;
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        service_->without_read_lock([this] { thread_.join(); });  // it may wait for this thread's
    }

    TransactionalHeap promote(const PersistentOptions& options) {
        require_parent();
        if (txn::ReadersHere::holds(*service_))
            throw Error(errc::scope_open, path_, "this thread has a ReadLock on the heap; end it before you promote the follower");
        if (options_.store_only) file_->require_room_at_address();
        stop();
        following_.take_over();
        try {
            heap_.close();
            return {open_only, path_, options};
        } catch (const Error& error) {
            throw Error(static_cast<errc>(error.code().value()), path_,
                        std::string(error.what()) + "; the file has the place already: open it as any heap when that is mended");
        }
    }

private:
    void require_parent() const {
        if (file_->in_forked_child()) throw Error(errc::forked, path_, "a forked child doesn't follow the heap; its parent does");
    }

    // Under the mutex.
    bool is_over() const { return status_.state >= FollowerState::stopped; }
    [[noreturn]] void throw_over() const {
        throw Error(status_.state == FollowerState::stopped ? errc::closed : failure_, path_,
                    status_.last_error.empty() ? "following has ended; make a Follower again" : status_.last_error);
    }
    std::chrono::milliseconds age_now() const {
        return up_to_date_at_ ? std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *up_to_date_at_)
                              : std::chrono::milliseconds::max();
    }

    void publish(bool is_up_to_date) {
        {
            const std::lock_guard lock(mutex_);
            status_.state = FollowerState::following;
            status_.applied = following_.applied();
            status_.newest = std::max(following_.newest(), status_.applied);
            status_.frames = following_.position().number;
            if (is_up_to_date) up_to_date_at_ = Clock::now();
        }
        changed_.notify_all();
    }

    void end(FollowerState state, errc code, const std::string& why) {
        {
            const std::lock_guard lock(mutex_);
            status_.state = state;
            if (state == FollowerState::failed) {
                status_.last_error = why;
                failure_ = code;
            }
        }
        changed_.notify_all();
        if (state == FollowerState::failed) report({code, nullptr, "the heap doesn't follow any more: " + why});
    }

    /// Returns whether to go on at once.
    bool wait(std::chrono::milliseconds time) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::min<std::chrono::milliseconds>(time, std::chrono::hours(24 * 365)), [&] { return stopping_; });
        return !stopping_;
    }

    void go_away(const Error& error) {
        bool is_news = false;
        {
            const std::lock_guard lock(mutex_);
            is_news = status_.state != FollowerState::away;
            status_.state = FollowerState::away;
            status_.last_error = error.what();
        }
        changed_.notify_all();
        if (is_news)
            report({static_cast<errc>(error.code().value()), nullptr, std::string("the heap doesn't follow at the moment: ") + error.what()});
    }

    void run() noexcept {
        Clock::time_point noted = Clock::now();
        Clock::time_point looked_back = noted;
        for (;;) {
            std::chrono::milliseconds pause{0};
            try {
                const bool looks_back = Clock::now() - looked_back > look_back_every;
                if (looks_back) looked_back = Clock::now();
                const bool did = following_.step(looks_back);
                publish(!did);
                if (!did) pause = options_.poll;
                if (Clock::now() - noted > note_every) {
                    following_.note_position();
                    noted = Clock::now();
                }
            } catch (const Error& error) {
                const errc code = static_cast<errc>(error.code().value());
                const bool is_over = code == errc::mismatch || file_->condition().is_poisoned();
                if (is_over) return end(FollowerState::failed, code, error.what());
                go_away(error);
                pause = options_.retry;
            } catch (const std::exception& error) {  // HeapFull: of memory, addresses or disk
                if (file_->condition().is_poisoned()) return end(FollowerState::failed, errc::poisoned, error.what());
                go_away(Error(errc::no_space, path_, error.what()));
                pause = options_.retry;
            }
            if (wait(pause)) continue;
            try {
                following_.note_position();
            } catch (const std::exception&) {
                // Then frames are looked at again.
            }
            return end(FollowerState::stopped, errc::closed, {});
        }
    }

    const std::shared_ptr<ReplicationTarget> target_;
    const FollowerOptions options_;
    const std::shared_ptr<store::HeapFile> file_;
    const std::shared_ptr<txn::TransactionService> service_;
    TransactionalHeap heap_;
    replicate::Following following_;  ///< of the thread
    const std::filesystem::path path_;

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    FollowerStatus status_;
    errc failure_ = errc::io_error;
    std::optional<Clock::time_point> up_to_date_at_;
    std::mutex ending_;  ///< of who ends the thread
    bool stopping_ = false;
    std::thread thread_;
};

Follower::Follower(std::shared_ptr<ReplicationTarget> target, const std::filesystem::path& path, const FollowerOptions& options) {
    if (target == nullptr) throw Error(errc::invalid_argument, path, "a follower needs a target; name one");
    thread_.reset(new Thread(std::move(target), std::filesystem::absolute(path), options));
}

/// In a forked child it is the parent's, and so are the locks that its thread may hold.
void Follower::End::operator()(Thread* thread) const noexcept {
    if (!thread->is_of_parent()) delete thread;
}

Follower::Follower(Follower&&) noexcept = default;
Follower& Follower::operator=(Follower&&) noexcept = default;
Follower::~Follower() = default;

const TransactionalHeap& Follower::heap() const { return thread_->heap(); }
Serial Follower::applied() const { return thread_->applied(); }
bool Follower::wait_for(Serial serial, std::chrono::milliseconds patience) const { return thread_->wait_for(serial, patience); }
void Follower::require_fresh(std::chrono::milliseconds age) const { thread_->require_fresh(age); }
FollowerStatus Follower::status() const { return thread_->status(); }
void Follower::stop() noexcept {
    if (thread_) thread_->stop();
}
TransactionalHeap Follower::promote(const PersistentOptions& options) && {
    TransactionalHeap heap = thread_->promote(options);
    thread_.reset();
    return heap;
}

}  // namespace taiyen
