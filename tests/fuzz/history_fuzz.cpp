// Undo histories as nobody writes them: resuming, walking, applying, adding and squashing must end with a result or Error{corrupt | unsupported_version}, stay inside the history's memory and the
// heap's capacity, and take bounded time. Bytes that nobody changed give exactly the steps that were put in.
//
// An input is either a whole history (first byte odd), or a recipe: steps, edits of their bytes, and which checksums are made right again afterwards; then what is done with it.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "change/audit_shadow.hpp"
#include "change/change_set.hpp"
#include "fuzz/input.hpp"
#include "undo/history.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo;
using layout::HistoryHeader;
using layout::StepHead;
using taiyen::fuzz::Input;

constexpr ByteCount heap_bytes = 16_KiB;
constexpr ByteCount history_bytes = 32_KiB;

/// Ends exactly where the history's memory ends; aligned as pages are.
class Memory final : public HistoryMemory {
public:
    explicit Memory(ByteCount used) : words_(history_bytes / sizeof(std::uint64_t)), used_(used) {}
    std::byte* base() override { return reinterpret_cast<std::byte*>(words_.data()); }
    ByteCount bytes() const override { return used_; }
    ByteCount capacity() const override { return history_bytes; }
    void extend(ByteCount bytes) override {
        TAIYEN_CHECK(bytes <= history_bytes);
        used_ = std::max(used_, bytes);
    }

private:
    std::vector<std::uint64_t> words_;
    ByteCount used_;
};

change::ChangeSet changes(Input& input) {
    change::ChangeSet set;
    for (std::uint64_t count = 1 + input.number(1) % 3; count > 0; --count) {
        const std::uint64_t what = input.number(1);
        const HeapOffset where{input.number(2) % heap_bytes};
        const ByteCount length = std::min<ByteCount>(1 + input.number(2) % 1500, heap_bytes - where.value);
        const std::vector<std::byte> before(length, static_cast<std::byte>(what));
        const std::vector<std::byte> after(length, static_cast<std::byte>(what / 16));
        switch (what % 4) {
            case 0: set.add_zeroed_run(where, length); break;
            case 1: set.add_pages_moved({input.number(2) % (heap_bytes - length + 1)}, where, before); break;
            default: set.add_bytes(where, before, after); break;
        }
    }
    return set;
}

struct Made {
    std::string name;
    std::vector<std::byte> bytes;
};

class Program {
public:
    explicit Program(Input& input) : input_(input), memory_(std::make_unique<Memory>(0)) {}

    void whole() {
        const auto bytes = input_.bytes(history_bytes);
        memory_->extend(round_up(bytes.size(), page_bytes));
        if (!bytes.empty()) std::memcpy(memory_->base(), bytes.data(), bytes.size());
        known_ = false;
        fix(3);
        use();
    }

    void recipe() {
        UndoHistory history = UndoHistory::create(std::make_unique<Memory>(0), history_bytes, input_.number(1) % 2 == 0);
        for (std::uint64_t count = input_.number(1) % 40; count > 0 && !input_.empty(); --count) act(history);
        memory_->extend(history.memory().bytes());
        std::memcpy(memory_->base(), history.memory().base(), history.memory().bytes());
        const std::uint64_t fixes = input_.number(1);
        const std::uint64_t edits = input_.number(1) % 10;
        known_ = edits == 0;
        for (std::uint64_t i = 0; i < edits; ++i) edit();
        if (!known_) fix(fixes);  // it finds steps by their sizes, and may take what old ones have left for one
        use();
    }

private:
    bool append(UndoHistory& history) {
        const std::string name(input_.number(1) % 20, 's');
        const change::ChangeSet first = changes(input_);
        const change::ChangeSet second = changes(input_);
        const std::uint64_t how = input_.number(1);
        const Piece pieces[] = {{first.view().bytes(), false}, {second.view().bytes(), how % 2 == 0}};
        if (!history.append({.name = name, .flags = how / 2 % 2 == 0 ? 0 : layout::step_implicit, .life = how % 3, .pieces = pieces})) {
            // Nothing changed, whatever could be done again still can.
            return false;
        }
        Made made{name, {}};
        for (const Piece& piece : pieces) made.bytes.insert(made.bytes.end(), piece.changes.begin(), piece.changes.end());
        model_.resize(std::min(model_.size(), at_));
        model_.push_back(std::move(made));
        ++at_;
        return true;
    }

    /// One thing that a program does; held against the model as long as nobody has changed the bytes.
    void act(UndoHistory& history) {
        const std::uint64_t undoable = history.undoable();
        switch (input_.number(1) % 8) {
            case 0:
            case 1: {
                const auto step = history.to_undo();
                if (!step) break;
                expect(history, *step, at_ - 1);
                apply(history, *step, change::Direction::backward);
                history.step_back(*step);
                --at_;
                break;
            }
            case 2: {
                const auto step = history.to_redo();
                if (!step) break;
                expect(history, *step, at_);
                apply(history, *step, change::Direction::forward);
                history.step_forward(*step);
                ++at_;
                break;
            }
            case 3: {
                const std::uint64_t count = input_.number(1) % 4;
                if (history.redoable() != 0 || count == 0 || count > history.undoable() || !history.squash(count, "squashed")) break;
                if (!known_) break;
                Made merged{"squashed", {}};
                for (std::size_t i = at_ - count; i < at_; ++i)
                    merged.bytes.insert(merged.bytes.end(), model_[i].bytes.begin(), model_[i].bytes.end());
                model_.resize(at_ - count);
                model_.push_back(std::move(merged));
                at_ = model_.size();
                break;
            }
            case 4:
                (void)history.newest(input_.number(1));
                (void)history.cursor_id();
                break;
            case 5: look(history); break;
            default:
                append(history);
                if (known_) {
                    while (at_ > history.undoable()) {
                        model_.erase(model_.begin());
                        --at_;
                    }
                }
                break;
        }
        TAIYEN_CHECK(!known_ || (history.undoable() == at_ && history.redoable() == model_.size() - at_ && undoable <= history_bytes));
    }

    std::vector<std::byte> body(const UndoHistory& history, const StepView& step) const {
        std::vector<std::byte> all;
        for (const auto& segment : history.segments(step, heap_bytes)) {
            (void)is_call(segment);
            all.insert(all.end(), segment.bytes().begin(), segment.bytes().end());
        }
        return all;
    }
    void expect(const UndoHistory& history, const StepView& step, std::size_t index) const {
        const std::vector<std::byte> bytes = body(history, step);
        if (known_) TAIYEN_CHECK(index < model_.size() && step.name == model_[index].name && bytes == model_[index].bytes);
    }

    /// What passed the checks changes the heap's bytes, and no others.
    void apply(const UndoHistory& history, const StepView& step, change::Direction direction) {
        for (const auto& segment : history.segments(step, heap_bytes)) {
            segment.for_each(direction, [&](const change::Entry& entry) {
                if (entry.kind == change::EntryKind::procedure) {
                    TAIYEN_CHECK(!entry.name.empty());
                    return;
                }
                TAIYEN_CHECK(entry.length <= heap_bytes && entry.where.value <= heap_bytes - entry.length);
                change::write_entry(heap_.data(), entry, direction);
            });
        }
    }

    void look(const UndoHistory& history) const {
        const std::vector<UndoStep> steps = history.steps();
        if (!known_) return;
        TAIYEN_CHECK(steps.size() == model_.size());
        for (std::size_t i = 0; i < steps.size(); ++i) TAIYEN_CHECK(steps[i].name == model_[i].name && steps[i].undone == (i >= at_));
    }

    void edit() {
        struct Bytes {
            std::byte* at;
            std::size_t count;
            std::byte* data() const { return at; }
            std::size_t size() const { return count; }
        };
        Bytes bytes{memory_->base(), memory_->bytes()};
        const std::uint64_t what = input_.number(1);
        switch (what % 4) {
            case 0: {
                constexpr std::size_t fields[] = {0, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96};
                const std::size_t field = fields[what / 4 % std::size(fields)];
                input_.change(bytes, field, field == 8 || field == 12 ? 4 : 8);
                break;
            }
            case 1: input_.change(bytes, layout::first_step + input_.number(2), 8); break;
            case 2: {  // a field of a step's head
                const std::vector<std::uint64_t> steps = step_offsets();
                if (steps.empty()) break;
                constexpr std::size_t fields[] = {0, 8, 16, 24, 32, 36, 40, 44, 48, 56};
                const std::size_t field = fields[what / 4 % std::size(fields)];
                input_.change(bytes, steps[input_.number(1) % steps.size()] + field, field >= 32 && field < 48 ? 4 : 8);
                break;
            }
            default: {  // a word of a step's body
                const std::vector<std::uint64_t> steps = step_offsets();
                if (!steps.empty()) input_.change(bytes, steps[input_.number(1) % steps.size()] + sizeof(StepHead) + input_.number(1) * 8, 8);
            }
        }
    }

    /// Where steps seem to begin: as far as sizes lead.
    std::vector<std::uint64_t> step_offsets() const {
        std::vector<std::uint64_t> found;
        const ByteCount bytes = memory_->bytes();
        for (std::uint64_t at = layout::first_step; at + sizeof(StepHead) <= bytes;) {
            StepHead head;
            std::memcpy(&head, memory_->base() + at, sizeof head);
            found.push_back(at);
            if (head.size < sizeof head || head.size % 8 != 0 || head.size > bytes - at) break;
            at += head.size;
        }
        return found;
    }

    /// The checksums, by FORMAT.md: 1 of the header, 2 of the steps.
    void fix(std::uint64_t which) {
        if (memory_->bytes() < layout::first_step) return;
        std::byte* const base = memory_->base();
        for (const std::uint64_t at : (which & 2U) != 0 ? step_offsets() : std::vector<std::uint64_t>{}) {
            StepHead head;
            std::memcpy(&head, base + at, sizeof head);
            const std::uint64_t front = sizeof head + round_up(head.name_bytes, 8);
            if (head.size > memory_->bytes() - at || front > head.size || head.name_bytes > head.size) continue;
            head.body_checksum = checksum({base + at + front, head.size - front}, head.id);
            std::memcpy(base + at, &head, sizeof head);
            const std::uint64_t sum = checksum({base + at, offsetof(StepHead, head_checksum)}, at);
            head.head_checksum = checksum({base + at + sizeof head, head.name_bytes}, sum);
            std::memcpy(base + at, &head, sizeof head);
        }
        if ((which & 1U) != 0) {
            const std::uint64_t sum = checksum({base, offsetof(HistoryHeader, checksum)}, layout::header_magic);
            std::memcpy(base + offsetof(HistoryHeader, checksum), &sum, sizeof sum);
        }
    }

    void use() {
        std::unique_ptr<HistoryMemory> memory = std::move(memory_);
        std::optional<UndoHistory> history;
        try {
            history = UndoHistory::resume(memory);
        } catch (const Error& error) {
            TAIYEN_CHECK(!known_ && (error.code() == errc::corrupt || error.code() == errc::unsupported_version));
        }
        if (!history) return;
        for (unsigned steps = 0; steps < 200 && (steps == 0 || !input_.empty()); ++steps) {
            try {
                if (steps == 0) look(*history);
                act(*history);
            } catch (const Error& error) {
                TAIYEN_CHECK(!known_ && error.code() == errc::corrupt);
            }
        }
    }

    Input& input_;
    std::unique_ptr<Memory> memory_;
    std::vector<std::byte> heap_ = std::vector<std::byte>(heap_bytes);
    bool known_ = true;  ///< the bytes are those that the history made
    std::vector<Made> model_;
    std::size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    Input input(bytes, size);
    const std::uint64_t choices = input.number(1);
    Program program(input);
    (choices & 1U) != 0 ? program.whole() : program.recipe();
    return 0;
}
