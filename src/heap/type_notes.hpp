#pragma once
/// TypeNotes: what is known of the types of an open heap's named objects beyond what its entries say: fingerprints that are to replace them at a moment when the heap may be
/// changed, shapes of their types that are to be stored then, and the containers whose keys were found.
///
/// Volatile. Thread rule: safe; `write_into` changes the engine, and obeys its rule.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace taiyen::heap {

class Engine;

class TypeNotes {
public:
    /// The object's fingerprint is to become this one, which is told by programs whose types lie in memory as those of its entry do.
    void note(std::string_view name, std::string_view fingerprint);
    bool is_noted(std::string_view name, std::string_view fingerprint) const;
    /// The shape of the type with that fingerprint is to become this one, unless the heap has one that says as much by then.
    void note_shape(std::string_view fingerprint, std::string_view encoded);
    bool is_shape_noted(std::string_view fingerprint) const;
    /// The program's own shape of that type is another one than the heap keeps, which may say more: what is decided by it may be wrong.
    void doubt_shape(std::string_view fingerprint);
    bool is_shape_doubted(std::string_view fingerprint, std::string_view stored) const;
    /// Whether the shape of the type of that number, from 1 on, was compared since the heap was opened, and whether it was noted then, if it was wanted. Of types that share a place, as those of more than 1,024 do, the last one counts.
    bool is_shape_checked(std::uint32_t type) const noexcept { return type != 0 && looked_at(type).load(std::memory_order_relaxed) / 2 == type; }
    bool is_shape_settled(std::uint32_t type) const noexcept { return type != 0 && looked_at(type).load(std::memory_order_relaxed) == 2 * type + 1; }
    void set_shape_checked(std::uint32_t type) noexcept { looked_at(type).store(2 * type, std::memory_order_relaxed); }
    void set_shape_settled(std::uint32_t type) noexcept { looked_at(type).store(2 * type + 1, std::memory_order_relaxed); }
    bool are_waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }
    /// What it was written with is taken back, so it is to be written again.
    void wait_again() noexcept {
        const std::lock_guard lock(mutex_);
        waiting_.store(!fingerprints_.empty() || !shapes_.empty(), std::memory_order_release);
    }
    /// Writes what was noted since the last call, as far as there is room; false: nothing was. What undo takes back is noted again by the next process.
    bool write_into(Engine& engine) noexcept {
        if (!are_waiting()) [[likely]]
            return false;
        write_waiting(engine);
        return true;
    }

    /// Whether a name of the type of that number was added while the engine counted so many changes from outside: then its shape is there, or finds no room. Under the engine's lock, as `set_shape_kept`.
    bool is_shape_kept(std::uint32_t type, std::uint64_t outside_changes) const noexcept {
        const Kept& kept = kept_shapes_[type % kept_shapes_.size()];
        return kept.type == type && kept.outside_changes == outside_changes;
    }
    void set_shape_kept(std::uint32_t type, std::uint64_t outside_changes) noexcept {
        kept_shapes_[type % kept_shapes_.size()] = {type, outside_changes};
    }

    /// Of an engine that counts anew.
    void forget_kept() noexcept { kept_shapes_ = {}; }

    /// While it lives, shapes are not compared: a stored call is repeated on whatever the heap was when the program made it. Counts.
    class Trust {
    public:
        explicit Trust(TypeNotes& notes) noexcept : notes_(notes) { notes_.trusting_.fetch_add(1, std::memory_order_relaxed); }
        Trust(const Trust&) = delete;
        Trust& operator=(const Trust&) = delete;
        ~Trust() { notes_.trusting_.fetch_sub(1, std::memory_order_relaxed); }

    private:
        TypeNotes& notes_;
    };
    bool are_shapes_trusted() const noexcept { return trusting_.load(std::memory_order_relaxed) != 0; }

    bool was_looked_at(std::string_view name) const;
    void set_looked_at(std::string_view name);

private:
    void write_waiting(Engine& engine) noexcept;
    std::atomic<std::uint32_t>& looked_at(std::uint32_t type) noexcept { return shapes_looked_at_[type % shapes_looked_at_.size()]; }
    const std::atomic<std::uint32_t>& looked_at(std::uint32_t type) const noexcept { return shapes_looked_at_[type % shapes_looked_at_.size()]; }

    mutable std::mutex mutex_;
    std::map<std::string, std::string, std::less<>> fingerprints_;
    std::map<std::string, std::string, std::less<>> shapes_;
    std::set<std::string, std::less<>> doubted_;  ///< fingerprints
    std::set<std::string, std::less<>> looked_at_;
    std::atomic<bool> waiting_ = false;
    std::atomic<std::uint32_t> trusting_ = 0;
    std::array<std::atomic<std::uint32_t>, 1024> shapes_looked_at_{};  ///< twice the number of the type, and 1 if it is settled
    struct Kept {
        std::uint32_t type = 0;  ///< 0: none
        std::uint64_t outside_changes = 0;
    };
    std::array<Kept, 256> kept_shapes_{};
};

}  // namespace taiyen::heap
