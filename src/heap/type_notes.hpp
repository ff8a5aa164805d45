#pragma once
/// TypeNotes: what is known of the types of an open heap's named objects beyond what its entries say: fingerprints that are to replace them at a moment when the heap may be
/// changed, and the containers whose keys were found.
///
/// Volatile. Thread rule: safe; `write_into` changes the engine, and obeys its rule.

#include <atomic>
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
    /// Writes what was noted since the last call, as far as there is room. What is taken back with what it is written with is noted again by the next process.
    void write_into(Engine& engine) noexcept {
        if (waiting_.load(std::memory_order_acquire)) [[unlikely]]
            write_waiting(engine);
    }

    bool was_looked_at(std::string_view name) const;
    void set_looked_at(std::string_view name);

private:
    void write_waiting(Engine& engine) noexcept;

    mutable std::mutex mutex_;
    std::map<std::string, std::string, std::less<>> fingerprints_;
    std::set<std::string, std::less<>> looked_at_;
    std::atomic<bool> waiting_ = false;
};

}  // namespace taiyen::heap
