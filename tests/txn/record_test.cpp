// A transaction's record in the log: what is read back is what was written, and each field that can't be refuses the whole record.

#include "txn/record.hpp"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "txn/log_records.hpp"

BOOST_AUTO_TEST_SUITE(record)

namespace {

using namespace taiyen;
using namespace taiyen::txn;
using txn::test::group_of;
using txn::test::record_of;

constexpr ByteCount capacity = 1_MiB;
constexpr ByteCount extent = 64_KiB;

change::ChangeSet bytes_changed(std::uint64_t where) {
    const std::vector<std::byte> before(40, std::byte{1});
    const std::vector<std::byte> after(40, std::byte{2});
    change::ChangeSet set;
    set.add_bytes({where}, before, after);
    return set;
}

errc code_of(LogWalk& walk, const log::Record& group) {
    try {
        walk.walk(group, [](const LoggedTransaction&) {}, [](const change::Entry&) {});
    } catch (const Error& error) {
        return static_cast<errc>(error.code().value());
    }
    return {};
}

/// What a record says: nothing, unless it and all its entries are right.
struct Whole {
    ByteCount extent = 0;
    bool needs_heap = false;
    bool has_annex = false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;  ///< where, length
};

std::optional<Whole> read_whole(std::span<const std::byte> bytes, std::uint64_t serial) {
    LogWalk walk("x.tyn.log", capacity, {serial - 1});
    Whole whole;
    try {
        walk.walk(
            group_of({bytes.begin(), bytes.end()}, serial),
            [&](const LoggedTransaction& head) { whole = {head.extent, head.needs_heap, head.annex.has_value(), {}}; },
            [&](const change::Entry& entry) { whole.entries.emplace_back(entry.where.value, entry.length); });
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        return std::nullopt;
    }
    return whole;
}

BOOST_AUTO_TEST_CASE(a_record_is_read_back) {
    const auto found = read_whole(record_of(bytes_changed(5000), {7, extent, 0, 0}), 7);
    BOOST_REQUIRE(found);
    BOOST_TEST(found->extent == extent);
    BOOST_TEST(!found->needs_heap);
    BOOST_REQUIRE(found->entries.size() == 1);
    BOOST_TEST((found->entries[0] == std::pair<std::uint64_t, std::uint64_t>(5000, 40)));
}

BOOST_AUTO_TEST_CASE(a_field_that_can_not_be_refuses_the_record) {
    const std::vector<std::byte> right = record_of(bytes_changed(5000), {7, extent, 0, 0});
    BOOST_TEST(!read_whole(std::span(right).first(sizeof(layout::RecordHead) - 1), 7).has_value());
    BOOST_TEST(!read_whole(std::span(right).first(right.size() - 1), 7).has_value());
    BOOST_TEST(!read_whole(right, 8).has_value());
    const layout::RecordHead wrong[] = {
        {7, capacity + page_bytes, 0, 0},         {7, extent + 8, 0, 0}, {7, extent, 4, 0}, {7, extent, layout::record_needs_heap, 0},
        {7, extent, layout::record_has_annex, 0}, {7, page_bytes, 0, 0}};
    for (const layout::RecordHead& head : wrong) BOOST_TEST(!read_whole(record_of(bytes_changed(5000), head), 7).has_value());
}

BOOST_AUTO_TEST_CASE(an_entry_that_takes_the_whole_heap_agrees_with_its_flag) {
    change::ChangeSet call;
    call.add_procedure("p", {}, 1);
    change::ChangeSet move;
    move.add_pages_moved({0}, {2 * page_bytes}, std::vector<std::byte>(page_bytes));
    for (const change::ChangeSet* set : {&call, &move}) {
        BOOST_TEST(!read_whole(record_of(*set, {7, extent, 0, 0}), 7).has_value());
        const auto found = read_whole(record_of(*set, {7, extent, layout::record_needs_heap, 0}), 7);
        BOOST_REQUIRE(found);
        BOOST_TEST(found->needs_heap);
    }
}

BOOST_AUTO_TEST_CASE(an_annex_part_obeys_its_own_bounds) {
    const std::vector<std::byte> plain = record_of(bytes_changed(5000), {7, extent, layout::record_has_annex, 0});
    const auto with = [&](layout::AnnexPart part, const change::ChangeSet& changes) {
        change::ByteBuffer redo;
        change::append_redo(changes, redo);
        if (part.redo_bytes == 0) part.redo_bytes = redo.bytes().size();
        std::vector<std::byte> bytes = plain;
        const auto* const at = reinterpret_cast<const std::byte*>(&part);
        bytes.insert(bytes.begin() + sizeof(layout::RecordHead), at, at + sizeof part);
        bytes.insert(bytes.end(), redo.bytes().begin(), redo.bytes().end());
        return read_whole(bytes, 7);
    };
    const layout::AnnexPart right{{.extent = 4 * page_bytes, .used = 2 * page_bytes, .places = {1}}, 0};
    const auto found = with(right, bytes_changed(100));
    BOOST_REQUIRE(found);
    BOOST_TEST(found->has_annex);
    BOOST_REQUIRE(found->entries.size() == 2);
    BOOST_TEST((found->entries[1] == std::pair<std::uint64_t, std::uint64_t>(store::annex_start.value + 100, 40)));
    BOOST_TEST(!read_whole(std::span(plain).first(sizeof(layout::RecordHead) + 8), 7).has_value());
    layout::AnnexPart wrong = right;
    wrong.annex.places = {};
    BOOST_TEST(!with(wrong, bytes_changed(100)).has_value());
    wrong = right;
    wrong.redo_bytes = 1;
    BOOST_TEST(!with(wrong, bytes_changed(100)).has_value());
    BOOST_TEST(!with(right, bytes_changed(3 * page_bytes)).has_value());
    change::ChangeSet call;
    call.add_procedure("p", {}, 1);
    BOOST_TEST(!with(right, call).has_value());
}

BOOST_AUTO_TEST_CASE(a_walk_takes_one_serial_after_the_other) {
    LogWalk walk("x.tyn.log", capacity, {6});
    const auto seven = group_of(record_of(bytes_changed(5000), {7, extent, 0, 0}), 7);
    BOOST_TEST((code_of(walk, group_of(record_of(bytes_changed(5000), {8, extent, 0, 0}), 8)) == errc::mismatch));
    BOOST_TEST((code_of(walk, seven) == errc{}));
    BOOST_TEST((walk.last() == Serial{7} && walk.transactions() == 1));
    BOOST_TEST((code_of(walk, seven) == errc::mismatch));
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_group_is_said_of_its_place_in_the_file) {
    LogWalk walk("x.tyn.log", capacity, {6});
    for (const std::uint64_t serial : {7U, 8U}) {  // damaged, out of turn
        log::Record group = group_of(record_of(bytes_changed(5000), {9, extent, 0, 0}), serial);
        group.position = 1'069'056;
        group.file_offset = 28'672;  // in its second lap
        BOOST_CHECK_EXCEPTION(walk.walk(
                                  group, [](const LoggedTransaction&) {}, [](const change::Entry&) {}),
                              Error, [](const Error& error) { return error.offset() == 28'672; });
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_is_none_is_damage) {
    LogWalk walk("x.tyn.log", capacity, {6});
    log::Record other_kind = group_of(record_of(bytes_changed(5000), {7, extent, 0, 0}), 7);
    other_kind.kind = 1;
    BOOST_TEST((code_of(walk, other_kind) == errc::corrupt));
    log::Record cut = group_of(record_of(bytes_changed(5000), {7, extent, 0, 0}), 7);
    cut.payload.resize(cut.payload.size() - 8);
    BOOST_TEST((code_of(walk, cut) == errc::corrupt));
    BOOST_TEST((code_of(walk, group_of(record_of(bytes_changed(5000), {9, extent, 0, 0}), 7)) == errc::corrupt));
    BOOST_TEST((walk.last() == Serial{6}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
