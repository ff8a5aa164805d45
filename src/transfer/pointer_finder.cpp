#include "transfer/pointer_finder.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "heap/core.hpp"
#include "heap/held_blocks.hpp"
#include "store/header.hpp"
#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {
namespace {

/// The type's name as people write it; empty: it is too long to be told.
std::string readable(const std::string& fingerprint) {
    const std::string mangled = fingerprint.substr(0, fingerprint.find(' '));
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
    return name ? name.get() : std::string();
}

/// Whether an argument of the template that begins at `at` shows a pointer.
bool shows_pointer(const std::string& name, std::size_t at) {
    int depth = 0;
    for (std::size_t i = at; i < name.size(); ++i) {
        depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
        if (depth == 0) return false;
        if (name[i] == '*') return true;
    }
    return false;
}

/// Whether a type's name shows a hash of pointers: `hash<X*>`, also within pairs and the like.
bool hashes_addresses(const std::string& fingerprint) {
    const std::string name = readable(fingerprint);
    if (name.empty()) return fingerprint.find("4hashIP") != std::string::npos;  // cut, as very long names are
    for (std::size_t at = name.find("hash<"); at != std::string::npos; at = name.find("hash<", at + 1)) {
        if (shows_pointer(name, at + 4)) return true;
    }
    return false;
}

}  // namespace

void walk_named(const HeapView& heap, const DeclaredTypes& types, RebaseReport& report, PointerWalk::State& state,
                const std::function<void(std::uint64_t, std::uint64_t)>& progress, std::vector<std::string>* undeclared) {
    PointerWalk walk(state);
    std::vector<heap::Root> roots = heap.engine.roots();
    std::sort(roots.begin(), roots.end(), [](const heap::Root& a, const heap::Root& b) { return a.name < b.name; });
    for (std::size_t i = 0; i < roots.size(); ++i) {
        const heap::Root& root = roots[i];
        if (heap::HeldBlocks::is_entry(root)) continue;
        const DeclaredTypes::Entry* const type = types.find(root.fingerprint);
        if (type == nullptr || (type->bytes != 0 && root.count > root.bytes / type->bytes)) {
            if (undeclared != nullptr) {
                undeclared->push_back(root.name);
                continue;
            }
            throw Error(errc::type_mismatch, heap.path,
                        "the type of '" + root.name + "' is not declared: " + readable(root.fingerprint) +
                            "; add it (DeclaredTypes::add), or move the heap conservatively");
        }
        const bool before_hashed = std::exchange(state.hashed, false);
        const bool before_ordered = std::exchange(state.ordered, false);
        state.name = root.name;
        const auto address = reinterpret_cast<std::byte*>(heap.base + root.object.value);
        if (state.room_at(root.object.value) < root.bytes)
            throw Error(errc::corrupt, heap.path, root.object.value,
                        "the named object '" + root.name + "' lies in no live block; run 'taiyen verify'");
        walk.reach(address);
        for (std::uint64_t n = 0; n < root.count; ++n) type->step(address + n * type->bytes, walk);
        state.finish(walk);
        if (state.hashed) report.hashed_by_address.push_back(root.name);
        if (state.ordered) report.ordered_by_address.push_back(root.name);
        state.hashed = state.hashed || before_hashed;
        state.ordered = state.ordered || before_ordered;
        if (progress) progress(i + 1, roots.size());
    }
}

std::string hexadecimal(std::uintptr_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

ByteCount HeapView::range_bytes() const { return capacity; }

FoundPointers find_pointers(const HeapView& heap, const PointerOptions& options, RebaseReport& report,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    FoundPointers found;
    if (options.types.empty()) {
        auto words = std::make_unique<RelocationWords>(heap);
        found.pages = words->find(report, options.listed_max, progress);
        found.finder = std::move(words);
        for (const heap::Root& root : heap.engine.roots()) {
            if (hashes_addresses(root.fingerprint)) report.hashed_by_address.push_back(root.name);
        }
        std::sort(report.hashed_by_address.begin(), report.hashed_by_address.end());
        return found;
    }
    auto places = std::make_unique<PointerPlaces>(heap);
    PointerWalk::State state(heap, *places, report, options.listed_max);
    report.by_declared_types = true;
    walk_named(heap, options.types, report, state, progress);
    heap.engine.for_each_block([&](const heap::Block& block) {
        ++report.live_blocks;
        report.live_bytes += block.usable_bytes;
        report.unreached_blocks += state.reached.test(block.offset.value) ? 0 : 1;
        return true;
    });
    found.pages = places->pages();
    report.pages_changed = found.pages.size();
    for (const PointerFinder::Page& page : found.pages) report.pointers += page.pointers;
    found.reached = std::move(state.order);
    found.places = places.get();
    found.finder = std::move(places);
    return found;
}

void refuse_ambiguous(const RebaseReport& report, const PointerOptions& options, const std::filesystem::path& path) {
    if (options.refuse_ambiguous && report.ambiguous_words != 0)
        throw Error(errc::foreign_pointer, path, report.ambiguous.empty() ? Error::no_offset : report.ambiguous[0].offset,
                    std::to_string(report.ambiguous_words) +
                        " words lie in the heap's range of addresses and point to no live block; look at them in a dry run, or allow them");
}

void refuse_keys(const RebaseReport& report, const PointerOptions& options, bool one_by_one, const std::filesystem::path& path) {
    if (options.accept_hashed_by_address) return;
    if (!report.hashed_by_address.empty())
        throw Error(errc::type_mismatch, path,
                    "'" + report.hashed_by_address[0] +
                        "' hashes pointers: at another address its elements would not be found; accept that (accept_hashed_by_address) and insert "
                        "them again, or leave the heap where it is");
    if (one_by_one && !report.ordered_by_address.empty())
        throw Error(errc::type_mismatch, path,
                    "'" + report.ordered_by_address[0] +
                        "' orders pointers: its elements would be in another order where blocks have moved against one another; accept that "
                        "(accept_hashed_by_address) and insert them again, or move the heap as a whole");
}

void check_place(std::uintptr_t to, ByteCount capacity, const std::filesystem::path& path) {
    if (to != anywhere && !store::is_base(to, capacity))
        throw Error(errc::invalid_argument, path,
                    "a heap can't lie at " + hexadecimal(to) + ": its address is a multiple of 2 GiB, and it must end below 128 TiB");
}

std::uintptr_t within_slot(std::uintptr_t from, const PointerOptions& pointers) {
    return pointers.types.empty() ? from % heap::slot_bytes : heap::base_alignment;
}

void check_distance(std::uintptr_t from, std::uintptr_t to, const PointerOptions& pointers, const std::filesystem::path& path) {
    if (pointers.types.empty() && (to - from) % heap::slot_bytes != 0)
        throw Error(errc::invalid_argument, path,
                    "where pointers are guessed a heap moves by multiples of 4 GiB, so not from " + hexadecimal(from) + " to " + hexadecimal(to) +
                        "; choose another address, or declare the types of its objects");
}

}  // namespace taiyen::transfer
