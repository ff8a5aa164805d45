/// What the shapes of a heap's types say of single words: whether a number lies there, and where in which named object.

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/inspect/view.hpp>

#include "base/text.hpp"
#include "inspect/block_walk.hpp"
#include "inspect/objects_of.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_inner.hpp"
#include "inspect/view_memory.hpp"
#include "shape/types_with.hpp"
#include "store/heap_file.hpp"

namespace taiyen {
namespace inspect {
namespace {

using Kind = heap::WordUse::Kind;

constexpr std::uint64_t key_bytes_max = 60;
constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

/// Each value once, until all words are found: those that a named object holds, in place or in containers, then what pointers lead to.
class WordWalk {
public:
    WordWalk(store::HeapFile& file, std::span<const HeapOffset> words, std::vector<heap::WordUse>& uses) : file_(file), uses_(uses) {
        for (std::size_t i = 0; i != words.size(); ++i) words_.push_back({words[i].value, i});
        std::ranges::sort(words_);
        left_ = words_.size();
    }

    void run() {
        for (const StoredObject& object : objects_of(file_.engine())) {
            if (object.shape == nullptr || left_ == 0) continue;
            try {
                const ViewValue whole = ViewAccess::object(file_, object.shape, object.offset, object.count);
                wholes_.push_back(whole);
                if (!budget_) budget_.emplace(whole);
                begin_ = object.name;
                look_at(whole, nullptr, 0);
            } catch (const Error&) {  // what is wrong there tells nothing
            }
        }
        while (!targets_.empty() && left_ != 0) {
            const ViewValue target = targets_.back();
            targets_.pop_back();
            begin_ = target.type();
            try {
                look_at(target, nullptr, 0);
            } catch (const Error&) {
            }
        }
    }

private:
    /// The way to a value: `value` holds the next one, as that part or element.
    struct Step {
        const Step* before;
        const ViewValue* value;
        std::uint64_t number;
        const ViewValue* element;  ///< null: a part, or what an optional or a variant holds
    };

    static bool leads_on(const ShapeNode& node) { return is_container(node.kind) || node.kind == ShapeKind::pointer; }

    std::span<const std::pair<std::uint64_t, std::size_t>> words_in(std::uint64_t offset, std::uint64_t bytes) const {
        const auto begin = std::ranges::lower_bound(words_, std::pair{offset < word_bytes ? 0 : offset - word_bytes + 1, std::size_t{0}});
        const auto end = std::lower_bound(begin, words_.end(), std::pair{offset + bytes, std::size_t{0}});
        return {begin, end};
    }

    void look_at(const ViewValue& value, const Step* way, unsigned depth) {
        const ViewMemory& memory = ViewAccess::memory(value);
        if (depth > view_depth_max) memory.throw_corrupt(value.offset(), "values lie too deep within each other");
        const ShapeKind kind = value.kind();
        if (is_container(kind)) return look_at_container(value, way, depth);
        budget_->take(value, depth);
        // Of a pair in a B-tree, key and value lie apart.
        const bool is_met = ViewAccess::is_split(value) || !words_in(value.offset(), value.bytes()).empty();
        if (left_ == 0 || (!is_met && !leads_on_(*memory.shape, ViewAccess::number(value)))) return;
        if (kind >= ShapeKind::boolean && kind <= ShapeKind::enumeration) return tell(value, value.offset(), value.bytes(), way, Kind::number);
        if (kind == ShapeKind::opaque) return tell(value, value.offset(), value.bytes(), way, Kind::unknown);
        if (kind == ShapeKind::pointer) {
            tell(value, value.offset(), value.bytes(), way, Kind::pointer);
            return follow(value);
        }
        if (kind == ShapeKind::optional || kind == ShapeKind::variant) {
            const Step step{way, &value, 0, nullptr};
            const auto held = value.target();
            if (held) look_at(*held, &step, depth + 1);
            const std::uint64_t used = held ? held->bytes() : 0;
            return tell(value, value.offset() + used, value.bytes() - used, way, Kind::number);  // nothing is there that anybody would follow
        }
        for (std::size_t i = 0; i != value.parts(); ++i) {
            const Step step{way, &value, i, nullptr};
            look_at(value.part(i), &step, depth + 1);
        }
    }

    void look_at_container(const ViewValue& value, const Step* way, unsigned depth) {
        const std::uint64_t end = value.offset() + value.bytes();
        tell(value, value.offset(), value.bytes(), way, Kind::container);
        if (value.is_text() && value.has_elements()) tell(value, end - 16, 16, way, Kind::number);  // a short text, or how long it may become
        if (value.kind() == ShapeKind::bit_vector || !value.has_elements()) return;
        try {
            budget_->take(value, depth);
            if (value.is_text()) {
                if (const auto first = ViewWalk::of(value)->next()) tell(value, first->offset(), value.size() * first->bytes(), way, Kind::number);
                return;
            }
            budget_->take_search(value, depth);
            std::uint64_t number = 0;
            for (const ViewValue& element : value.elements()) {
                if (left_ == 0) return;
                const Step step{way, &value, number++, &element};
                look_at(element, &step, depth + 1);
            }
        } catch (const Error& error) {  // it was moved there past its allocator, as a rule
            if (error.code() != errc::corrupt) throw;
        }
    }

    void follow(const ViewValue& pointer) {
        const ViewMemory& memory = ViewAccess::memory(pointer);
        const ShapeNode& node = ViewAccess::node(pointer);
        const auto place = memory.place(pointer.offset(), memory.word<std::uint64_t>(pointer.offset()), node.distances);
        const std::uint32_t target = node.parts.front().node;
        const std::uint64_t bytes = memory.shape->nodes[target].bytes;
        if (!place || bytes == 0 || !memory.holds(*place, bytes)) return;
        const void* const block = reinterpret_cast<const void*>(file_.ranges().durable + *place);
        if (!file_.engine().is_block(block) || file_.engine().usable_size(block) < bytes) return;
        if (seen_.insert(id_of({*place}))) targets_.push_back(ViewAccess::inner(pointer, target, *place));
    }

    void tell(const ViewValue& value, std::uint64_t offset, std::uint64_t bytes, const Step* way, Kind kind) {
        for (const auto& [word, index] : words_in(offset, bytes)) {
            heap::WordUse& use = uses_[index];
            if (use.path.empty()) {
                use.path = path_to(way);
                use.type = value.type();
                --left_;
            }
            if (use.kind == Kind::unknown || kind == Kind::number) use.kind = kind;
        }
    }

    std::string path_to(const Step* way) const {
        std::vector<const Step*> steps;
        for (; way != nullptr; way = way->before) steps.push_back(way);
        std::string path = begin_;
        bool is_labelled = false;  // of an element of a map, the label says which one
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            const ViewValue& value = *(*step)->value;
            const ShapeKind kind = value.kind();
            const std::string number = std::to_string((*step)->number);
            if ((*step)->element != nullptr) {
                is_labelled = is_map(kind) && ViewAccess::has_simple_keys(value);
                path += is_labelled ? ViewAccess::label((*step)->element->part(0), key_bytes_max) : joined({"[", number, "]"});
                continue;
            } else if (kind == ShapeKind::pair) {
                if (!is_labelled || (*step)->number == 0) path += (*step)->number == 0 ? ".first" : ".second";
            } else if (kind == ShapeKind::structure) {
                path += joined({".", value.part_name((*step)->number)});
            } else if (kind == ShapeKind::array || kind == ShapeKind::tuple) {
                path += joined({"[", number, "]"});
            }
            is_labelled = false;
        }
        return path;
    }

    store::HeapFile& file_;
    std::vector<heap::WordUse>& uses_;
    std::vector<std::pair<std::uint64_t, std::size_t>> words_;  ///< {where it lies, which one of the uses}, by place
    std::size_t left_ = 0;  ///< words of which nothing is told yet
    std::optional<ViewBudget> budget_;
    std::vector<ViewValue> wholes_;  ///< the shapes of what is waiting live as long
    std::string begin_;              ///< of the paths: a name, or a type behind pointers
    std::vector<ViewValue> targets_;
    BlockSet seen_;
    shape::TypesWith leads_on_{&leads_on};
};

}  // namespace
}  // namespace inspect

std::vector<heap::WordUse> store::HeapFile::uses_of(std::span<const HeapOffset> words) {
    std::vector<heap::WordUse> uses(words.size());
    try {
        inspect::WordWalk(*this, words, uses).run();
    } catch (const Error&) {  // names that can't be read: no shape tells
    }
    return uses;
}

}  // namespace taiyen
