// A stored history of format version 1 is read, and the same steps give the same bytes (golden/README.md).
#include "undo/history.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(history_golden)

namespace {

using namespace taiyen;
using namespace taiyen::undo;
using change::ChangeSet;
using change::Direction;
using change::Entry;
using change::EntryKind;

constexpr ByteCount room = 16 * 1024;
constexpr ByteCount heap_capacity = ByteCount{1} << 20U;
constexpr std::uint64_t life = 0x1122'3344'5566'7788ULL;

class FixedMemory final : public HistoryMemory {
public:
    explicit FixedMemory(std::vector<std::byte> bytes = {}) : bytes_(std::move(bytes)) { bytes_.resize(room); }
    std::byte* base() override { return bytes_.data(); }
    ByteCount bytes() const override { return room; }
    ByteCount capacity() const override { return room; }
    void extend(ByteCount) override {}

private:
    std::vector<std::byte> bytes_;
};

std::vector<std::byte> pattern(std::size_t count, unsigned salt) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 7 + salt) % 251);
    return bytes;
}

ChangeSet bytes_set() {
    ChangeSet set;
    set.add_bytes({4100}, pattern(8, 1), pattern(8, 2));
    set.add_bytes({8192}, std::vector<std::byte>(64), pattern(64, 3));
    return set;
}
ChangeSet pages_set() {
    ChangeSet set;
    set.add_zeroed_run({16384}, 8192);
    set.add_pages_moved({16384}, {32768}, pattern(100, 4));
    return set;
}
ChangeSet call_set() {
    ChangeSet set;
    set.add_procedure("negate", pattern(48, 5), 0x99);
    return set;
}

/// Four steps, the last of them undone.
UndoHistory make() {
    UndoHistory history = UndoHistory::create(std::make_unique<FixedMemory>(), room, true);
    const auto append = [&](std::string_view name, std::uint32_t flags, std::uint32_t serial, const ChangeSet& first, const ChangeSet& second) {
        const std::array<Piece, 2> pieces{Piece{first.view().bytes(), false}, Piece{second.view().bytes(), false}};
        BOOST_REQUIRE(history.append({name, flags, life, serial, serial + 1, std::span(pieces).first(second.empty() ? 1 : 2)}));
    };
    append("first", 0, 1, bytes_set(), {});
    append(
        "gr\xC3\xB6\xC3\x9F"
        "er",
        0, 3, bytes_set(), call_set());
    append("", layout::step_implicit, 5, pages_set(), {});
    append("undone", 0, 7, bytes_set(), {});
    history.step_back(*history.to_undo());
    return history;
}

std::vector<std::byte> bytes_of(UndoHistory& history) {
    std::vector<std::byte> bytes(history.memory().base(), history.memory().base() + room);
    while (!bytes.empty() && bytes.back() == std::byte{0}) bytes.pop_back();
    return bytes;
}

std::vector<std::byte> stored() {
    std::ifstream file(TAIYEN_TESTS_DIR "/undo/golden/history-v1.bin", std::ios::binary);
    BOOST_REQUIRE(file.is_open());
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

BOOST_AUTO_TEST_CASE(the_same_steps_give_the_bytes_of_version_1) {
    UndoHistory history = make();
    const std::vector<std::byte> bytes = bytes_of(history);
    if (const char* const path = std::getenv("TAIYEN_WRITE_HISTORY"); path != nullptr) {
        std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return;
    }
    BOOST_TEST((bytes == stored()));
}

BOOST_AUTO_TEST_CASE(a_history_of_version_1_is_read_undone_and_redone) {
    std::unique_ptr<HistoryMemory> memory = std::make_unique<FixedMemory>(stored());
    std::optional<UndoHistory> history = UndoHistory::resume(memory);
    BOOST_REQUIRE(history.has_value());
    const std::vector<UndoStep> steps = history->steps();
    BOOST_REQUIRE(steps.size() == 4U);
    const std::array<std::string, 4> names{"first",
                                           "gr\xC3\xB6\xC3\x9F"
                                           "er",
                                           "", "undone"};
    for (std::size_t i = 0; i < 4; ++i) {
        BOOST_TEST(steps[i].id == i + 1);
        BOOST_TEST(steps[i].name == names[i]);
        BOOST_TEST(steps[i].implicit == (i == 2));
        BOOST_TEST(steps[i].undone == (i == 3));
    }
    BOOST_TEST(history->to_undo()->life == life);
    BOOST_TEST(history->to_undo()->first_serial == 5U);
    BOOST_TEST(history->to_undo()->last_serial == 6U);
    std::vector<EntryKind> kinds;
    for (const auto& segment : history->segments(*history->to_undo(), heap_capacity))
        segment.for_each(Direction::forward, [&](const Entry& entry) { kinds.push_back(entry.kind); });
    BOOST_TEST((kinds == std::vector<EntryKind>{EntryKind::zeroed_run, EntryKind::pages_moved}));
    history->step_back(*history->to_undo());
    const auto segments = history->segments(*history->to_undo(), heap_capacity);
    BOOST_REQUIRE(segments.size() == 2U);
    BOOST_TEST((std::ranges::equal(segments[0].bytes(), bytes_set().view().bytes())));
    BOOST_TEST(is_call(segments[1]));
    BOOST_TEST((std::ranges::equal(segments[1].bytes(), call_set().view().bytes())));
    history->step_forward(*history->to_redo());
    history->step_forward(*history->to_redo());
    BOOST_TEST(!history->to_redo().has_value());
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
