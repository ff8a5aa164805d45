#include <taiyen/replicate/replication.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <taiyen/base/report.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "base/planted.hpp"
#include "replicate/group_member.hpp"
#include "replicate/serial_waiters.hpp"
#include "replicate/shipper.hpp"
#include "store/heap_access.hpp"
#include "store/opening_record.hpp"
#include "txn/commit_gate.hpp"
#include "txn/readers_here.hpp"

namespace taiyen {
namespace {

using Clock = std::chrono::steady_clock;

/// For ever: points of time that far ahead can still be told.
constexpr std::chrono::hours longest{24 * 365};

/// So long at most a commit waits for others to share its frame.
constexpr std::chrono::milliseconds gathered_max{100};

template <class Duration>
Duration within(Duration time) {
    return std::min(time, std::chrono::duration_cast<Duration>(longest));
}

ReplicationOptions with_bounds(ReplicationOptions options) {
    options.frame_bytes = std::clamp(options.frame_bytes, std::size_t{1}, std::size_t{64_MiB});
    if (options.linger) options.linger = within(*options.linger);
    options.retry = within(options.retry);
    options.close_timeout = within(options.close_timeout);
    options.confirm_timeout = within(options.confirm_timeout);
    options.base_every = std::min(options.base_every, 1000 * longest);
    options.keep = std::min(options.keep, 1000 * longest);
    return options;
}

std::shared_ptr<txn::TransactionService> service_of(const store::HeapFile& heap) {
    heap.check_usable(false);
    txn::TransactionService* const service = txn::TransactionService::of(heap);
    if (service == nullptr) throw Error(errc::read_only, heap.path(), "the heap is open for reading only; open it for writing to replicate it");
    return std::static_pointer_cast<txn::TransactionService>(service->shared_from_this());
}

}  // namespace

ReplicationTarget::~ReplicationTarget() = default;

const char* name_of(ReplicationState state) noexcept {
    switch (state) {
        case ReplicationState::streaming: return "streaming";
        case ReplicationState::away: return "away";
        case ReplicationState::fenced: return "fenced";
        case ReplicationState::stopped: return "stopped";
        case ReplicationState::failed: break;
    }
    return "failed";
}

/// The thread, and what it needs.
class Replication::Thread final : public txn::CommitGate, public replicate::GroupMember, public std::enable_shared_from_this<Thread> {
public:
    Thread(std::shared_ptr<store::HeapFile> heap, std::shared_ptr<ReplicationTarget> target, const ReplicationOptions& options)
        : heap_(std::move(heap)), service_(service_of(*heap_)), target_(std::move(target)), options_(with_bounds(options)),
          linger_(options_.linger.value_or(target_->linger())), shipper_(*heap_, *service_, *target_, options_.frame_bytes, options_.codec) {
        require_no_transaction("attach it to a target");
        if (options_.acknowledge == Acknowledge::replicated && service_->durability() == Durability::async) {
            throw Error(errc::invalid_argument, heap_->path(),
                        "commits that don't wait for this machine's disk can't wait for another's; open the heap with Durability::sync, or take "
                        "Acknowledge::local");
        }
        shipper_.before_frame = [this] { require_time(); };
        {
            const store::Visits::Visit visit(heap_->visits());
            shipper_.attach();
        }
        bases_at_attaching_ = shipper_.bases();
        shipper_.after_frame = [this] { publish(); };
        publish();
        try {
            thread_ = std::thread([this] { run(); });
        } catch (const std::system_error& error) {
            throw Error(errc::too_many_threads, heap_->path(),
                        std::string("no thread can be made to replicate the heap: ") + error.what() + "; raise the limit of threads (ulimit -u)");
        }
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    ~Thread() override { stop(); }

    /// Commits wait for it from now on, if they are to; for one before it no more.
    void stand_at_gate() {
        const bool is_asked = options_.acknowledge == Acknowledge::replicated || options_.when_behind != WhenBehind::resync;
        service_->set_gate(is_asked ? shared_from_this() : nullptr);
    }

    bool has_room(std::uint64_t log_end, ByteCount log_capacity) const noexcept override {
        if (options_.when_behind == WhenBehind::resync || lets_through_.load(std::memory_order_relaxed)) return true;
        if (heap_->visits().ending().stop_requested() || is_own_thread() || planted(Bug::begun_while_behind)) return true;
        const std::uint64_t shipped = shipped_to_.load(std::memory_order_relaxed);
        return shipped == unknown || log_end <= shipped || log_end - shipped <= log_capacity / 8 * 7;
    }

    void wait_for_room() override {
        std::unique_lock lock(mutex_);
        if (is_over() && status_.state != ReplicationState::stopped) throw_over();
        if (options_.when_behind == WhenBehind::fail && !lets_through_) {
            throw Error(errc::unreachable, status_.target,
                        "the log is full of transactions that the target hasn't got" +
                            (status_.last_error.empty() ? std::string() : " (" + status_.last_error + ")") + "; try again when it has them");
        }
        lock.unlock();
        const std::stop_callback closing(heap_->visits().ending(), [this] { changed_.notify_all(); });
        lock.lock();
        // What was shipped is told with each frame; a heap that is closed, or a log that is another one, at the latest then.
        if (!lets_through_) changed_.wait_for(lock, std::chrono::milliseconds(20));
    }

    void confirm(Serial serial) override {
        if (options_.acknowledge != Acknowledge::replicated) return;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_ && is_over()) return;  // the program has said that this machine is enough
        }
        std::string why = "the target has not got it in time";
        try {
            // Replication's own thread, in a report handler, would wait for itself.
            if (wait_replicated(serial, is_own_thread() ? std::chrono::milliseconds(0) : options_.confirm_timeout)) return;
            const std::lock_guard lock(mutex_);
            if (!status_.last_error.empty()) why = status_.last_error;
        } catch (const Error& error) {
            why = error.what();
        }
        {
            const std::lock_guard lock(mutex_);
            ++status_.unconfirmed;
        }
        throw Error(errc::unconfirmed, target_->name(),
                    "transaction " + std::to_string(serial.value) + " is committed and durable here, and may not be there: " + why +
                        "; it follows when it can: wait_replicated() tells when it is there");
    }

    bool is_of_parent() const noexcept { return heap_->in_forked_child(); }

    void stop() noexcept {
        if (is_of_parent()) return;
        const auto ask = [this] {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            stop_until_ = Clock::now() + options_.close_timeout;
        };
        if (thread_.get_id() == std::this_thread::get_id()) return ask();  // called by what the thread calls: it ends when that is done
        const std::lock_guard one(ending_);
        if (!thread_.joinable()) return;
        ask();
        wake();
        thread_.join();
        open_gate();  // also where it had ended before
    }

    Serial replicated() const {
        require_parent();
        const std::lock_guard lock(mutex_);
        return status_.replicated;
    }

    ReplicationStatus status() const {
        require_parent();
        const std::lock_guard lock(mutex_);
        ReplicationStatus status = status_;
        try {
            const store::Visits::Visit visit(heap_->visits());
            status.durable = service_->log().durable();
        } catch (const Error&) {
            // The heap is closed: what was durable when the thread looked last.
        }
        status.behind = status.durable.value - std::min(status.durable, status.replicated).value;
        return status;
    }

    bool wait_replicated(Serial serial, std::chrono::milliseconds patience) const override {
        require_parent();
        std::unique_lock lock(mutex_);
        const auto is_there = [&] { return status_.replicated >= serial; };
        if (is_there()) return true;
        const auto entered = [&] {
            const bool lingers = waited_for_ <= status_.replicated;
            waited_for_ = std::max(waited_for_, serial);
            if (lingers || waiters_.count() == expected_) changed_.notify_all();
        };
        waiters_.wait(lock, serial, Clock::now() + within(patience), entered, [&] { return is_there() || is_over(); });
        if (is_there()) return true;
        if (is_over()) throw_over();
        return false;
    }

    store::HeapFile& heap_file() const noexcept override { return *heap_; }
    const log::GroupLog& log() const override { return service_->log(); }
    bool has_unlogged(Serial since) const override {
        // In this order: what a save brings to the files is skipped first, then appended.
        return service_->is_ahead_of_log() || log().skipped_to() > since;
    }
    bool is_exact(Serial serial) const override {
        const std::lock_guard lock(mutex_);
        return serial >= exact_from_;
    }
    bool keep_from(const Uuid& group, std::optional<Serial> serial, std::chrono::milliseconds patience) override {
        require_parent();
        std::unique_lock lock(mutex_);
        keep_asked_[group.bytes] = serial;
        lock.unlock();
        wake();
        lock.lock();
        changed_.wait_for(lock, within(patience), [&] { return !keep_asked_.contains(group.bytes) || is_over(); });
        if (!keep_asked_.contains(group.bytes)) return true;
        if (is_over()) throw_over();
        return false;
    }

    bool forget_marks(std::chrono::milliseconds patience) {
        require_parent();
        {
            const std::lock_guard lock(mutex_);
            is_forgetting_ = true;
        }
        wake();
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, within(patience), [&] { return !is_forgetting_ || is_over(); });
        if (is_forgetting_ && is_over()) throw_over();
        return !is_forgetting_;
    }

    void make_base() {
        require_parent();
        require_no_transaction("make a base");
        std::uint64_t wanted = 0;
        {
            const std::lock_guard lock(mutex_);
            wanted = ++bases_asked_;
        }
        wake();
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return bases_answered_ >= wanted || is_over(); });
        if (bases_answered_ < wanted) throw_over();
        if (base_failure_) std::rethrow_exception(base_failure_);
    }

private:
    void require_parent() const {
        if (heap_->in_forked_child()) throw Error(errc::forked, heap_->path(), "a forked child doesn't replicate the heap; its parent does");
    }

    void require_no_transaction(const std::string& what) const {
        if (service_->depth() != 0 || txn::ReadersHere::holds(*service_))
            throw Error(errc::scope_open, heap_->path(), "this thread has a transaction or a ReadLock on the heap; end it before you " + what);
    }
    /// A base may take long: whoever closes the heap, or ends replication, doesn't wait for all of it.
    void require_time() const {
        const std::lock_guard lock(mutex_);
        if (heap_->visits().ending().stop_requested() || (stopping_ && Clock::now() >= stop_until_))
            throw Error(errc::closed, target_->name(), "replication ends before everything is sent; attach the heap again");
    }

    bool is_own_thread() const noexcept { return own_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

    /// Commits wait for this machine alone.
    void open_gate() noexcept {
        lets_through_ = true;
        service_->clear_gate(*this);
        changed_.notify_all();
    }

    // Under the mutex.
    bool is_something_asked() const { return bases_asked_ != bases_answered_ || !keep_asked_.empty() || is_forgetting_; }
    bool is_over() const { return status_.state >= ReplicationState::fenced; }
    [[noreturn]] void throw_over() const {
        if (status_.state == ReplicationState::fenced) throw Error(errc::fenced, status_.target, status_.last_error);
        throw Error(status_.state == ReplicationState::stopped ? errc::closed : errc::io_error, status_.target,
                    status_.last_error.empty() ? "replication has ended; attach the heap again" : status_.last_error);
    }

    /// Told when it is another than the last one that was.
    void tell(ReplicationState state, const std::string& why, Serial there) {
        if (told_ == state) return;
        told_ = state;
        const std::string text = why.empty() ? name_of(state) : name_of(state) + (": " + why);
        heap_->files().events()->tell({.kind = EventKind::replication, .serial = there.value, .text = text});
    }

    void publish() {
        tell(ReplicationState::streaming, {}, shipper_.shipped());
        if (shipper_.bases() != bases_told_) {
            bases_told_ = shipper_.bases();
            const replicate::Shipper::BaseSent& base = shipper_.base_sent();
            heap_->files().events()->tell({.kind = EventKind::based, .took = base.took, .serial = shipper_.shipped().value, .bytes = base.bytes});
        }
        shipped_to_.store(shipper_.position().value_or(unknown), std::memory_order_relaxed);
        {
            const std::lock_guard lock(mutex_);
            status_.target = target_->name();
            status_.replicated = shipper_.shipped();
            exact_from_ = shipper_.exact_from();
            status_.durable = std::max(status_.durable, status_.replicated);
            status_.frames = shipper_.newest().number;
            status_.bases = shipper_.bases() - bases_at_attaching_;
            status_.bytes_sent = shipper_.bytes_sent();
            status_.state = ReplicationState::streaming;
            const std::size_t waiting = waiters_.count();
            if (waiters_.arrived(status_.replicated) != 0) expected_ = waiting;
        }
        changed_.notify_all();
    }

    void end(ReplicationState state, const std::string& why) {
        shipper_.settle();
        tell(state, why, replicated());
        if (state == ReplicationState::stopped) open_gate();
        {
            const std::lock_guard lock(mutex_);
            status_.state = state;
            if (!why.empty()) status_.last_error = why;
            waiters_.wake_all();
        }
        changed_.notify_all();
    }

    bool is_base_due() const {
        const std::uint64_t now = store::microseconds_of(store::time_now());
        const std::uint64_t age = now - std::min(now, shipper_.full_base_written_at());  // clocks are set back, too
        const auto allowed = static_cast<std::uint64_t>(std::chrono::microseconds(options_.base_every).count());
        if (allowed != 0 && age > allowed) return true;
        const ByteCount bytes =
            options_.base_after_bytes != 0 ? options_.base_after_bytes : std::max<ByteCount>(1_GiB, 2 * heap_->files().extents().span);
        return shipper_.newest().bytes_since_base > bytes;
    }

    /// One piece of work. False: there was nothing to do.
    bool work() {
        const store::Visits::Visit visit(heap_->visits());
        const bool shipped = shipper_.ship();
        keep_what_was_asked();
        std::uint64_t asked = 0;
        {
            const std::lock_guard lock(mutex_);
            asked = bases_asked_ != bases_answered_ ? bases_asked_ : 0;
        }
        if (asked != 0 || is_base_due()) {
            shipper_.make_base();
            if (options_.keep.count() != 0) {
                const auto kept = static_cast<std::uint64_t>(std::chrono::microseconds(options_.keep).count());
                const std::uint64_t now = store::microseconds_of(store::time_now());
                shipper_.trim(now - std::min(now, kept));
            }
        }
        if (asked != 0) answer(asked, nullptr);
        return shipped;
    }

    void keep_what_was_asked() {
        if (is_to_forget()) {
            const replicate::KeptSerials kept = shipper_.kept();
            for (const auto& [group, serial] : kept) shipper_.keep(group, std::nullopt);
            {
                const std::lock_guard lock(mutex_);
                is_forgetting_ = false;
            }
            changed_.notify_all();
        }
        for (;;) {
            std::optional<std::pair<std::array<std::uint8_t, 16>, std::optional<Serial>>> asked;
            {
                const std::lock_guard lock(mutex_);
                if (keep_asked_.empty()) return;
                asked = *keep_asked_.begin();
            }
            shipper_.keep(asked->first, asked->second);
            {
                const std::lock_guard lock(mutex_);
                const auto still = keep_asked_.find(asked->first);
                if (still->second == asked->second) keep_asked_.erase(still);
            }
            changed_.notify_all();
        }
    }

    bool is_to_forget() const {
        const std::lock_guard lock(mutex_);
        return is_forgetting_;
    }

    void answer(std::uint64_t asked, std::exception_ptr failure) {
        {
            const std::lock_guard lock(mutex_);
            if (bases_answered_ < asked) {
                bases_answered_ = asked;
                base_failure_ = std::move(failure);
            }
        }
        changed_.notify_all();
    }

    /// Whether to end now: everything was sent, or there is no more time for it.
    bool must_end(bool did_something) const {
        const std::lock_guard lock(mutex_);
        return stopping_ && (!did_something || Clock::now() >= stop_until_);
    }

    void run() noexcept {
        own_ = std::this_thread::get_id();
        for (;;) {
            bool did = false;
            const Clock::time_point begun = Clock::now();
            try {
                did = work();
                publish();
            } catch (const Error& error) {
                if (error.code() == errc::closed) return end(ReplicationState::stopped, {});
                if (error.code() == errc::fenced) return over(ReplicationState::fenced, errc::fenced, error.what());
                if (error.code() == errc::diverged || error.code() == errc::mismatch)
                    return over(ReplicationState::failed, static_cast<errc>(error.code().value()), error.what());
                if (heap_->condition().is_poisoned()) return over(ReplicationState::failed, errc::poisoned, error.what());
                go_away(error);
            } catch (const std::exception& error) {
                return over(ReplicationState::failed, errc::io_error, error.what());
            }
            if (must_end(did)) return end(ReplicationState::stopped, {});
            if (did)
                frame_took_ = std::min<Clock::duration>(Clock::now() - begun, gathered_max * 2);
            else
                wait();
            gather();
        }
    }

    void over(ReplicationState state, errc code, const char* why) {
        report({code, nullptr, std::string("the heap is no longer replicated: ") + why});
        end(state, why);
    }

    /// The target can't be reached, or refuses: told once, tried again.
    void go_away(const Error& error) {
        tell(ReplicationState::away, error.what(), replicated());
        bool is_news = false;
        std::uint64_t asked = 0;
        {
            const std::lock_guard lock(mutex_);
            is_news = status_.state != ReplicationState::away;
            status_.state = ReplicationState::away;
            status_.last_error = error.what();
            asked = bases_asked_;
        }
        changed_.notify_all();
        answer(asked, std::make_exception_ptr(error));
        if (is_news)
            report({static_cast<errc>(error.code().value()), nullptr, std::string("the heap is not replicated at the moment: ") + error.what()});
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, options_.retry, [&] { return stopping_; });
    }

    /// Until there is something to do, plus the time that a transaction may wait for others.
    void wait() {
        std::stop_token woken;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_ || is_something_asked()) return;
            waking_ = std::stop_source();
            woken = waking_.get_token();
        }
        try {
            const store::Visits::Visit visit(heap_->visits());
            const std::stop_callback closing(heap_->visits().ending(), [this] { wake(); });
            service_->log().wait_beyond(shipper_.shipped(), woken);
        } catch (const Error&) {
            return;  // the heap is being closed
        }
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, linger_, [&] { return stopping_ || is_something_asked() || status_.replicated < waited_for_; });
    }
    /// Commits that were confirmed together often come again together. A frame for the first of them would have the others wait for it and for one more: so it
    /// waits for as many as there were, at most for half of the time that the last frame took.
    void gather() {
        try {
            const store::Visits::Visit visit(heap_->visits());
            if (service_->log().durable() <= shipper_.shipped()) return;
        } catch (const Error&) {
            return;  // the heap is being closed
        }
        std::unique_lock lock(mutex_);
        if (expected_ < 2) return;
        if (!changed_.wait_for(lock, frame_took_ / 2, [&] { return stopping_ || is_something_asked() || waiters_.count() >= expected_; }))
            expected_ = waiters_.count();
    }
    void wake() {
        std::stop_source waking;
        {
            const std::lock_guard lock(mutex_);
            waking = waking_;
        }
        waking.request_stop();
        changed_.notify_all();
    }

    const std::shared_ptr<store::HeapFile> heap_;
    const std::shared_ptr<txn::TransactionService> service_;
    const std::shared_ptr<ReplicationTarget> target_;
    const ReplicationOptions options_;
    const std::chrono::milliseconds linger_;
    replicate::Shipper shipper_;  ///< of the thread
    std::uint64_t bases_at_attaching_ = 0;
    std::uint64_t bases_told_ = 0;          ///< to the event handler
    std::optional<ReplicationState> told_;  ///< to the event handler
    Clock::duration frame_took_{};          ///< the last one

    /// Where in the log the first transaction stands that the target hasn't got.
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    std::atomic<std::uint64_t> shipped_to_{unknown};
    std::atomic<bool> lets_through_{false};  ///< nobody waits any more
    std::atomic<std::thread::id> own_;       ///< of the thread, once it runs

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    ReplicationStatus status_;
    std::map<std::array<std::uint8_t, 16>, std::optional<Serial>> keep_asked_;  ///< by groups, as Shipper::keep has it
    Serial exact_from_;          ///< from there on the target can restore each transaction up to `status_.replicated`
    std::mutex ending_;          ///< of who ends the thread
    std::stop_source waking_;    ///< what the thread waits for has come
    mutable Serial waited_for_;  ///< newest that somebody has waited for
    mutable replicate::SerialWaiters waiters_;
    std::size_t expected_ = 0;  ///< so many waited when one arrived last
    bool stopping_ = false;
    Clock::time_point stop_until_;
    bool is_forgetting_ = false;  ///< what marks of groups need
    std::uint64_t bases_asked_ = 0;
    std::uint64_t bases_answered_ = 0;
    std::exception_ptr base_failure_;
    std::thread thread_;
};

Replication::Replication(TransactionalHeap& heap, std::shared_ptr<ReplicationTarget> target, const ReplicationOptions& options) {
    if (target == nullptr) throw Error(errc::invalid_argument, heap.path(), "replication needs a target; name one");
    thread_ = std::make_shared<Thread>(HeapAccess::shared(heap), std::move(target), options);
    thread_->stand_at_gate();
}
void Replication::end() noexcept {
    if (!thread_) return;
    thread_->stop();
    // In a forked child it is the parent's, and so are the locks that its thread may hold: there it stays.
    if (thread_->is_of_parent()) new std::shared_ptr<Thread>(thread_);
    thread_.reset();
}

Replication::Replication(Replication&&) noexcept = default;
Replication& Replication::operator=(Replication&& other) noexcept {
    if (this != &other) {
        end();
        thread_ = std::move(other.thread_);
    }
    return *this;
}
Replication::~Replication() { end(); }

std::shared_ptr<replicate::GroupMember> replicate::GroupMemberAccess::of(const Replication& replication) { return replication.thread_; }
Serial Replication::replicated() const { return thread_->replicated(); }
bool Replication::wait_replicated(Serial serial, std::chrono::milliseconds patience) const { return thread_->wait_replicated(serial, patience); }
void Replication::make_base() { thread_->make_base(); }
bool Replication::forget_marks(std::chrono::milliseconds patience) { return thread_->forget_marks(patience); }
ReplicationStatus Replication::status() const { return thread_->status(); }
void Replication::stop() noexcept {
    if (thread_) thread_->stop();
}

}  // namespace taiyen
