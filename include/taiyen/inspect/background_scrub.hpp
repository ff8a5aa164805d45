#pragma once
/// A scrub in the background: a thread that compares the files of an open heap with their checksums, round after round, at a rate that you set, and restores what the other copy has whole.
///
/// Each page is read past the page cache, in both copies: rot is found before the other copy rots, too. What a program only reads is not proven by it at that moment (Verify::at_first_touch does that).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

class ArchiveHeap;

/// How fast a background scrub goes.
struct BackgroundScrubOptions {
    std::size_t bytes_per_second = 50'000'000;   ///< read of all files together; 0: as fast as it goes
    std::size_t piece_bytes = 256U << 10U;       ///< of each file at once, 4 KiB to 256 KiB; a save waits for one piece at most
    std::chrono::milliseconds pause{3'600'000};  ///< between two rounds
};

/// What a background scrub has done so far.
struct BackgroundScrubStats {
    std::uint64_t rounds = 0;  ///< that have ended: all pages of all files were compared
    std::uint64_t bytes_read = 0;
    std::uint64_t pages_damaged = 0;  ///< found, of pages and of checksum tables; each one once, until it is whole again
    std::uint64_t pages_healed = 0;   ///< restored from the other copy
    std::uint64_t pages_waiting = 0;  ///< of the round at hand: they are restored by the next save
    std::uint64_t pages_lost = 0;     ///< of the round at hand: no copy has them whole
    bool running = false;             ///< false: stopped, the heap is closed, or an error ended it
    std::string last_error;           ///< what ended it; empty: nothing
};

/// Scrubs a heap that is open for writing, from its construction until `stop()`, its destruction, or the end of the heap. Each finding goes to the report handler once (errc::corrupt), on its thread.
///
/// Of a heap with transactions damaged pages are restored at once, while no transaction is open; of others those of the second copy are, and those of the heap's own file by the next `snapshot()`: only then
/// nobody stores into them. Whichever page the program has changed by then is a matter of that save (see Verify::changes). Without a second copy damage is told, and nothing restored.
/// Thread rule: safe; the program goes on meanwhile, and so do saves and transactions. A save waits for one piece at most, a commit for a page that is being restored. In a forked child there is none.
class TAIYEN_EXPORT BackgroundScrub {
public:
    /// Throws: Error{closed | read_only | poisoned | forked}, std::system_error: no thread.
    explicit BackgroundScrub(ArchiveHeap& heap, const BackgroundScrubOptions& options = {});
    BackgroundScrub(BackgroundScrub&&) noexcept;
    BackgroundScrub& operator=(BackgroundScrub&&) noexcept;
    BackgroundScrub(const BackgroundScrub&) = delete;
    BackgroundScrub& operator=(const BackgroundScrub&) = delete;
    ~BackgroundScrub();

    /// Ends it after the piece at hand; on return its thread is gone.
    void stop() noexcept;
    BackgroundScrubStats stats() const;

private:
    class Thread;
    std::unique_ptr<Thread> thread_;
};

}  // namespace taiyen
