/// What the shapes of a heap's types say of single words: whether a number lies there, and where in which named object.

#include <algorithm>
#include <exception>
#include <map>
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
/// Words of which the path is told.
constexpr unsigned paths_max = 64;

/// Numbers in which no program keeps an address, nor the bytes of something else (taiyen/stl/pointer_free.hpp).
bool is_plain_number(const Shape& shape, std::uint32_t number) {
    const ShapeNode& node = shape.nodes[number];
    switch (node.kind) {
        case ShapeKind::boolean:
        case ShapeKind::signed_integer:
        case ShapeKind::floating_point:
        case ShapeKind::character: return true;
        case ShapeKind::unsigned_integer: return node.bytes != 1 && node.bytes < word_bytes;
        case ShapeKind::enumeration: return is_plain_number(shape, node.parts.front().node);
        default: return false;
    }
}

/// Each value that named objects hold, in place, in containers or behind pointers. A word is a number if numbers are all that was met there, and nothing was left out: what can't be read ends the walk.
class WordWalk {
public:
    WordWalk(store::HeapFile& file, std::span<const HeapOffset> words, std::vector<heap::WordUse>& uses) : file_(file), uses_(uses) {
        for (std::size_t i = 0; i != words.size(); ++i) words_.push_back({words[i].value, i});
        std::ranges::sort(words_);
        left_ = words_.size();
    }

    /// Throws: Error{corrupt}: not everything could be looked at.
    void run() {
        for (const StoredObject& object : objects_of(file_.engine())) {
            if (object.shape == nullptr || left_ == 0) continue;
            is_doubtful_ = file_.type_notes().is_shape_doubted(object.fingerprint, file_.engine().shape_of(object.fingerprint).value_or(""));
            wholes_.push_back(ViewAccess::object(file_, object.shape, object.offset, object.count, ViewMemory::Rot::is_refused));
            if (!budget_) budget_.emplace(wholes_.back());
            begin_ = object.name;
            const ViewValue whole = wholes_.back();
            look_at(whole, nullptr, 0);
        }
        for (bool is_more = true; is_more && left_ != 0;) {
            is_more = false;
            for (std::size_t i = 0; i != targets_.size(); ++i) {
                BlockSet places;
                places.swap(targets_[i].places);
                const ViewValue one = targets_[i].one;
                is_doubtful_ = targets_[i].is_doubtful;
                begin_ = one.type();
                for (const std::int64_t id : places) {
                    is_more = true;
                    look_at(ViewAccess::inner(one, ViewAccess::number(one), block_of(id).value), nullptr, 0);
                }
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
    /// What pointers lead to that was not looked at yet.
    struct Targets {
        ViewValue one;  ///< of their type
        bool is_doubtful;
        BlockSet places;
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
        if (kind >= ShapeKind::boolean && kind <= ShapeKind::enumeration) {
            const bool is_number = is_plain_number(*memory.shape, ViewAccess::number(value));
            return tell(value, value.offset(), value.bytes(), way, is_number ? Kind::number : Kind::unknown);
        }
        if (kind == ShapeKind::opaque) return tell(value, value.offset(), value.bytes(), way, Kind::unknown);
        if (kind == ShapeKind::pointer) {
            tell(value, value.offset(), value.bytes(), way, Kind::pointer);
            return follow(value);
        }
        if (kind == ShapeKind::optional || kind == ShapeKind::variant) return look_at_choice(value, way, depth);
        for (std::size_t i = 0; i != value.parts(); ++i) {
            const Step step{way, &value, i, nullptr};
            look_at(value.part(i), &step, depth + 1);
        }
    }

    /// What isn't held now is nothing that anybody would follow.
    void look_at_choice(const ViewValue& value, const Step* way, unsigned depth) {
        const Shape& shape = *ViewAccess::memory(value).shape;
        std::uint64_t bytes = 0;
        for (const ShapePart& part : ViewAccess::node(value).parts) bytes = std::max(bytes, shape.nodes[part.node].bytes);
        const Step step{way, &value, 0, nullptr};
        const auto held = value.target();
        if (held) look_at(*held, &step, depth + 1);
        const std::uint64_t used = held ? held->bytes() : 0;
        if (used < bytes) tell(value, value.offset() + used, bytes - used, way, Kind::number);
    }

    void look_at_container(const ViewValue& value, const Step* way, unsigned depth) {
        tell(value, value.offset(), value.bytes(), way, Kind::container);
        if (value.kind() == ShapeKind::bit_vector || !value.has_elements() || value.is_text()) return;
        try {
            budget_->take(value, depth);
            if (value.kind() != ShapeKind::forward_list) budget_->take_search(value, depth);
            if (has_nothing_of_interest(value)) return;
            std::uint64_t number = 0;
            for (const ViewValue& element : value.elements()) {
                if (left_ == 0) return;
                const Step step{way, &value, number++, &element};
                look_at(element, &step, depth + 1);
            }
        } catch (const Error&) {
            // It was moved there past its allocator, and holds nothing of the heap.
            if (words_in(value.offset(), value.bytes()).empty()) throw;
        }
    }

    /// Of a row of plain values, in which no word lies. Throws: Error{corrupt}: it ends behind the block that it begins in.
    bool has_nothing_of_interest(const ViewValue& row) {
        if (row.kind() != ShapeKind::vector || row.size() == 0) return false;
        const ViewValue first = *ViewWalk::of(row)->next();
        const std::uint64_t bytes = row.size() * first.bytes();
        const auto block = file_.engine().find_block(reinterpret_cast<const void*>(file_.ranges().durable + first.offset()));
        if (!block || first.offset() + bytes > block->offset.value + block->usable_bytes)
            ViewAccess::memory(row).throw_corrupt(row.offset(), "a vector ends behind its block");
        return words_in(first.offset(), bytes).empty() && !leads_on_(*ViewAccess::memory(row).shape, ViewAccess::number(first));
    }

    void follow(const ViewValue& pointer) {
        const ViewMemory& memory = ViewAccess::memory(pointer);
        const ShapeNode& node = ViewAccess::node(pointer);
        const auto place = memory.place(pointer.offset(), memory.word<std::uint64_t>(pointer.offset()), node.distances);
        const std::uint32_t target = node.parts.front().node;
        const ShapeKind kind = memory.shape->nodes[target].kind;
        // Behind a pointer to numbers may lie anything: memory from `allocate`.
        if (kind != ShapeKind::structure && kind != ShapeKind::pair && kind != ShapeKind::tuple && !is_container(kind)) return;
        const std::uint64_t bytes = memory.shape->nodes[target].bytes;
        if (!place || bytes == 0 || !memory.holds(*place, bytes)) return;
        const void* const block = reinterpret_cast<const void*>(file_.ranges().durable + *place);
        if (!file_.engine().is_block(block) || file_.engine().usable_size(block) < bytes) return;
        const auto [found, is_new] = targets_of_.try_emplace({memory.shape.get(), target}, targets_.size());
        if (is_new) targets_.push_back({ViewAccess::inner(pointer, target, *place), is_doubtful_, {}});
        if (seen_[found->second].insert(id_of({*place}))) targets_[found->second].places.insert(id_of({*place}));
    }

    void tell(const ViewValue& value, std::uint64_t offset, std::uint64_t bytes, const Step* way, Kind kind) {
        if (is_doubtful_) kind = Kind::unknown;
        for (const auto& [word, index] : words_in(offset, bytes)) {
            heap::WordUse& use = uses_[index];
            const bool was_told = !use.type.empty();
            if (was_told && (use.kind != Kind::number || kind == Kind::number)) continue;
            use.kind = kind;
            if (kind == Kind::number) {
                use.type = "number";
                continue;
            }
            --left_;
            use.type = value.type();
            if (paths_told_ != paths_max) {
                ++paths_told_;
                use.path = path_to(way);
            }
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
                path += is_labelled ? label_of((*step)->element->part(0), number) : joined({"[", number, "]"});
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

    static std::string label_of(const ViewValue& key, const std::string& number) {
        try {
            return ViewAccess::label(key, key_bytes_max);
        } catch (const Error&) {  // the key itself was moved there
            return joined({"[", number, "]"});
        }
    }

    store::HeapFile& file_;
    std::vector<heap::WordUse>& uses_;
    std::vector<std::pair<std::uint64_t, std::size_t>> words_;  ///< {where it lies, which one of the uses}, by place
    std::size_t left_ = 0;                                      ///< words that may be numbers yet
    bool is_doubtful_ = false;                                  ///< the shape that is followed may be another one than the program's
    unsigned paths_told_ = 0;
    std::optional<ViewBudget> budget_;
    std::vector<ViewValue> wholes_;  ///< the shapes of what is waiting live as long
    std::string begin_;              ///< of the paths: a name, or a type behind pointers
    std::vector<Targets> targets_;
    std::map<std::pair<const Shape*, std::uint32_t>, std::size_t> targets_of_;
    std::map<std::size_t, BlockSet> seen_;  ///< by type
    shape::TypesWith leads_on_{&leads_on};
};

}  // namespace
}  // namespace inspect

std::vector<heap::WordUse> store::HeapFile::uses_of(std::span<const HeapOffset> words) {
    std::vector<heap::WordUse> uses(words.size());
    bool is_whole = false;
    try {
        inspect::WordWalk(*this, words, uses).run();
        is_whole = true;
    } catch (const std::exception&) {  // what can't be looked at tells nothing
    }
    for (heap::WordUse& use : uses)
        if (use.kind == heap::WordUse::Kind::number && !is_whole) use.kind = heap::WordUse::Kind::unknown;
    return uses;
}

}  // namespace taiyen
