// A heap whose words anybody has changed, by shapes that anybody has written: what a view shows of it is text or Error{corrupt | …}, the same text each time, and it reads nothing that is not the heap's.
//
// The input: a byte; if it is odd, a length and so many bytes of a shape, sealed, which becomes that of the object; then pairs of a place and a word, each of 8 bytes: the place counts the heap's words, and the word is
// added to what stands there, stored as it is, or stored as an address within the heap.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/inspect/view.hpp>
#include <taiyen/inspect/view_diff.hpp>
#include <taiyen/inspect/view_text.hpp>
#include <taiyen/inspect/walk.hpp>
#include <taiyen/ordered/btree_map.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/flat_hash_map.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/stl/shape_of.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "inspect/type_walk.hpp"
#include "inspect/view_memory.hpp"
#include "io/disks/simulated_storage.hpp"
#include "migrate/links.hpp"
#include "migrate/old_blocks.hpp"
#include "shape/encoding.hpp"
#include "store/heap_access.hpp"
#include "store/heap_file.hpp"
#include "transfer/pointer_finder.hpp"
#include "transfer/shape_types.hpp"

namespace view_fuzz {

using namespace taiyen;

struct Part {
    taiyen::string name;
    taiyen::vector<int> numbers;
    std::optional<double> weight;
    std::variant<int, taiyen::string> value;
    Part* next = nullptr;
};

struct Everything {
    taiyen::map<taiyen::string, Part> parts;
    taiyen::unordered_map<int, taiyen::string> names;
    taiyen::deque<int> queue;
    taiyen::list<int> list;
    taiyen::forward_list<int> forward;
    taiyen::flat_hash_map<int, int> fast;
    taiyen::vector<taiyen::vector<Part>> rows;
    taiyen::u16string text;
    taiyen::btree_map<int, taiyen::string> tree;
    taiyen::btree_multiset<double> numbers;
    taiyen::vector<bool> bits;
    taiyen::set<taiyen::string> words;
    char32_t letter = U'\u20ac';
    char code[6] = "code";
};

namespace {

/// A heap that is made once; what an input changes is put back.
class Fixture {
public:
    Fixture() {
        disk_.add_directory("/disk");
        PersistentOptions options;
        options.capacity = 1_MiB;
        file_ = store::HeapFile::open(disk_, "/disk/view.tyn", store::OpenMode::create_only, HeapKind::archive, options, store::Tuning{32768});
        heap_.emplace(HeapAccess::make<ArchiveHeap>(file_));
        Everything& all = heap_->construct<Everything>("all");
        for (int i = 0; i < 6; ++i) {
            Part& part = all.parts[taiyen::string(static_cast<std::size_t>(i * 7), 'p')];
            part.numbers.assign(static_cast<std::size_t>(i), i);
            part.next = &all.parts.begin()->second;
            if (i % 2 == 0) part.weight = i;
            if (i % 3 == 0) part.value.emplace<taiyen::string>("value", part.name.get_allocator());
            all.names[i] = taiyen::string("a name that lies in a block of its own");
            all.queue.push_front(i);
            all.list.push_back(i);
            all.forward.push_front(i);
            all.fast[i] = i;
            all.rows.emplace_back().emplace_back();
            all.text += u'\u00e4';
            all.tree[i] = taiyen::string(static_cast<std::size_t>(i * 5), 't');
            all.numbers.insert(i / 2);
            all.bits.push_back(i % 2 == 0);
            all.words.insert(taiyen::string(static_cast<std::size_t>(i), 'w'));
        }
        shape_ = std::make_shared<const Shape>(shape_of<Everything>());
        object_ = file_->engine().find_root("all")->object.value;
        for_each_block(*heap_, [&](const auto& block) {
            for (std::uint64_t at = 0; at + 8 <= block.bytes; at += 8) words_.push_back(block.offset + at);
            return true;
        });
    }

    std::string shown(const std::shared_ptr<const Shape>& shape) const {
        std::ostringstream to;
        try {
            const ViewValue value = inspect::ViewAccess::object(*file_, shape, object_, 1);
            write_json(to, value, {.depth = 6, .elements = 12});
            write_tree(to, "all", value, {.depth = 6, .elements = 12, .text_bytes = 100, .indent = 1});
        } catch (const Error& error) {
            TAIYEN_CHECK(error.code() == errc::corrupt || error.code() == errc::type_mismatch);
            to << error.what();
        }
        look(to, shape);
        compare(to, shape);
        hold(to, shape);
        count(to, shape);
        return to.str();
    }

    /// How many values there are of each type, and which blocks they hold: none twice.
    void count(std::ostream& to, const std::shared_ptr<const Shape>& shape) const {
        try {
            std::uint64_t blocks = 0;
            inspect::TypeWalk walk(*file_, [&](const heap::Block&, std::uint32_t) { ++blocks; }, {});
            walk.run({StoredObject{"all", {}, {}, object_, shape->nodes.front().bytes, 1, shape}});
            for (const TypeUse& use : walk.uses()) {
                to << use.type << use.values << use.block_bytes;
                blocks -= use.blocks;
            }
            TAIYEN_CHECK(blocks == 0);
        } catch (const Error& error) {
            TAIYEN_CHECK(error.code() == errc::corrupt || error.code() == errc::type_mismatch);
            to << error.what();
        }
    }

    /// With itself, which differs by nothing, and along patterns.
    void compare(std::ostream& to, const std::shared_ptr<const Shape>& shape) const {
        const auto guarded = [&](auto&& action) {
            try {
                action(inspect::ViewAccess::object(*file_, shape, object_, 1));
            } catch (const Error& error) {
                const auto code = static_cast<errc>(error.code().value());
                TAIYEN_CHECK(code == errc::corrupt || code == errc::type_mismatch || code == errc::not_found);
                to << error.what();
            }
        };
        guarded([&](const ViewValue& value) {
            for (const std::string& path : for_each_difference(value, value, [](const ViewDifference&) -> bool { std::abort(); })) to << path;
        });
        for (const char* const pattern : {"parts[*].numbers[*] > 2", "rows[*][*].next.weight < 1.5", "names[*] != \"x\"", "[*][*][*][*]", "tree[*]"})
            guarded([&](const ViewValue& value) {
                value.for_each(pattern, [&](std::string_view path, const ViewValue&) {
                    to << path;
                    return true;
                });
            });
    }

    /// What it holds, and where its pointers are, as a migration and a move see it.
    void hold(std::ostream& to, const std::shared_ptr<const Shape>& shape) const {
        migrate::OldBlocks blocks;
        const auto guarded = [&](auto&& action) {
            try {
                action();
            } catch (const Error& error) {
                const auto code = static_cast<errc>(error.code().value());
                TAIYEN_CHECK(code == errc::corrupt || code == errc::type_mismatch || code == errc::invalid_argument);
                to << error.what();
            }
        };
        guarded([&] {
            const ViewValue value = inspect::ViewAccess::object(*file_, shape, object_, 1);
            blocks.add(value);
            blocks.close(*file_);
            to << blocks.all().size() << ' ' << blocks.bytes();
            const migrate::Moves moves;
            migrate::Links links(blocks, moves);
            links.look("all", value);
        });
        guarded([&] {
            transfer::ShapeTypes types(file_->engine(), {});
            const std::string fingerprint = file_->engine().find_root("all")->fingerprint;
            const std::string why = types.add(fingerprint, *shape);
            to << why;
            if (!why.empty() || shape->nodes.front().bytes > sizeof(Everything)) return;
            const heap::CoreRanges& ranges = file_->ranges();
            const transfer::HeapView view{file_->engine(), reinterpret_cast<const std::byte*>(ranges.durable), ranges.durable, ranges.durable_bytes,
                                          file_->path()};
            transfer::PointerPlaces places(view);
            RebaseReport report;
            PointerWalk::State state(view, places, report, 10);
            transfer::walk_shapes(view, types.types(), report, state);
            to << state.order.size() << ' ' << places.pages().size();
        });
    }

    /// Along paths, each by itself: one of them may be damaged.
    void look(std::ostream& to, const std::shared_ptr<const Shape>& shape) const {
        for (const char* const path : {"parts[\"ppppppp\"].next.numbers[0]", "names[3]", "queue[4]", "list[2]", "rows[1][0].value", "tree[5]",
                                       "bits[1]", "[0]", "letter", "code", "x.y"}) {
            try {
                const ViewValue value = inspect::ViewAccess::object(*file_, shape, object_, 1).at(path);
                to << value.type() << value.bytes();
                if (value.has_elements()) to << value.size();
                if (value.is_text()) to << value.text();
                to << value.digits();
            } catch (const Error& error) {
                const auto code = static_cast<errc>(error.code().value());
                TAIYEN_CHECK(code == errc::corrupt || code == errc::type_mismatch || code == errc::not_found);
                to << error.what();
            }
        }
    }

    void use(std::span<const std::byte> input) {
        std::byte* const base = reinterpret_cast<std::byte*>(file_->ranges().durable);
        const auto take = [&]<class T>(T& to) {
            if (input.size() < sizeof to) return false;
            std::memcpy(&to, input.data(), sizeof to);
            input = input.subspan(sizeof to);
            return true;
        };
        std::shared_ptr<const Shape> as = shape_;
        std::uint8_t head = 0;
        std::uint16_t length = 0;
        if (!take(head)) return;
        if (head % 2 != 0 && take(length)) {
            const std::size_t bytes = std::min<std::size_t>(length, input.size());
            std::vector<std::byte> shape(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(bytes));
            input = input.subspan(bytes);
            if (shape.size() >= sizeof(shape::EncodedHead)) shape::seal(shape);
            try {
                as = std::make_shared<const Shape>(Shape::decode(shape));
            } catch (const Error&) {
                return;
            }
        }
        struct Word {
            std::uint64_t at;
            std::uint64_t before;
        };
        std::vector<Word> changed;
        std::uint64_t place = 0;
        std::uint64_t word = 0;
        while (take(place) && take(word)) {
            const std::uint64_t how = place >> 62U;
            const std::uint64_t at = how % 2 == 0 ? object_ + place % (sizeof(Everything) / 8) * 8 : words_[place % words_.size()];
            std::uint64_t now = 0;
            std::memcpy(&now, base + at, sizeof now);
            changed.push_back({at, now});
            now = how >= 2 ? reinterpret_cast<std::uintptr_t>(base) + word % file_->image().mapped() : word % 3 == 0 ? now + word : word;
            std::memcpy(base + at, &now, sizeof now);
        }
        const std::string once = shown(as);
        TAIYEN_CHECK(once == shown(as));
        for (auto word_before = changed.rbegin(); word_before != changed.rend(); ++word_before)
            std::memcpy(base + word_before->at, &word_before->before, sizeof word_before->before);
    }

private:
    io::SimulatedStorage disk_;
    std::shared_ptr<store::HeapFile> file_;
    std::optional<ArchiveHeap> heap_;
    std::shared_ptr<const Shape> shape_;
    std::vector<std::uint64_t> words_;  ///< of all blocks
    std::uint64_t object_ = 0;
};

}  // namespace
}  // namespace view_fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static view_fuzz::Fixture fixture;
    fixture.use({reinterpret_cast<const std::byte*>(data), size});
    return 0;
}
