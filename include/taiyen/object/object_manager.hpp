#pragma once
/// ObjectManager: many threads work on many objects; each checks out the ones it needs, all of them or none, to change them alone or to read them with others.
///
///   taiyen::ObjectManager<Part> parts({.load = [&](std::int64_t id) { return find_part(id); }});
///   {
///       auto both = parts.checkout({17, 4711});                          // waits until it has both
///       std::swap(both.edit(17).place, both.edit(4711).place);
///   }                                                                    // given back, also by an exception
///   auto some = parts.checkout(ids, taiyen::Access::shared);             // beside other readers
///   if (!some) complain(some.missing());                                 // ids that nobody knows: reported, nothing is held
///   auto quiet = parts.pause();                                          // no writer is at work now, and none begins
///   heap.snapshot();
///
/// The manager knows where objects are; they lie in a heap, or anywhere. It neither makes nor destroys them.
///
/// (I1) All or none. A request holds nothing while it waits: it takes its objects in ascending order, each by one atomic step, and gives them back at the first one that is taken. So
///      no request waits for a waiting one, and requests can't deadlock, whatever they ask for. A thread that holds objects and *waits* for others can still wait for itself, or
///      for another one like it: check out everything at once, or use try_checkout.
/// (I2) A waiting request stands in one queue, that of the object that was taken, and its thread sleeps. Giving that object back wakes the first request there, or all readers if the first is a reader.
///      A request that was woken and finds another object taken wakes the next one in its stead, and then joins the queue there.
/// (I3) Running threads may overtake sleeping ones, which keeps processors busy, but not for ever: a request that was woken in vain several times, or waited longer than `patience`, goes first. It
///      reserves all its objects: those that have one finish, nobody else gets one, and it takes all of them when the last is free. One request at a time goes first, in the order of asking, so that this can't
///      lock up either.
/// (I4) An object that isn't there is loaded by one caller, which holds nothing meanwhile; others that ask for it wait for that. What the loader throws all of them get; the next request tries again.
/// Memory: 51 to 102 bytes for each object and its id if their number was announced (`objects`), up to twice as much and a bit if the manager has grown to it; a waiting request lies on its thread's stack. Costs: for each object one compare-and-exchange and one atomic subtraction; two more atomic
/// operations for a request that is exclusive, one for a shared one; no system call unless somebody waits.
/// Thread rule: safe, the destructor excepted.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <taiyen/object/check_outs.hpp>

namespace taiyen {

/// Objects that are checked out; gives them back when it dies. May move to another thread. Thread rule: one thread at a time.
template <class Object>
class Checkout {
public:
    Checkout() = default;
    explicit Checkout(object::Holding holding) noexcept : holding_(std::move(holding)) {}
    /// ObjectManager's check-outs are made where they stay.
    Checkout(object::CheckOuts& engine, std::span<const std::int64_t> ids, Access access,
             std::optional<object::CheckOuts::Clock::time_point> deadline)
        : holding_(ids, access) {
        engine.check_out(holding_, deadline);
    }

    /// Whether the objects are held; else `missing()` says which ones don't exist, or the time was up if it says nothing.
    explicit operator bool() const noexcept { return holding_.holds(); }
    /// How many objects are held.
    std::size_t size() const noexcept { return holding_.holds() ? holding_.items().size() : 0; }
    Access access() const noexcept { return holding_.access(); }
    /// Ids that were asked for and don't exist, ascending.
    const std::vector<std::int64_t>& missing() const noexcept { return holding_.missing(); }

    /// Throws: Error{invalid_argument}: it isn't held.
    const Object& get(std::int64_t id) const { return object(id); }
    /// To be changed. Throws: Error{invalid_argument}: it isn't held, or only shared.
    Object& edit(std::int64_t id) {
        Object& found = object(id);
        if (access() != Access::exclusive) object::throw_only_shared(id);
        return found;
    }
    bool holds(std::int64_t id) const noexcept { return holding_.holds() && holding_.find(id) != nullptr; }
    /// `visit(id, object)` for each of them in ascending order.
    template <class Visit>
    void for_each(Visit&& visit) const {
        if (!holding_.holds()) return;
        for (const object::Holding::Item& item : holding_.items()) visit(item.id, std::as_const(*static_cast<Object*>(item.object)));
    }
    /// The same, to be changed. Throws: Error{invalid_argument}: they are only shared.
    template <class Visit>
    void edit_each(Visit&& visit) {
        if (!holding_.holds()) return;
        for (const object::Holding::Item& item : holding_.items()) {
            if (access() != Access::exclusive) object::throw_only_shared(item.id);
            visit(item.id, *static_cast<Object*>(item.object));
        }
    }
    /// Gives the objects back; nothing happens if none are held.
    void release() noexcept { holding_.release(); }

private:
    Object& object(std::int64_t id) const {
        void* const found = holding_.holds() ? holding_.find(id) : nullptr;
        if (found == nullptr) object::throw_not_checked_out(id);
        return *static_cast<Object*>(found);
    }

    object::Holding holding_;
};

template <class Object>
class ObjectManager {
public:
    using Id = std::int64_t;
    using Ids = std::span<const Id>;
    using Clock = object::CheckOuts::Clock;

    /// Whom the manager asks for objects, and how patient it is.
    struct Options {
        /// Brings an object that the manager doesn't know; null: there is none of that id. Runs on the thread that asks first, which holds nothing meanwhile. It must not check out
        /// what is being loaded. Empty: only objects that were added are there.
        std::function<Object*(Id)> load = {};
        /// The same for all objects that a request lacks, at once: sets one pointer for each id, ascending; those that it leaves null there aren't. If it throws, none of them were loaded. Used in the place of `load` if both are there.
        std::function<void(Ids, std::span<Object*>)> load_many = {};
        std::chrono::nanoseconds patience{1'000'000};  ///< until a waiting request goes first
        unsigned attempts = 8;                         ///< until a waiting request goes first: times that it was woken in vain
        std::size_t objects = 0;                       ///< that are expected; only saves growing
    };

    /// No exclusive check-out exists while one of these lives, and none at all if it keeps everybody out.
    class Pause {
    public:
        /// Waits until then at most; nothing: for ever.
        Pause(object::CheckOuts& manager, Paused whom, std::optional<Clock::time_point> deadline)
            : paused_(manager.pause(whom, deadline) ? &manager : nullptr), whom_(whom) {}
        Pause(Pause&& from) noexcept : paused_(std::exchange(from.paused_, nullptr)), whom_(from.whom_) {}
        Pause& operator=(Pause&&) = delete;
        ~Pause() { resume(); }
        /// Whether it holds; false: the time was up before, or it was ended.
        explicit operator bool() const noexcept { return paused_ != nullptr; }
        /// Grants what queued meanwhile in the order of asking.
        void resume() noexcept {
            if (object::CheckOuts* const paused = std::exchange(paused_, nullptr)) paused->resume(whom_);
        }

    private:
        object::CheckOuts* paused_;
        Paused whom_;
    };

    ObjectManager() : ObjectManager(Options{}) {}
    explicit ObjectManager(Options options) : ObjectManager(object::make_check_outs(erased(std::move(options)))) {}
    /// Over an engine of one's own.
    explicit ObjectManager(std::unique_ptr<object::CheckOuts> engine) : engine_(std::move(engine)) {}
    /// Stops. Requires: nothing is checked out, no other thread uses the manager, and this is no callback of its own.
    ~ObjectManager() = default;
    ObjectManager(const ObjectManager&) = delete;
    ObjectManager& operator=(const ObjectManager&) = delete;

    /// Makes an object known. Throws: Error{already_exists | stopped}, std::bad_alloc.
    void add(Id id, Object& object) { engine_->add(id, &object); }
    /// Forgets an object once nobody has it checked out; `last(object)` is called before anybody could load it again. False: there was none. What becomes of the object is the
    /// caller's business. Throws: Error{stopped}, and what `last` throws: then it stays.
    template <class Last>
    bool remove(Id id, Last&& last) {
        return engine_->remove(id, [&](void* object) { last(*static_cast<Object*>(object)); });
    }
    bool remove(Id id) {
        return engine_->remove(id, [](void*) {});
    }
    /// Whether the manager knows it; loads nothing.
    bool contains(Id id) const { return engine_->contains(id); }

    /// Waits until all objects are there and free. Ids may come in any order, and more than once. Ids that don't exist are reported by the result, which holds nothing then.
    /// Throws: Error{stopped}, std::bad_alloc, what the loader throws.
    [[nodiscard]] Checkout<Object> checkout(Ids ids, Access access = Access::exclusive) {
        return Checkout<Object>(*engine_, ids, access, std::nullopt);
    }
    [[nodiscard]] Checkout<Object> checkout(std::initializer_list<Id> ids, Access access = Access::exclusive) {
        return checkout(Ids(ids.begin(), ids.size()), access);
    }
    [[nodiscard]] Checkout<Object> checkout(Id id, Access access = Access::exclusive) { return checkout(Ids(&id, 1), access); }

    /// The same, without waiting for anybody (but the loader, if this thread has to run it): holds nothing if something is taken.
    [[nodiscard]] Checkout<Object> try_checkout(Ids ids, Access access = Access::exclusive) {
        return Checkout<Object>(*engine_, ids, access, Clock::time_point::min());
    }
    [[nodiscard]] Checkout<Object> try_checkout(std::initializer_list<Id> ids, Access access = Access::exclusive) {
        return try_checkout(Ids(ids.begin(), ids.size()), access);
    }
    [[nodiscard]] Checkout<Object> try_checkout(Id id, Access access = Access::exclusive) { return try_checkout(Ids(&id, 1), access); }

    /// The same, waiting until then at most: holds nothing afterwards.
    [[nodiscard]] Checkout<Object> checkout_until(Ids ids, Clock::time_point deadline, Access access = Access::exclusive) {
        return Checkout<Object>(*engine_, ids, access, deadline);
    }
    [[nodiscard]] Checkout<Object> checkout_for(Ids ids, std::chrono::nanoseconds time, Access access = Access::exclusive) {
        return checkout_until(ids, end_of(time), access);
    }
    [[nodiscard]] Checkout<Object> checkout_for(std::initializer_list<Id> ids, std::chrono::nanoseconds time, Access access = Access::exclusive) {
        return checkout_for(Ids(ids.begin(), ids.size()), time, access);
    }

    /// Calls `callback(Checkout<Object>, std::exception_ptr)` exactly once: at once, on this thread, or later, on the thread that gives the last object back; with an error instead of objects if
    /// the loader throws or the manager is stopped. The callback must neither throw nor wait for check-outs. The loader may run on that thread, too. Throws: std::bad_alloc.
    template <class Callback>
    void checkout_async(Ids ids, Access access, Callback&& callback) {
        engine_->check_out_later(ids, access,
                                 [callback = std::forward<Callback>(callback)](object::Holding&& holding, std::exception_ptr error) mutable {
                                     callback(Checkout<Object>(std::move(holding)), std::move(error));
                                 });
    }
    /// The same as a future.
    [[nodiscard]] std::future<Checkout<Object>> checkout_later(Ids ids, Access access = Access::exclusive) {
        auto promise = std::make_shared<std::promise<Checkout<Object>>>();
        std::future<Checkout<Object>> result = promise->get_future();
        checkout_async(ids, access, [promise](Checkout<Object> checkout, std::exception_ptr error) {
            if (error)
                promise->set_exception(std::move(error));
            else
                promise->set_value(std::move(checkout));
        });
        return result;
    }
    [[nodiscard]] std::future<Checkout<Object>> checkout_later(std::initializer_list<Id> ids, Access access = Access::exclusive) {
        return checkout_later(Ids(ids.begin(), ids.size()), access);
    }

    /// Loads those of the objects that the manager doesn't know, on a thread of its own, and returns at once. Requests for them wait until they are there; `checkout_async` and `checkout_later` never run the loader then, on whatever
    /// thread. What the loader throws those requests get; without any it is forgotten, and the next request tries again.
    /// Throws: Error{stopped | too_many_threads}, std::bad_alloc. Complexity: a look-up for each.
    void prefetch(Ids ids) { engine_->prefetch(ids); }
    void prefetch(std::initializer_list<Id> ids) { prefetch(Ids(ids.begin(), ids.size())); }
    /// What is checked out at this moment, by ascending id; others may take and give back meanwhile, so it is for looking at, not for deciding.
    /// Complexity: linear in the objects that the manager knows. Throws: std::bad_alloc.
    [[nodiscard]] std::vector<HeldObject> held() const { return engine_->held(); }

    /// Returns when all exclusive check-outs were given back, with `Paused::everybody` the shared ones, too; new ones queue until the result dies. Pauses may overlap. Requires: this thread has none itself.
    /// Complexity: with everybody a look at each object that the manager knows, again and again while somebody reads.
    [[nodiscard]] Pause pause(Paused whom = Paused::writers) { return Pause(*engine_, whom, std::nullopt); }
    /// The same, waiting until then at most. Look whether the result holds: `if (const auto quiet = parts.pause_for(1s)) …`.
    [[nodiscard]] Pause pause_until(Clock::time_point deadline, Paused whom = Paused::writers) { return Pause(*engine_, whom, deadline); }
    [[nodiscard]] Pause pause_for(std::chrono::nanoseconds time, Paused whom = Paused::writers) { return pause_until(end_of(time), whom); }
    /// From now on requests fail with Error{stopped}; so do those that wait. What is checked out stays so.
    void stop() noexcept { engine_->stop(); }
    CheckoutStatistics statistics() const { return engine_->statistics(); }

private:
    static Clock::time_point end_of(std::chrono::nanoseconds time) {
        const typename Clock::time_point now = Clock::now();
        return time < Clock::time_point::max() - now ? now + time : Clock::time_point::max();
    }
    static object::CheckOuts::Options erased(Options options) {
        object::CheckOuts::Options result;
        if (options.load)
            result.load = [load = std::move(options.load)](Id id) -> void* { return const_cast<void*>(static_cast<const volatile void*>(load(id))); };
        if (options.load_many) {
            result.load_many = [load = std::move(options.load_many)](std::span<const Id> ids, std::span<void*> objects) {
                std::vector<Object*> found(ids.size(), nullptr);
                load(ids, found);
                for (std::size_t i = 0; i < ids.size(); ++i) objects[i] = const_cast<void*>(static_cast<const volatile void*>(found[i]));
            };
        }
        result.patience = options.patience;
        result.attempts = options.attempts;
        result.objects = options.objects;
        return result;
    }

    std::unique_ptr<object::CheckOuts> engine_;
};

}  // namespace taiyen
