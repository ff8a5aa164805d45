#include <taiyen/inspect/background_scrub.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <taiyen/base/report.hpp>

#include "base/sentence.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {
namespace {

using store::HeapFile;
using Clock = std::chrono::steady_clock;

/// Findings that are kept, so that each is told once.
constexpr std::size_t kept_max = 100'000;
/// A page that can't be restored now, because a save is at work or transactions are ahead of the log, is looked at again so long after.
constexpr std::chrono::milliseconds retry_after{10};

}  // namespace

/// The thread, and what it needs.
class BackgroundScrub::Thread {
public:
    Thread(std::shared_ptr<HeapFile> heap, const BackgroundScrubOptions& options) : heap_(std::move(heap)), options_(options) {
        heap_->check_usable(false);
        if (heap_->kind() == HeapKind::transactional) {
            if (txn::TransactionService* const service = txn::TransactionService::of(*heap_)) service_ = service->shared_from_this();
        }
        stats_.running = true;
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    ~Thread() { stop(); }

    void stop() noexcept {
        if (!thread_.joinable()) return;
        if (heap_->in_forked_child()) {
            thread_.detach();  // it is the parent's
            return;
        }
        thread_.request_stop();
        thread_.join();
    }
    BackgroundScrubStats stats() const {
        if (heap_->in_forked_child()) return {};  // whoever held the lock isn't here
        const std::lock_guard lock(mutex_);
        return stats_;
    }

private:
    using Damaged = store::DamagedPage;
    /// While it lives no transaction is open: whatever changes a page next proves it first.
    class NoTransaction {
    public:
        explicit NoTransaction(txn::TransactionService* service) : service_(service != nullptr && service->lock_shared() ? service : nullptr) {}
        NoTransaction(const NoTransaction&) = delete;
        NoTransaction& operator=(const NoTransaction&) = delete;
        ~NoTransaction() {
            if (service_ != nullptr) service_->unlock_shared();
        }

    private:
        txn::TransactionService* const service_;
    };

    void run(const std::stop_token& stop) noexcept {
        std::string why;
        try {
            while (!stop.stop_requested() && round(stop))
                if (!heap_->visits().rest(options_.pause, stop)) break;
        } catch (const Error& error) {
            if (error.code() != errc::closed) why = told(static_cast<errc>(error.code().value()), error.what());
        } catch (const std::exception& error) {
            why = told(errc::io_error, error.what());
        }
        const std::lock_guard lock(mutex_);
        stats_.running = false;
        stats_.last_error = std::move(why);
    }

    static std::string told(errc code, const char* what) {
        report({code, nullptr, what});
        return what;
    }

    /// All pages of all files. False: it was stopped, or the heap is closed.
    bool round(const std::stop_token& stop) {
        found_.clear();
        set([](BackgroundScrubStats& stats) { stats.pages_waiting = stats.pages_lost = 0; });
        Clock::time_point next_piece = Clock::now();
        PageNumber next{0};
        do {
            std::vector<Damaged> damaged;
            const ByteCount read = heap_->healing().look_over(next, options_.piece_bytes, damaged);
            set([&](BackgroundScrubStats& stats) { stats.bytes_read += read; });
            for (const Damaged& page : damaged)
                if (!deal_with(page, stop)) return false;
            if (options_.bytes_per_second != 0) {
                // A device that was slow for a while isn't made up for by a burst.
                next_piece = std::max(next_piece, Clock::now() - std::chrono::milliseconds(100));
                next_piece += std::chrono::nanoseconds(
                    static_cast<std::int64_t>(static_cast<double>(read) * 1e9 / static_cast<double>(options_.bytes_per_second)));
                if (const auto wait = next_piece - Clock::now(); wait > Clock::duration::zero() && !heap_->visits().rest(wait, stop)) return false;
            }
            if (stop.stop_requested()) return false;
        } while (next.value != 0);
        known_ = std::move(found_);  // what was whole in this round, and rots again, is told again
        set([](BackgroundScrubStats& stats) { ++stats.rounds; });
        return true;
    }

    /// False: it was stopped, or the heap is closed.
    bool deal_with(const Damaged& page, const std::stop_token& stop) {
        std::optional<store::Healed> healed;
        while (!(healed = try_to_heal(page)))
            if (!heap_->visits().rest(retry_after, stop) || stop.stop_requested()) return false;
        const bool is_news = *healed != store::Healed::whole && !known_.contains(page);
        if (*healed != store::Healed::whole && *healed != store::Healed::healed && found_.size() < kept_max) found_.insert(page);
        if (is_news) {
            const char* const what = *healed == store::Healed::healed  ? "the background scrub has restored it from the other copy"
                                     : *healed == store::Healed::waits ? "the next snapshot() restores it from the other copy"
                                                                       : "no other copy has it whole; restore the file from a copy";
            report({errc::corrupt, nullptr, heap_->describe(page, what).what()});
        }
        set([&](BackgroundScrubStats& stats) {
            stats.pages_damaged += is_news ? 1 : 0;
            stats.pages_healed += *healed == store::Healed::healed ? 1 : 0;
            stats.pages_waiting += *healed == store::Healed::waits ? 1 : 0;
            stats.pages_lost += *healed == store::Healed::lost ? 1 : 0;
        });
        return true;
    }

    /// Nothing: not now.
    std::optional<store::Healed> try_to_heal(const Damaged& page) {
        const store::Visits::Visit visit(heap_->visits());
        const NoTransaction none(service_.get());
        // What was loaded relaxed was proven by nobody.
        if (service_ && service_->is_ahead_of_log()) return std::nullopt;
        return heap_->healing().heal_one(page);
    }

    template <class F>
    void set(F&& change) {
        const std::lock_guard lock(mutex_);
        change(stats_);
    }

    const std::shared_ptr<HeapFile> heap_;
    std::shared_ptr<txn::TransactionService> service_;  ///< null: a heap without transactions
    const BackgroundScrubOptions options_;
    std::set<Damaged> known_;  ///< found damaged by the round before
    std::set<Damaged> found_;  ///< and by this one
    mutable std::mutex mutex_;
    BackgroundScrubStats stats_;
    std::jthread thread_;
};

BackgroundScrub::BackgroundScrub(ArchiveHeap& heap, const BackgroundScrubOptions& options)
    : thread_(std::make_unique<Thread>(HeapAccess::shared(heap), options)) {}
BackgroundScrub::BackgroundScrub(BackgroundScrub&&) noexcept = default;
BackgroundScrub& BackgroundScrub::operator=(BackgroundScrub&&) noexcept = default;
BackgroundScrub::~BackgroundScrub() = default;

void BackgroundScrub::stop() noexcept {
    if (thread_) thread_->stop();
}

BackgroundScrubStats BackgroundScrub::stats() const { return thread_ ? thread_->stats() : BackgroundScrubStats{}; }

}  // namespace taiyen
