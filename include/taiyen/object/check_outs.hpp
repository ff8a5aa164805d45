#pragma once
/// The compiled side of ObjectManager: which objects are checked out, and what waits for them. Programs use <taiyen/object/object_manager.hpp>.
///
/// Thread rule: safe, except for `Holding`, which is one thread's at a time.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// Whether a check-out changes its objects, alone, or reads them, together with other readers.
enum class Access : std::uint8_t { exclusive, shared };

/// Whom a pause keeps out: those that change objects, or readers, too.
enum class Paused : std::uint8_t { writers, everybody };

/// What a manager has done since it began.
struct CheckoutStatistics {
    std::uint64_t objects = 0;                 ///< that it knows now
    std::uint64_t granted = 0;                 ///< requests that got all their objects
    std::uint64_t waited = 0;                  ///< requests that had to wait, whatever became of them
    std::uint64_t waiting = 0;                 ///< requests that wait now
    std::uint64_t went_first = 0;              ///< requests that had waited so long that others had to stand back
    std::uint64_t loaded = 0;                  ///< objects that the loader brought
    std::chrono::nanoseconds longest_wait{0};  ///< of a request that has ended
};

/// An object that somebody has checked out.
struct HeldObject {
    std::int64_t id;
    Access access;
    std::uint32_t readers;  ///< of a shared one: check-outs that have it
};

namespace object {

struct Entry;
class CheckOuts;

/// What a request asks for, and has once it is granted: ids in ascending order, each once.
class TAIYEN_EXPORT Holding {
public:
    struct Item {
        std::int64_t id;
        Entry* entry;
        void* object;
    };
    static constexpr std::size_t items_inside = 16;

    Holding() = default;
    /// Throws: std::bad_alloc.
    Holding(std::span<const std::int64_t> ids, Access access);
    Holding(Holding&& from) noexcept { take(from); }
    Holding& operator=(Holding&& from) noexcept {
        if (this != &from) {
            release();
            take(from);
        }
        return *this;
    }
    ~Holding() { release(); }

    /// Gives everything back and forgets it. Nothing happens if nothing is held.
    void release() noexcept;
    bool holds() const noexcept { return owner_ != nullptr; }
    Access access() const noexcept { return access_; }
    /// Which of the manager's counters it uses.
    std::uint32_t stripe() const noexcept { return stripe_; }
    std::span<const Item> items() const noexcept { return {data(), count_}; }
    std::span<Item> items() noexcept { return {data(), count_}; }
    const std::vector<std::int64_t>& missing() const noexcept { return missing_; }
    /// Null: it isn't held. Complexity: logarithmic.
    void* find(std::int64_t id) const noexcept;

private:
    friend class CheckOutEngine;

    Item* data() noexcept { return more_ ? more_.get() : inside_.data(); }
    const Item* data() const noexcept { return more_ ? more_.get() : inside_.data(); }
    void take(Holding& from) noexcept;

    CheckOuts* owner_ = nullptr;  ///< null: nothing is held
    std::uint32_t count_ = 0;
    std::uint32_t stripe_ = 0;
    Access access_ = Access::exclusive;
    std::unique_ptr<Item[]> more_;           ///< where there are more than fit inside
    std::array<Item, items_inside> inside_;  // only the first count_ of them mean something
    std::vector<std::int64_t> missing_;
};

class TAIYEN_EXPORT CheckOuts {
public:
    /// Null: there is no such object.
    using Load = std::function<void*(std::int64_t)>;
    /// Brings one object for each id; those that it leaves null there aren't.
    using LoadMany = std::function<void(std::span<const std::int64_t>, std::span<void*>)>;
    using Callback = std::function<void(Holding&&, std::exception_ptr)>;
    using Clock = std::chrono::steady_clock;
    struct Options {
        Load load = {};                        ///< of one object; with `load_many` empty, too: only objects that were added are there
        LoadMany load_many = {};               ///< of all that a request lacks
        std::chrono::nanoseconds patience{0};  ///< until a request goes first
        unsigned attempts = 0;                 ///< until a request goes first: times that it was woken in vain
        std::size_t objects = 0;               ///< that are expected; only saves growing
    };

    virtual ~CheckOuts() = default;
    CheckOuts(const CheckOuts&) = delete;
    CheckOuts& operator=(const CheckOuts&) = delete;

    virtual void add(std::int64_t id, void* object) = 0;
    virtual bool remove(std::int64_t id, const std::function<void(void*)>& last) = 0;
    virtual bool contains(std::int64_t id) const = 0;
    /// Takes what the holding asks for, which holds nothing yet. `deadline`: none waits for ever, the smallest one not at all.
    virtual void check_out(Holding& holding, std::optional<Clock::time_point> deadline) = 0;
    virtual void check_out_later(std::span<const std::int64_t> ids, Access access, Callback callback) = 0;
    virtual void prefetch(std::span<const std::int64_t> ids) = 0;
    virtual std::vector<HeldObject> held() const = 0;
    virtual void give_back(Holding& holding) noexcept = 0;
    /// `deadline`: none waits for ever. False: the time was up, and there is no pause.
    virtual bool pause(Paused whom, std::optional<Clock::time_point> deadline) = 0;
    virtual void resume(Paused whom) noexcept = 0;
    virtual void stop() noexcept = 0;
    virtual CheckoutStatistics statistics() const = 0;

protected:
    CheckOuts() = default;
};

TAIYEN_EXPORT std::unique_ptr<CheckOuts> make_check_outs(CheckOuts::Options options);
[[noreturn]] TAIYEN_EXPORT void throw_not_checked_out(std::int64_t id);
[[noreturn]] TAIYEN_EXPORT void throw_only_shared(std::int64_t id);

}  // namespace object
}  // namespace taiyen
