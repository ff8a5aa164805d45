#include <taiyen/replicate/replication_group.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "base/process.hpp"
#include "replicate/cutter.hpp"
#include "store/heap_access.hpp"
#include "store/opening_record.hpp"

namespace taiyen {
namespace {

using Clock = std::chrono::steady_clock;
using replicate::Cut;

constexpr std::chrono::minutes trim_every{10};

}  // namespace

class ReplicationGroup::Thread {
public:
    Thread(std::shared_ptr<ReplicationTarget> target, const GroupOptions& options)
        : target_(std::move(target)), options_(with_bounds(options)), cutter_(*target_, options_.patience) {}
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    ~Thread() { stop(); }

    /// This process is a forked child of the one that made it.
    bool is_of_parent() const noexcept { return !is_process(process_); }

    void add(std::string name, const TransactionalHeap& heap, const Replication& replication) {
        require_parent();
        auto member = replicate::GroupMemberAccess::of(replication);
        if (&member->heap_file() != &HeapAccess::file(heap))
            throw Error(errc::invalid_argument, target_->name(), "'" + name + "' is replicated by another Replication than that one");
        const std::lock_guard cutting(cut_mutex_);
        cutter_.add(std::move(name), std::move(member));
    }

    void start() {
        require_parent();
        if (own_.load() == std::this_thread::get_id()) return;  // the same
        {
            const std::lock_guard cutting(cut_mutex_);
            cutter_.require_members();
        }
        const std::lock_guard starting(start_mutex_);
        if (thread_.joinable()) {
            if (!status().is_over) return;
            thread_.join();
        }
        {
            const std::lock_guard lock(mutex_);
            status_.is_over = false;
        }
        try {
            thread_ = std::jthread([this](const std::stop_token& stop) {
                own_ = std::this_thread::get_id();
                run(stop);
                own_ = std::thread::id();
            });
        } catch (const std::system_error& error) {
            throw Error(errc::too_many_threads, target_->name(),
                        std::string("no thread can be made for the group: ") + error.what() + "; raise the limit of threads (ulimit -u)");
        }
    }

    GroupCut cut(std::string_view mark) {
        require_parent();
        const std::lock_guard cutting(cut_mutex_);
        return make_cut(mark, {});
    }

    void unmark(std::string_view name) {
        require_parent();
        const std::lock_guard cutting(cut_mutex_);
        cutter_.unmark(name);
    }

    std::vector<GroupCut> marks() const {
        require_parent();
        const std::lock_guard cutting(cut_mutex_);
        std::vector<GroupCut> all;
        for (const Cut& mark : cutter_.marks()) all.push_back(told(mark));
        return all;
    }

    GroupStatus status() const {
        require_parent();
        const std::lock_guard lock(mutex_);
        return status_;
    }

    void stop() noexcept {
        if (is_of_parent()) return;
        if (own_.load() == std::this_thread::get_id()) return;  // called by what the thread calls at its end
        const std::lock_guard starting(start_mutex_);
        thread_.request_stop();
        if (thread_.joinable()) thread_.join();
    }

private:
    void require_parent() const {
        if (is_of_parent()) throw Error(errc::forked, target_->name(), "a forked child makes no cuts of the group; its parent does");
    }

    static GroupOptions with_bounds(GroupOptions options) {
        constexpr std::chrono::hours longest{24 * 365};
        options.cut_every = std::clamp<std::chrono::milliseconds>(options.cut_every, std::chrono::milliseconds(1), longest);
        options.patience = std::clamp<std::chrono::milliseconds>(options.patience, std::chrono::milliseconds(0), longest);
        options.keep = std::clamp(options.keep, std::chrono::hours(0), 1000 * longest);
        return options;
    }

    // Under cut_mutex_.
    GroupCut make_cut(std::string_view mark, const std::stop_token& stop) {
        const std::uint64_t before = status().newest.frame;
        const GroupCut made = told(cutter_.cut(mark, stop));
        const std::lock_guard lock(mutex_);
        if (made.frame != before) ++status_.cuts;
        return status_.newest = made;
    }

    void trim() {
        const auto kept = static_cast<std::uint64_t>(std::chrono::microseconds(options_.keep).count());
        if (kept == 0 || Clock::now() - trimmed_ < trim_every) return;
        const std::uint64_t now = store::microseconds_of(store::time_now());
        cutter_.trim(now - std::min(now, kept));
        trimmed_ = Clock::now();
    }

    void run(const std::stop_token& stop) noexcept {
        while (!stop.stop_requested()) {
            try {
                std::unique_lock cutting(cut_mutex_, std::defer_lock);
                while (!cutting.try_lock()) {  // no timed_mutex: the thread sanitizer of GCC 12 doesn't know its waits
                    if (stop.stop_requested()) return;
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                }
                (void)make_cut({}, stop);
                trim();
            } catch (const Error& error) {
                if (stop.stop_requested()) return;
                const auto code = static_cast<errc>(error.code().value());
                const bool is_over = code == errc::fenced || code == errc::closed || code == errc::forked;
                fail(error.what(), is_over);
                if (is_over) return report({code, nullptr, std::string("no more cuts are made of the group: ") + error.what()});
            } catch (const std::exception& error) {
                fail(error.what(), false);
            }
            std::unique_lock lock(mutex_);
            stopped_.wait_for(lock, stop, options_.cut_every, [] { return false; });
        }
    }

    void fail(const char* why, bool is_over) {
        const std::lock_guard lock(mutex_);
        status_.last_error = why;
        status_.is_over = is_over;
    }

    const std::shared_ptr<ReplicationTarget> target_;
    const GroupOptions options_;
    const ProcessNumber process_ = this_process();
    mutable std::mutex cut_mutex_;  ///< one cut after the other; before `mutex_`
    replicate::Cutter cutter_;
    Clock::time_point trimmed_ = Clock::now();

    mutable std::mutex mutex_;
    std::condition_variable_any stopped_;
    GroupStatus status_;
    std::mutex start_mutex_;              ///< of who begins or ends the thread; before `mutex_`
    std::atomic<std::thread::id> own_{};  ///< of the thread
    std::jthread thread_;
};

ReplicationGroup::ReplicationGroup(std::shared_ptr<ReplicationTarget> target, const GroupOptions& options) {
    if (target == nullptr) throw Error(errc::invalid_argument, "a group needs a target; name one");
    thread_.reset(new Thread(std::move(target), options));
}
/// In a forked child it is the parent's, and so are the locks that its thread may hold.
void ReplicationGroup::End::operator()(Thread* thread) const noexcept {
    if (!thread->is_of_parent()) delete thread;
}
ReplicationGroup::ReplicationGroup(ReplicationGroup&&) noexcept = default;
ReplicationGroup& ReplicationGroup::operator=(ReplicationGroup&&) noexcept = default;
ReplicationGroup::~ReplicationGroup() = default;

void ReplicationGroup::add(std::string name, TransactionalHeap& heap, const Replication& replication) {
    thread_->add(std::move(name), heap, replication);
}
void ReplicationGroup::start() { thread_->start(); }
GroupCut ReplicationGroup::cut() { return thread_->cut({}); }
GroupCut ReplicationGroup::mark(std::string_view name) {
    if (name.empty()) throw Error(errc::invalid_argument, "a mark has a name");
    return thread_->cut(name);
}
void ReplicationGroup::unmark(std::string_view name) { thread_->unmark(name); }
std::vector<GroupCut> ReplicationGroup::marks() const { return thread_->marks(); }
GroupStatus ReplicationGroup::status() const { return thread_->status(); }
void ReplicationGroup::stop() noexcept {
    if (thread_) thread_->stop();
}

// ---- restoring

namespace {

Cut cut_to_restore(ReplicationTarget& target, const GroupRestoreOptions& options) {
    if (!options.mark.empty() && options.at)
        throw Error(errc::invalid_argument, target.name(), "a cut has a name, or is the newest one of a time: not both");
    const auto time = options.at ? std::optional(store::microseconds_of(*options.at)) : std::nullopt;
    const auto found = replicate::find_cut(target, time, options.mark);
    if (found) return *found;
    throw Error(errc::not_found, target.name(),
                options.mark.empty() ? std::string("there is no cut that is old enough") : "there is no mark '" + options.mark + "'");
}

}  // namespace

RestoredGroup restore_group(ReplicationTarget& target, const std::function<std::shared_ptr<ReplicationTarget>(const std::string& name)>& target_of,
                            const std::filesystem::path& folder, const GroupRestoreOptions& options) {
    const Cut cut = cut_to_restore(target, options);
    RestoredGroup group{told(cut), {}};
    std::vector<std::filesystem::path> made;
    try {
        for (const Cut::Member& member : cut.members) {
            const std::filesystem::path path = folder / (member.name + ".tyn");
            const auto source = target_of(member.name);
            if (source == nullptr) throw Error(errc::invalid_argument, target.name(), "nobody says where '" + member.name + "' was replicated to");
            const auto info = replica_info(*source);
            if (!info || info->heap != member.heap.text())
                throw Error(errc::mismatch, source->name(),
                            "it doesn't hold the heap " + member.heap.text() + ", '" + member.name + "' of the group");
            group.heaps.push_back(restore(*source, path, {.serial = member.serial, .progress = options.progress}));
            made.push_back(path);
        }
    } catch (...) {
        for (const auto& path : made) {
            std::error_code ignored;
            std::filesystem::remove(path, ignored);
        }
        throw;
    }
    return group;
}

GroupCut find_group_cut(ReplicationTarget& target, const GroupRestoreOptions& options) { return told(cut_to_restore(target, options)); }

std::vector<GroupCut> group_marks(ReplicationTarget& target) {
    std::vector<GroupCut> all;
    for (const Cut& mark : replicate::marks_in(target)) all.push_back(told(mark));
    return all;
}

}  // namespace taiyen
