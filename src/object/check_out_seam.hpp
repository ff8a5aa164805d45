#pragma once
/// Where tests get into the engine of check-outs: they slow a thread down (`step()`), or leave out a duty (`skips`).

#include <cstdint>

namespace taiyen::object {

/// What tests can leave out, to see that they would notice.
enum class Duty : std::uint8_t {
    none,
    wake_next,                    ///< who was woken in vain wakes the next one
    look_again,                   ///< a word is looked at again before its waiter sleeps
    go_first,                     ///< a request that was passed over goes first
    give_all_back,                ///< what was taken before one that is taken
    enter_first,                  ///< a writer enters before it looks whether there is a pause
    load_once,                    ///< the id is claimed before its object is loaded
    tell_failure,                 ///< who waits for a load learns that it failed
    wait_to_remove,               ///< until nobody has it
    compare_ids,                  ///< an entry that serves another id now
    stand_for_own_id,             ///< who stands in a queue asks for the id that its entry serves
    wake_at_stop,                 ///< who waits
    keep_order,                   ///< among those whom a pause held up
    stop_readers_behind_writers,  ///< that wait
};

struct NoSeam {
    static void step() noexcept {}
    static constexpr bool skips(Duty) noexcept { return false; }
};

}  // namespace taiyen::object
