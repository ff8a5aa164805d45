#pragma once
/// Request: what somebody wants to check out, on its way to it; RequestQueue: what it stands in until it is woken.
///
/// A request is in at most one queue, and only its thread, or who took it out of a queue, touches it. Its `place` says which one; who finds it changed under that queue's mutex looks again.
/// Thread rule: external lock, the queue's.

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>

#include <taiyen/object/check_outs.hpp>

#include "base/planted.hpp"
#include "object/object_table.hpp"
#include "object/signal.hpp"

namespace taiyen::object {

struct Request;

/// A request that no thread waits for: it goes on where it is woken.
class Unattended {
public:
    const CheckOuts* const manager;
    Request& request;
    virtual void go_on() noexcept = 0;

protected:
    Unattended(const CheckOuts& asked, Request& of) : manager(&asked), request(of) {}
    ~Unattended() = default;
};

/// The queue that a request stands in.
enum class Place : std::uint8_t { nowhere, entry, gate, wants_first };

struct Request {
    Request(Holding& holding, bool load) : want(holding), may_load(load) {}
    Holding& want;
    const bool may_load;
    std::atomic<bool> known{false};  ///< every item has an entry; set by whoever lets it through, while its thread may be about to sleep
    std::atomic<bool> first{false};  ///< it goes first; set by whoever lets it, while its thread may be about to sleep
    bool reserves = false;           ///< its words are reserved for it
    bool granted = false;            ///< by who let it through
    bool waited = false;             ///< it stood in a queue
    unsigned attempts = 0;           ///< woken in vain
    Entry* woken_for = nullptr;
    Entry* entry = nullptr;  ///< whose queue it stands in
    std::optional<CheckOuts::Clock::time_point> since;
    std::exception_ptr failure;        ///< of the load that it waited for
    std::optional<std::int64_t> gone;  ///< the load that it waited for says that there is no such object
    std::atomic<Place> place{Place::nowhere};
    Request* next = nullptr;
    Request* before = nullptr;
    Unattended* unattended = nullptr;  ///< null: a thread waits
    Signal signal;
};

/// What lets a request take more than others may.
struct Rights {
    bool reserves = false;             ///< it goes first, and all its words are reserved
    const Entry* woken_for = nullptr;  ///< it comes out of that entry's queue
};
inline Rights rights_of(const Request& request) noexcept { return {request.reserves, request.woken_for}; }

/// Whether an entry whose word says that is not to be had now.
inline bool is_taken(std::uint64_t now, Access access, const Rights& rights, const Entry* entry) noexcept {
    if ((now & (word::writer | word::loading)) != 0 || ((now & word::reserved) != 0 && !rights.reserves)) return true;
    if ((now & word::readers) == 0) return false;
    if (access == Access::exclusive) return true;
    // Readers that join others would keep a writer out for ever.
    return (now & word::waiters) != 0 && !rights.reserves && rights.woken_for != entry && !planted(Bug::readers_pass_writers);
}

class RequestQueue {
public:
    Request* first() const noexcept { return first_; }
    Request* last() const noexcept { return last_; }
    void push(Request& request) noexcept { insert(request, last_); }
    /// Behind all that have waited longer, before all that haven't.
    void push_by_age(Request& request) noexcept {
        Request* behind = last_;
        while (behind != nullptr && behind->since > request.since) behind = behind->before;
        insert(request, behind);
    }
    void remove(Request& request) noexcept {
        (request.before != nullptr ? request.before->next : first_) = request.next;
        (request.next != nullptr ? request.next->before : last_) = request.before;
        request.next = request.before = nullptr;
    }
    /// It stands nowhere then.
    void take_out(Request& request) noexcept {
        remove(request);
        request.place.store(Place::nowhere, std::memory_order_relaxed);
    }

private:
    void insert(Request& request, Request* behind) noexcept {
        request.before = behind;
        request.next = behind != nullptr ? behind->next : first_;
        (request.before != nullptr ? request.before->next : first_) = &request;
        (request.next != nullptr ? request.next->before : last_) = &request;
    }
    Request* first_ = nullptr;
    Request* last_ = nullptr;
};

}  // namespace taiyen::object
