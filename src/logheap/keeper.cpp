// The keeper: flushes, writes images and cleans ahead of need, on a thread of the log's own, so that operations seldom wait for the disk.

#include <algorithm>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "logheap/object_log.hpp"

namespace taiyen::logheap {

namespace {

/// So many copies are applied before the lock is let go.
constexpr std::size_t copies_at_once = 16;

}  // namespace

/// Requires: the lock.
void ObjectLog::ask_keeper() noexcept {
    is_asked_ = true;
    wake_.notify_one();
}

void ObjectLog::stop_keeper() noexcept {
    if (!keeper_.joinable()) return;
    {
        const std::lock_guard lock(writer_);
        is_stopping_ = true;
    }
    wake_.notify_one();
    keeper_.join();
}

/// So that nobody waits for a shard who comes later.
void ObjectLog::load_index() noexcept {
    for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard) {
        {
            const std::lock_guard lock(writer_);
            if (is_stopping_) return;
        }
        try {
            index_.load(shard);
        } catch (const Error& error) {
            report({static_cast<errc>(error.code().value()), nullptr, error.what()});
            return;
        } catch (const std::exception&) {  // no memory: whoever asks for the shard hears of it
            return;
        }
    }
}

void ObjectLog::keep() noexcept {
    load_index();
    std::unique_lock lock(writer_);
    while (!is_stopping_) {
        is_asked_ = false;
        try {
            while (!is_stopping_ && !is_poisoned_) {
                free_unpinned();
                const std::optional<Task> task = next_task();
                if (!task || !do_task(*task, lock, [] {}, [] {})) break;
            }
        } catch (const std::exception& error) {
            if (!lock) lock.lock();
            // Of a failed write everybody hears who writes next; of memory or room that is short, whoever needs it.
            try {
                report({errc::io_error, nullptr, path().string() + ": work ahead of need failed: " + error.what()});
            } catch (const std::exception&) {  // no memory to say so
            }
        }
        wake_.wait(lock, [&] { return is_stopping_ || is_asked_; });
    }
}

void ObjectLog::do_ahead(Task task, const std::function<void()>& meanwhile, const std::function<void()>& in_image) {
    TAIYEN_CHECK(!keeper_.joinable());
    auto lock = lock_for_writing();
    do_task(task, lock, meanwhile, in_image);
}

/// A quarter of what is neither live nor free, and not much.
std::uint64_t ObjectLog::free_wanted_ahead() const {
    const std::uint64_t used = files_.segments() - free_;
    const std::uint64_t full = live_ / segment_room();
    return reserve + 1 + std::min<std::uint64_t>((used - std::min(used, full)) / 4, 2 * victims_max);
}

std::optional<ObjectLog::Task> ObjectLog::next_task() const {
    if (log_->used() >= log_->capacity() / 2) return Task::flush;
    if (is_index_damaged_) return std::nullopt;
    if (!has_failed_image_ && (since_checkpoint_ >= checkpoint_bytes() || tail_.size() > layout::tail_max / 2)) return Task::image;
    if (available() < free_wanted_ahead()) return emptied_.empty() ? Task::cleaning : Task::flush;
    return std::nullopt;
}

/// False: nothing came of it; what is asked for next may.
bool ObjectLog::do_task(Task task, std::unique_lock<std::mutex>& lock, const std::function<void()>& meanwhile,
                        const std::function<void()>& in_image) {
    const bool is_done = task == Task::cleaning ? clean_ahead(lock, meanwhile) : flush_ahead(task == Task::image, lock, meanwhile, in_image);
    if (is_done) ++counts_.ahead;
    return is_done;
}

bool ObjectLog::flush_ahead(bool with_image, std::unique_lock<std::mutex>& lock, const std::function<void()>& meanwhile,
                            const std::function<void()>& in_image) {
    const std::uint64_t before = counts_.flushes;
    {
        const std::lock_guard ahead(ahead_mutex_);
        ahead_ = Ahead{begin_flush(with_image)};
    }
    lock.unlock();
    meanwhile();
    {
        const std::lock_guard ahead(ahead_mutex_);
        if (ahead_ && !ahead_->is_written) {
            try {
                write_flush(std::get<Flush>(ahead_->work), in_image);
            } catch (...) {
                ahead_->failure = std::current_exception();
            }
            ahead_->is_written = true;
        }
    }
    meanwhile();
    lock.lock();
    finish_ahead();
    has_failed_image_ = has_failed_image_ || (with_image && counts_.flushes == before);
    return counts_.flushes != before;
}

bool ObjectLog::clean_ahead(std::unique_lock<std::mutex>& lock, const std::function<void()>& meanwhile) {
    {
        std::optional<Cleaning> cleaning = begin_cleaning();
        if (!cleaning) return false;
        const std::lock_guard ahead(ahead_mutex_);
        ahead_ = Ahead{std::move(*cleaning)};
    }
    const auto without_lock = [&](const auto& work) {  // which may find that somebody finished it
        lock.unlock();
        meanwhile();
        {
            const std::lock_guard ahead(ahead_mutex_);
            if (ahead_) work(std::get<Cleaning>(ahead_->work));
        }
        meanwhile();
        lock.lock();
        return ahead_.has_value();
    };
    const std::uint64_t before = counts_.cleaned_segments;
    try {
        bool goes_on = without_lock([&](Cleaning& cleaning) { find_survivors(cleaning); });
        while (goes_on && begin_stretch(std::get<Cleaning>(ahead_->work))) {
            goes_on = without_lock([&](Cleaning& cleaning) { copy_stretch(cleaning); });
            while (goes_on && apply_copies(std::get<Cleaning>(ahead_->work), copies_at_once)) goes_on = without_lock([](Cleaning&) {});
        }
    } catch (...) {
        if (!lock) lock.lock();
        finish_ahead();
        throw;
    }
    finish_ahead();
    return counts_.cleaned_segments != before;
}

/// What was begun ahead is done. Requires: the lock.
void ObjectLog::finish_ahead() {
    if (!ahead_) return;
    std::optional<Ahead> ahead;
    {
        const std::lock_guard waits(ahead_mutex_);
        ahead.swap(ahead_);
    }
    if (auto* const cleaning = std::get_if<Cleaning>(&ahead->work)) {
        go_on_cleaning(*cleaning);
        return;
    }
    Flush& flush = std::get<Flush>(ahead->work);
    try {
        if (!ahead->is_written) write_flush(flush, [] {});
        if (ahead->failure) std::rethrow_exception(ahead->failure);
    } catch (const std::exception& error) {
        poison_unless_harmless(flush, error);
        if (is_poisoned_) throw;
        since_checkpoint_ = 0;  // opening reads more meanwhile
        return;
    }
    end_flush(flush);
}

}  // namespace taiyen::logheap
