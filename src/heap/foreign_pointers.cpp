#include "heap/foreign_pointers.hpp"

#include <algorithm>
#include <cstdio>
#include <span>

#include <taiyen/base/report.hpp>

#include "base/sentence.hpp"
#include "vm/address_space.hpp"

#include "heap/scratch.hpp"
#include "heap/word_walk.hpp"

namespace taiyen::heap {
namespace {

std::string in_hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

/// The sentence's middle: the block that the word lies in, and the named object if the block is one.
std::string place_text(const HeapCore& core, HeapOffset where, const WordUse& use) {
    const auto block = core.engine().find_block(reinterpret_cast<const void*>(core.ranges().durable + where.value));
    if (!block) return {};
    std::string text = " lies in the block of " + std::to_string(block->usable_bytes) + " bytes at offset " + in_hexadecimal(block->offset.value);
    for (const Root& root : core.engine().roots())
        if (root.object == block->offset)
            text += ", the object '" + root.name + "', at its byte " + std::to_string(where.value - block->offset.value);
    if (!use.path.empty()) text += ", in " + use.path + " (" + use.type + ")";
    return text;
}

constexpr const char* program_remedy =
    "; the next process finds it elsewhere or not at all: keep what it leads to in the heap, or end what refers to the object; if it is a number or "
    "was never set, use "
    "ForeignPointers::report";

}  // namespace

void ForeignPointerScan::Range::include(std::uintptr_t first, std::uintptr_t last) {
    if (first >= last) return;
    if (bytes == 0) {
        begin = first;
        bytes = last - first;
        return;
    }
    const std::uintptr_t end = std::max(begin + bytes, last);
    begin = std::min(begin, first);
    bytes = end - begin;
}

ForeignPointerScan::ForeignPointerScan(HeapCore& core, ProgramPointers program) : core_(core) {
    if (program != ProgramPointers::unsearched) program_.emplace(core, program == ProgramPointers::linked);
    const auto include = [&](std::uintptr_t first, std::uintptr_t last) { (first < core.ranges().durable ? below_ : above_).include(first, last); };
    const auto [first, last] = scratch_used();
    include(first, last);
    if (open_core_count() == 1) return;  // this one alone, as in most programs: no lock, no list
    visit_open_cores([&](const HeapCore& other) {
        if (&other != &core) include(other.ranges().durable, other.ranges().durable + other.durable_extent());
        return true;
    });
}

std::optional<ForeignPointer> ForeignPointerScan::find(HeapOffset offset, ByteCount length) const {
    const WordsFrom words{reinterpret_cast<const std::byte*>(core_.ranges().durable)};
    const auto sweep = [&](auto suspicious) {
        std::optional<ForeignPointer> found;
        find_word(words, offset.value, offset.value + length, suspicious, [&](std::uint64_t place, std::uint64_t value) {
            if (is_foreign({place}, value)) found = {{place}, value};
            return found.has_value();
        });
        return found;
    };
    const Range below = below_;
    const Range above = above_;
    if (below.bytes == 0 && above.bytes == 0) return std::nullopt;
    if (below.bytes == 0) return sweep([above](std::uint64_t value) { return above.holds(value); });
    if (above.bytes == 0) return sweep([below](std::uint64_t value) { return below.holds(value); });
    return sweep(
        [below, above](std::uint64_t value) { return static_cast<unsigned>(below.holds(value)) | static_cast<unsigned>(above.holds(value)); });
}

bool ForeignPointerScan::is_foreign(HeapOffset where, std::uintptr_t value) const {
    const auto* const target = reinterpret_cast<const void*>(value);
    bool points_out = is_scratch_block_start(target);
    // Without the lock: most of what passes the range test lies between the heaps.
    if (!points_out && slot_table[value >> slot_shift].load(std::memory_order_relaxed) == nullptr) return false;
    if (!points_out)
        visit_open_cores([&](const HeapCore& heap) {
            if (!in_durable(heap, target)) return true;
            points_out = &heap != &core_ && heap.is_complete() && heap.begins_block(target);
            return false;
        });
    if (!points_out) return false;
    const auto block = core_.engine().find_block(reinterpret_cast<const void*>(core_.ranges().durable + where.value));
    return block && block->content == Content::any;
}

Error ForeignPointerScan::refusal(const ForeignPointer& found, const WordUse& use) const {
    std::string text = "a pointer to memory outside the heap (" + in_hexadecimal(found.target) + ", ";
    const auto* const target = reinterpret_cast<const void*>(found.target);
    std::string owner = "volatile memory of a container outside";
    // What the program stored may be no pointer at all: two numbers side by side can look like one.
    std::string remedy = "destroy the containers outside before saving";
    visit_open_cores([&](const HeapCore& heap) {
        if (!in_durable(heap, target)) return true;
        owner = !heap.is_complete()   ? "in a heap that is being opened"
                : heap.path().empty() ? "in a volatile heap"
                                      : (heap.is_volatile() ? "in the volatile heap " : "in the heap ") + heap.path().string();
        remedy = "close that heap before saving, or move it to another address (`taiyen rebase`)";
        return false;
    });
    text += owner + ")" + place_text(core_, found.where, use);
    if (use.kind == WordUse::Kind::pointer) {
        text += "; make what it leads to in this heap, or set it to null before saving";
    } else {
        text += "; a container was moved there past its allocator: copy it instead";
        if (use.kind == WordUse::Kind::unknown)
            text += "; if it is a number that only looks like an address, " + remedy + ", or save with ForeignPointers::report";
    }
    return {errc::foreign_pointer, core_.path(), found.where.value, text};
}

void ForeignPointerScan::refuse_or_report(HeapOffset where, const Error& refusal) {
    if (core_.foreign_pointers() == ForeignPointers::refuse) throw Error(refusal);
    ++told_;
    report({errc::foreign_pointer, reinterpret_cast<const void*>(core_.ranges().durable + where.value), text_of(refusal)});
}

void ForeignPointerScan::examine(HeapOffset offset, ByteCount length) {
    if (is_idle()) return;
    // Pointer-free pages are left out; what lies between them is searched in one go.
    const std::uint64_t end = offset.value + length;
    std::uint64_t begin = offset.value;
    for (std::uint64_t at = begin; at < end;) {
        if (at < stretch_.begin.value || at >= stretch_.end.value) stretch_ = core_.engine().stretch_at({at});
        const std::uint64_t next = std::min(stretch_.end.value, end);
        if (stretch_.content == Content::pointer_free) {
            if (begin != at) search({begin}, at - begin);
            begin = next;
        }
        at = next;
    }
    if (begin != end) search({begin}, end - begin);
}

void ForeignPointerScan::search(HeapOffset offset, ByteCount length) {
    const std::uint64_t end = offset.value + length;
    for (HeapOffset from = offset; found_.size() != looked_up_max + told_max && from.value < end;) {
        const auto found = find(from, end - from.value);
        if (!found) break;
        found_.push_back(*found);
        from.value = found->where.value + word_bytes;
    }
    if (program_) program_->look_at(offset, length);
}

void ForeignPointerScan::finish() {
    const std::vector<ProgramAudit::Finding> of_program = program_ ? program_->findings() : std::vector<ProgramAudit::Finding>();
    std::vector<HeapOffset> words;
    for (const ProgramAudit::Finding& found : of_program) words.push_back(found.where);
    for (const ForeignPointer& found : found_) words.push_back(found.where);
    if (words.empty()) return;
    // Who has them reported goes on with them anyway: then nothing is looked up.
    std::vector<WordUse> uses;
    if (core_.foreign_pointers() == ForeignPointers::refuse) uses = core_.uses_of(std::span(words).first(std::min(words.size(), looked_up_max)));
    uses.resize(words.size());
    for (std::size_t i = 0; i != found_.size() && told_ != told_max; ++i) {
        const WordUse& use = uses[of_program.size() + i];
        if (use.kind != WordUse::Kind::number) refuse_or_report(found_[i].where, refusal(found_[i], use));
    }
    for (std::size_t i = 0; i != of_program.size() && told_ != told_max; ++i) {
        const ProgramAudit::Finding& found = of_program[i];
        if (uses[i].kind == WordUse::Kind::number && found.count == 1) continue;  // of several nobody knows what the others are
        const std::string others = found.count == 1 ? "" : " and " + std::to_string(found.count - 1) + " others in blocks of that size";
        refuse_or_report(found.where,
                         {errc::foreign_pointer, core_.path(), found.where.value,
                          "a pointer to the program's own memory (" + in_hexadecimal(found.target) + ", " + program_->describe(found.target) + ")" +
                              place_text(core_, found.where, uses[i]) + others + program_remedy});
    }
}

void check_made(const HeapCore& core, ObjectBytes object, std::string_view name, std::span<const ObjectBytes> sources) {
    if (core.is_volatile()) return;  // it ends with the process, as what it points to
    const auto words_of = [](const ObjectBytes& bytes) { return WordsFrom{static_cast<const std::byte*>(bytes.begin)}; };
    const auto was_copied = [&](std::uint64_t value) {
        return std::any_of(sources.begin(), sources.end(), [&](const ObjectBytes& source) {
            return find_word(words_of(source), 0, source.count, [&](std::uint64_t word) { return word == value; }, [](auto, auto) { return true; });
        });
    };
    std::optional<ProgramMemory> memory;
    find_word(words_of(object), 0, object.count, ProgramMemory::may_hold, [&](std::uint64_t at, std::uint64_t value) {
        std::byte there;  // nearly always nothing: the list of mappings is long
        if (was_copied(value) || !vm::try_copy(reinterpret_cast<const void*>(value), &there, 1)) return false;
        if (!memory) memory.emplace();
        if (!memory->holds(value)) return false;
        const std::string what = name.empty() ? "an object of " + std::to_string(object.count) + " bytes" : "the object '" + std::string(name) + "'";
        const Error refusal(errc::foreign_pointer, core.path(),
                            what + " would hold a pointer to the program's own memory at its byte " + std::to_string(at) + " (" +
                                in_hexadecimal(value) + ", " + memory->describe(value) + ")" + program_remedy);
        if (core.foreign_pointers() == ForeignPointers::refuse) throw Error(refusal);
        report({errc::foreign_pointer, static_cast<const std::byte*>(object.begin) + at, text_of(refusal)});
        return true;
    });
}

}  // namespace taiyen::heap
