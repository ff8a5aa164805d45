#include "transfer/pointer_finder.hpp"

#include <algorithm>
#include <cstdio>

#include "base/demangle.hpp"
#include "base/text.hpp"
#include "heap/core.hpp"
#include "store/header.hpp"
#include "transfer/container_places.hpp"
#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {
namespace {

/// The type's name as people write it; empty: it is too long to be told.
std::string readable(const std::string& fingerprint) {
    return demangled(fingerprint.substr(0, fingerprint.find(' ')).c_str()).value_or(std::string());
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
    for (std::size_t at = name.find("hash<"); at != std::string::npos; at = name.find("hash<", at + 1))
        if (shows_pointer(name, at + 4)) return true;
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
        const DeclaredTypes::Entry* const type = types.find(root.fingerprint);
        if (type == nullptr || (type->bytes != 0 && root.count > root.bytes / type->bytes)) {
            if (undeclared != nullptr) {
                undeclared->push_back(root.name);
                continue;
            }
            throw Error(errc::type_mismatch, heap.path,
                        "the type of '" + root.name + "' is not declared: " + readable(root.fingerprint) +
                            "; add it (DeclaredTypes::add), or let what nobody declares be guessed (PointerOptions::conservative)");
        }
        const bool before_hashed = std::exchange(state.hashed, false);
        const bool before_ordered = std::exchange(state.ordered, false);
        state.name = root.name;
        state.values = 0;
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

namespace {

/// Returns how many of them may hold pointers.
std::uint64_t count_unreached(const HeapView& heap, const PointerWalk::State& state, RebaseReport& report) {
    std::uint64_t with_pointers = 0;
    heap.engine.for_each_block([&](const heap::Block& block) {
        if (state.reached.test(block.offset.value)) return true;
        ++report.unreached_blocks;
        if (block.content != heap::Content::pointer_free) ++with_pointers;
        return true;
    });
    return with_pointers;
}

/// Words of which declared types know what they are.
PlaceBits words_of(const HeapView& heap, const PointerWalk::State::Coverage& known) {
    PlaceBits words(heap.engine.extent());
    const auto add = [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t place = round_up(begin, PlaceBits::place_bytes); place + PlaceBits::place_bytes <= end; place += PlaceBits::place_bytes)
            words.set(place);
    };
    for (const auto& part : known.parts) add(part.begin, part.end);
    heap.engine.for_each_block([&](const heap::Block& block) {
        if (known.whole.test(block.offset.value)) add(block.offset.value, block.offset.value + block.usable_bytes);
        return true;
    });
    return words;
}

/// Tells of the words that nothing proves to be pointers, and that change.
void tell_guesses(const HeapView& heap, const PointerOptions& options, const PointerPlaces& places, const PlaceBits* known, RebaseReport& report) {
    if (report.new_address == report.old_address) return;
    const ContainerPlaces containers(heap, places);
    std::vector<heap::Root> roots = heap.engine.roots();
    std::sort(roots.begin(), roots.end(), [](const heap::Root& a, const heap::Root& b) { return a.object.value < b.object.value; });
    const auto name_at = [&](std::uint64_t place) {
        const auto behind =
            std::upper_bound(roots.begin(), roots.end(), place, [](std::uint64_t at, const heap::Root& b) { return at < b.object.value; });
        if (behind == roots.begin()) return std::string();
        const heap::Root& root = *std::prev(behind);
        return place - root.object.value < root.bytes ? root.name : std::string();
    };
    heap.engine.for_each_block([&](const heap::Block& block) {
        const std::uint64_t begin = block.offset.value;
        places.visit(begin, begin + block.usable_bytes, [&](std::uint64_t place, std::uint64_t value, bool) {
            if ((known != nullptr && known->test(place)) || containers.has(place)) return;
            const bool is_listed = report.guessed_words++ < options.listed_max;
            if (!is_listed && !options.guessed) return;
            const GuessedWord word{place, begin, name_at(place), value, value - report.old_address + report.new_address};
            if (options.guessed) options.guessed(word);
            if (is_listed) report.guessed.push_back(word);
        });
        return true;
    });
}

/// By values, but for what declared types know.
void guess_pointers(const HeapView& heap, const PointerOptions& options, PointerPlaces& places, RebaseReport& report,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    std::optional<PlaceBits> known;
    if (!options.types.empty()) {
        PointerWalk::State state(heap, places, report, options.listed_max);
        PointerWalk::State::Coverage coverage(heap.engine.extent());
        state.coverage = &coverage;
        std::vector<std::string> undeclared;
        walk_named(heap, options.types, report, state, {}, &undeclared);
        count_unreached(heap, state, report);
        known.emplace(words_of(heap, coverage));
    }
    RelocationWords words(heap);
    words.find(places, known ? &*known : nullptr, report, options.listed_max, progress);
    for (const heap::Root& root : heap.engine.roots())
        if (options.types.find(root.fingerprint) == nullptr && hashes_addresses(root.fingerprint)) report.hashed_by_address.push_back(root.name);
    std::sort(report.hashed_by_address.begin(), report.hashed_by_address.end());
    std::sort(report.ambiguous.begin(), report.ambiguous.end(), [](const AmbiguousWord& a, const AmbiguousWord& b) { return a.offset < b.offset; });
    tell_guesses(heap, options, places, known ? &*known : nullptr, report);
}

}  // namespace

ByteCount HeapView::range_bytes() const { return capacity; }

std::optional<std::uint64_t> walk_shapes(const HeapView& heap, const DeclaredTypes& types, RebaseReport& report, PointerWalk::State& state,
                                         const Progress& progress) {
    PointerWalk::State::Coverage coverage(heap.engine.extent());
    state.coverage = &coverage;
    walk_named(heap, types, report, state, progress);
    state.coverage = nullptr;
    const PlaceBits known = words_of(heap, coverage);
    for (const std::uint64_t begin : state.order) {
        const std::optional<heap::Block> block = heap.find_block(begin);
        if (!block || coverage.whole.test(begin) || block->content == heap::Content::pointer_free) continue;
        heap::for_each_word(heap::WordsFrom{heap.bytes}, begin, begin + block->usable_bytes, [&](std::uint64_t place, std::uint64_t value) {
            if (known.test(place) || !state.words.is_pointer(value)) return;
            throw Error(
                errc::type_mismatch, heap.path, place,
                joined({"a pointer leads to the block of ", std::to_string(block->usable_bytes), " bytes at byte ", std::to_string(begin),
                        ", which holds more than the shape of what it leads to tells, and here what may be a pointer, as an array does; declare the "
                        "types of its objects (PointerOptions::types), or accept guesses (PointerOptions::conservative, 'taiyen … "
                        "--conservative')"}));
        });
    }
    const auto is_either = [&](std::uint64_t place) {
        const auto begins = heap.find_block(place);
        const auto ends = place == 0 ? std::nullopt : heap.find_block(place - 1);
        return begins && ends && begins->offset.value == place && ends->offset.value + ends->usable_bytes == place;
    };
    const auto either = std::ranges::find_if(coverage.fixed, is_either);
    return either == coverage.fixed.end() ? std::nullopt : std::optional(*either);
}

FoundPointers find_by_types(const HeapView& heap, const PointerOptions& options, RebaseReport& report, bool are_shapes, const Progress& progress) {
    FoundPointers found;
    found.places = std::make_unique<PointerPlaces>(heap);
    heap.engine.for_each_block([&](const heap::Block& block) {
        ++report.live_blocks;
        report.live_bytes += block.usable_bytes;
        return true;
    });
    report.by_declared_types = !options.types.empty();
    if (report.by_declared_types && !options.conservative) {
        PointerWalk::State state(heap, *found.places, report, options.listed_max);
        if (are_shapes)
            found.either = walk_shapes(heap, options.types, report, state, progress);
        else
            walk_named(heap, options.types, report, state, progress);
        found.held_outside = count_unreached(heap, state, report);
        found.reached = std::move(state.order);
    } else {
        guess_pointers(heap, options, *found.places, report, progress);
    }
    for (const PointerPlaces::Page& page : found.places->pages()) {
        ++report.pages_changed;
        report.pointers += page.pointers;
    }
    return found;
}

namespace {

/// What shapes tell counts as declared.
PointerOptions with_shapes(PointerOptions options, const ShapeTypes& shapes) {
    if (!options.by_shapes) return options;
    const bool is_wanted = shapes.are_all() || options.conservative || !options.types.empty();
    if (is_wanted) options.types = shapes.types();
    return options;
}

bool has_blocks(const heap::Engine& engine) {
    bool has_any = false;
    engine.for_each_block([&](const heap::Block&) {
        has_any = true;
        return false;
    });
    return has_any;
}

}  // namespace

PointerSearch::PointerSearch(const HeapView& heap, const PointerOptions& given)
    : heap_(heap), given_(given), shapes_(heap.engine, given.types), are_shapes_(given.by_shapes && shapes_.has_any()),
      options_(with_shapes(given, shapes_)) {}

bool PointerSearch::is_exact() const { return (!options_.types.empty() && !options_.conservative) || !has_blocks(heap_.engine); }

std::string PointerSearch::why_not() const {
    if (!given_.by_shapes) return {};
    return shapes_.are_all() ? "none of its objects has a name" : shapes_.unknown();
}

void PointerSearch::refuse_guessing() const {
    if (has_blocks(heap_.engine)) transfer::refuse_guessing(options_, heap_.path, why_not());
}

FoundPointers PointerSearch::find(RebaseReport& report, const Progress& progress) const {
    const RebaseReport before = report;
    try {
        return find_by_types(heap_, options_, report, are_shapes_, progress);
    } catch (const Error& error) {
        if (error.code() != errc::type_mismatch || !given_.conservative || !are_shapes_) throw;
    }
    report = before;
    return find_by_types(heap_, given_, report, false, progress);  // a container isn't what its shape says: it is guessed, as was asked for
}

void refuse_guessing(const PointerOptions& options, const std::filesystem::path& path, std::string_view why) {
    if (!options.types.empty() || options.conservative) return;
    throw Error(errc::type_mismatch, path,
                joined({"its pointers change where it goes to another address, and only guesses can tell them from numbers of the same value",
                        why.empty() ? "" : ", since ", why,
                        "; declare the types of its objects (PointerOptions::types), or accept guesses (PointerOptions::conservative, 'taiyen … "
                        "--conservative')"}));
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

void check_place(std::uintptr_t address, ByteCount capacity, const std::filesystem::path& path) {
    if (address != anywhere && !store::is_base(address, capacity))
        throw Error(
            errc::invalid_argument, path,
            "a heap can't lie at " + hexadecimal(address) + ": its address is a multiple of 2 GiB from 4 GiB on, and it must end below 128 TiB");
}

namespace {

bool are_guessed(const PointerOptions& pointers) { return pointers.types.empty() || pointers.conservative; }

}  // namespace

std::uintptr_t within_slot(std::uintptr_t from, const PointerOptions& pointers) {
    return are_guessed(pointers) ? from % heap::slot_bytes : heap::base_alignment;
}

void check_distance(std::uintptr_t from, std::uintptr_t to, const std::filesystem::path& path) {
    if ((to - from) % heap::slot_bytes != 0)
        throw Error(errc::invalid_argument, path,
                    "where pointers are guessed a heap moves by multiples of 4 GiB, so not from " + hexadecimal(from) + " to " + hexadecimal(to) +
                        "; choose another address, or declare the types of its objects");
}

}  // namespace taiyen::transfer
