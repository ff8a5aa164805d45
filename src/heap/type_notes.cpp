#include "heap/type_notes.hpp"

#include <exception>

#include <taiyen/heap/detail/access.hpp>

#include "heap/engine.hpp"
#include "shape/encoding.hpp"

namespace taiyen::heap {

void TypeNotes::note(std::string_view name, std::string_view fingerprint) {
    const std::lock_guard lock(mutex_);
    fingerprints_.insert_or_assign(std::string(name), std::string(fingerprint));
    waiting_.store(true, std::memory_order_release);
}

void TypeNotes::note_shape(std::string_view fingerprint, std::string_view encoded) {
    const std::lock_guard lock(mutex_);
    shapes_.insert_or_assign(std::string(fingerprint), std::string(encoded));
    waiting_.store(true, std::memory_order_release);
}

bool TypeNotes::is_noted(std::string_view name, std::string_view fingerprint) const {
    const std::lock_guard lock(mutex_);
    const auto found = fingerprints_.find(name);
    return found != fingerprints_.end() && found->second == fingerprint;
}

bool TypeNotes::is_shape_noted(std::string_view fingerprint) const {
    const std::lock_guard lock(mutex_);
    return shapes_.contains(fingerprint);
}

void TypeNotes::doubt_shape(std::string_view fingerprint) {
    const std::lock_guard lock(mutex_);
    doubted_.emplace(fingerprint);
}

bool TypeNotes::is_shape_doubted(std::string_view fingerprint, std::string_view stored) const {
    const std::lock_guard lock(mutex_);
    const auto noted = shapes_.find(fingerprint);
    return doubted_.contains(fingerprint) || (noted != shapes_.end() && noted->second != stored);
}

void TypeNotes::write_waiting(Engine& engine) noexcept {
    const std::lock_guard lock(mutex_);
    waiting_.store(false, std::memory_order_relaxed);
    for (const auto& [name, fingerprint] : fingerprints_) {
        try {
            const std::optional<Root> root = engine.find_root(name);
            // It may be another object by now.
            const TypeMatch match = root ? match_types(root->fingerprint, fingerprint) : TypeMatch::other;
            if (match == TypeMatch::unsaid || match == TypeMatch::inside) engine.retype_root(name, fingerprint);
        } catch (const std::exception&) {
            // No room: the entry stays as it is, which costs nothing but this look in each process.
        }
    }
    for (const auto& [fingerprint, encoded] : shapes_) {
        try {
            if (shape::is_wanted(encoded, engine.shape_of(fingerprint))) engine.set_shape(fingerprint, encoded);
        } catch (const std::exception&) {
            // The same.
        }
    }
}

bool TypeNotes::was_looked_at(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    return looked_at_.contains(name);
}

void TypeNotes::set_looked_at(std::string_view name) {
    const std::lock_guard lock(mutex_);
    looked_at_.emplace(name);
}

}  // namespace taiyen::heap
