#include <taiyen/logheap/log_heap.hpp>

#include <taiyen/base/report.hpp>

#include "logheap/object_log.hpp"

namespace taiyen {

using logheap::ObjectLog;

namespace {

Serial version_of_view(Serial expected) {
    if (expected.value == 0) throw Error(errc::invalid_argument, "no value has the version 0; take the version of a view");
    return expected;
}

}  // namespace

void LogView::release() noexcept { log_->unpin(segment_); }

void LogView::throw_size(std::size_t wanted) const {
    throw Error(errc::type_mismatch, log_ != nullptr ? log_->path() : std::filesystem::path(),
                "the value has " + std::to_string(bytes_.size()) + " bytes, the type " + std::to_string(wanted) + "; read it as what it was put as");
}

void LogBatch::put(LogId id, std::span<const std::byte> bytes) {
    if (id == LogId::none) throw Error(errc::invalid_argument, "LogId::none is no id; choose another one");
    const std::size_t begin = bytes_.size();
    operations_.reserve(operations_.size() + 1);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    operations_.push_back({id, false, begin, bytes.size()});
}

void LogBatch::remove(LogId id) {
    if (id == LogId::none) throw Error(errc::invalid_argument, "LogId::none is no id; choose another one");
    operations_.push_back({id, true, 0, 0});
}

LogHeap::LogHeap(create_only_t, const std::filesystem::path& path, const LogHeapOptions& options)
    : log_(ObjectLog::open(io::posix_storage(), path, options, ObjectLog::Opening::create)) {}
LogHeap::LogHeap(open_only_t, const std::filesystem::path& path, const LogHeapOptions& options)
    : log_(ObjectLog::open(io::posix_storage(), path, options, ObjectLog::Opening::open)) {}
LogHeap::LogHeap(open_or_create_t, const std::filesystem::path& path, const LogHeapOptions& options)
    : log_(ObjectLog::open(io::posix_storage(), path, options, ObjectLog::Opening::open_or_create)) {}
LogHeap::LogHeap(open_read_only_t, const std::filesystem::path& path, const LogHeapOptions& options)
    : log_(ObjectLog::open(io::posix_storage(), path, options, ObjectLog::Opening::read_only)) {}
LogHeap::LogHeap(LogHeap&&) noexcept = default;

LogHeap& LogHeap::operator=(LogHeap&& other) noexcept {
    LogHeap old(std::move(*this));
    log_ = std::move(other.log_);
    return *this;
}

/// In a forked child: files and threads are the parent's, and locks may be held for ever.
bool LogHeap::leave_to_parent() noexcept {
    if (!log_->in_forked_child()) return false;
    static_cast<void>(log_.release());
    return true;
}

LogHeap::~LogHeap() {
    if (log_ == nullptr || leave_to_parent()) return;
    const std::string name = log_->path().string();
    try {
        if (!log_->has_views()) {
            log_->close();
            return;
        }
        report({errc::still_in_use, nullptr, name + ": the heap ends while views of its values live; they keep its memory, and it was not closed"});
        log_->stop_keeper();
        static_cast<void>(log_.release());  // they count their pins there
    } catch (const std::exception& error) {
        report({errc::io_error, nullptr, name + ": closing failed: " + error.what() + "; what was durable is, opening recovers it"});
    }
}

ObjectLog& LogHeap::open_log() const {
    if (log_ == nullptr) throw Error(errc::closed, "the log heap was closed, or moved from; open it again");
    if (log_->in_forked_child()) throw Error(errc::forked, log_->path(), "the heap was opened before fork(); open it in the process that uses it");
    return *log_;
}

LogHandle LogHeap::put(std::span<const std::byte> bytes) { return open_log().put(bytes); }
LogHandle LogHeap::put_as(LogId id, std::span<const std::byte> bytes) { return open_log().put_as(id, bytes); }
std::optional<LogHandle> LogHeap::insert(LogId id, std::span<const std::byte> bytes) { return open_log().insert(id, bytes); }
bool LogHeap::update(LogHandle handle, std::span<const std::byte> bytes) { return open_log().update(handle, {}, bytes); }
bool LogHeap::replace(LogHandle handle, Serial expected, std::span<const std::byte> bytes) {
    return open_log().update(handle, version_of_view(expected), bytes);
}
bool LogHeap::remove(LogHandle handle) { return open_log().remove(handle); }
bool LogHeap::remove(LogHandle handle, Serial expected) { return open_log().remove(handle, version_of_view(expected)); }
Serial LogHeap::commit(const LogBatch& batch) { return open_log().commit(batch); }
LogView LogHeap::get(LogHandle handle) const { return open_log().get(handle); }
std::uint64_t LogHeap::size() const { return open_log().size(); }
void LogHeap::for_each(const std::function<void(const LogView&)>& f, LogId first) const { open_log().for_each(f, first); }
Serial LogHeap::last_durable() const { return open_log().last_durable(); }
void LogHeap::wait_durable(Serial serial) const { open_log().wait_durable(serial); }
void LogHeap::checkpoint() { open_log().checkpoint(); }
std::size_t LogHeap::clean(std::size_t bytes) { return open_log().clean(bytes); }
LogHeapStats LogHeap::stats() const { return open_log().stats(); }
std::vector<LogSegment> LogHeap::segments() const { return open_log().segments(); }
LogRestoration LogHeap::restoration() const { return open_log().restoration(); }
LogVerification LogHeap::verify() const { return open_log().verify(); }
const std::filesystem::path& LogHeap::path() const { return open_log().path(); }

void LogHeap::close() {
    if (log_ == nullptr || leave_to_parent()) return;
    if (log_->has_views()) throw Error(errc::still_in_use, path(), "views of values live; let them go, and close the heap again");
    const std::unique_ptr<ObjectLog> log = std::move(log_);
    log->close();
}

}  // namespace taiyen
