// The table of FORMAT.md, "Recovery": each state of the two files has one row, and a row that makes one file of the other takes the one that holds the newest save.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <ostream>
#include <set>

#include "store/recovery_table.hpp"

namespace {

using taiyen::Generation;
using taiyen::store::choose_row;
using taiyen::store::CopiesFound;
using taiyen::store::CopyRow;
using Data = CopiesFound::Data;

constexpr std::uint64_t ours = 10;

CopiesFound with_data(std::uint64_t generation) {
    CopiesFound found;
    found.backing_generation = {ours};
    found.data = Data::whole;
    found.data_generation = {generation};
    return found;
}
CopiesFound but(CopiesFound found, auto&& change) {
    change(found);
    return found;
}
bool gives(const CopiesFound& found, CopyRow row) { return choose_row(found) == row; }

bool is_refused(CopyRow row) { return row == CopyRow::refused_lost || row == CopyRow::refused_short || row == CopyRow::refused_apart; }

/// Calls `visit` for every state that can be told apart.
template <class F>
void for_each_state(F&& visit) {
    for (const Data data : {Data::none, Data::missing, Data::lost, Data::filling, Data::whole}) {
        for (const std::uint64_t generation : {std::uint64_t{0}, ours - 1, ours, ours + 1, ours + 2}) {
            for (unsigned bits = 0; bits < 16; ++bits) {
                CopiesFound found = with_data(generation);
                found.data = data;
                found.backing_lost = (bits & 1U) != 0;
                found.data_short = (bits & 2U) != 0;
                found.data_clean = (bits & 4U) != 0;
                found.data_unused = (bits & 8U) != 0;
                visit(found);
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE(recovery_table)

BOOST_AUTO_TEST_CASE(each_state_has_its_row) {
    BOOST_TEST(gives({}, CopyRow::alone));
    BOOST_TEST(gives(with_data(ours), CopyRow::alike));
    BOOST_TEST(gives(with_data(ours - 1), CopyRow::backing_to_data));
    BOOST_TEST(gives(with_data(0), CopyRow::backing_to_data));
    BOOST_TEST(gives(with_data(ours + 1), CopyRow::data_to_backing));
    BOOST_TEST(gives(with_data(ours + 2), CopyRow::refused_apart));
    BOOST_TEST(gives(but(with_data(ours + 1), [](auto& found) { found.data_clean = true; }), CopyRow::refused_apart));
    BOOST_TEST(gives(but(with_data(ours), [](auto& found) { found.data_clean = true; }), CopyRow::alike));
    BOOST_TEST(gives(but(with_data(ours), [](auto& found) { found.data = Data::missing; }), CopyRow::data_given_up));
    BOOST_TEST(gives(but(with_data(ours), [](auto& found) { found.data = Data::lost; }), CopyRow::data_refilled));
    BOOST_TEST(gives(but(with_data(ours + 1), [](auto& found) { found.data = Data::filling; }), CopyRow::data_refilled));
    BOOST_TEST(gives(but(with_data(ours), [](auto& found) { found.data_short = true; }), CopyRow::data_refilled));
    BOOST_TEST(gives(but(with_data(ours + 1), [](auto& found) { found.data_short = true; }), CopyRow::refused_short));
}

BOOST_AUTO_TEST_CASE(a_backing_file_without_headers_comes_from_a_whole_data_file_or_not_at_all) {
    const auto lost = [](CopiesFound found) { return but(found, [](auto& one) { one.backing_lost = true; }); };
    for (const std::uint64_t generation : {std::uint64_t{1}, ours, ours + 2})
        BOOST_TEST(gives(lost(with_data(generation)), CopyRow::backing_rebuilt));
    BOOST_TEST(gives(lost(with_data(0)), CopyRow::backing_rebuilt));
    BOOST_TEST(gives(lost(but(with_data(0), [](auto& found) { found.data_unused = true; })), CopyRow::refused_lost));
    BOOST_TEST(gives(lost(but(with_data(ours), [](auto& found) { found.data_unused = true; })), CopyRow::refused_lost));
    BOOST_TEST(gives(lost(but(with_data(ours), [](auto& found) { found.data_short = true; })), CopyRow::refused_short));
    for (const Data data : {Data::none, Data::missing, Data::lost, Data::filling})
        BOOST_TEST(gives(lost(but(with_data(ours), [&](auto& found) { found.data = data; })), CopyRow::refused_lost));
}

/// What was acknowledged last is never overwritten by what is older, and nothing is copied out of a file that is damaged, half filled or cut short.
BOOST_AUTO_TEST_CASE(no_row_overwrites_a_newer_save_or_copies_from_a_doubtful_file) {
    std::set<CopyRow> seen;
    for_each_state([&](const CopiesFound& found) {
        const CopyRow row = choose_row(found);
        seen.insert(row);
        const bool is_data_sound = found.data == Data::whole && !found.data_short;
        if (row == CopyRow::data_to_backing || row == CopyRow::backing_rebuilt) {
            BOOST_TEST(is_data_sound);
            BOOST_TEST((found.backing_lost || found.data_generation > found.backing_generation));
        }
        if (row == CopyRow::backing_to_data || row == CopyRow::data_refilled) {
            BOOST_TEST(!found.backing_lost);
            BOOST_TEST((found.data != Data::whole || found.data_generation <= found.backing_generation));
        }
        if (row == CopyRow::alike) BOOST_TEST((is_data_sound && found.data_generation == found.backing_generation));
        if (found.backing_lost) BOOST_TEST((is_refused(row) || row == CopyRow::backing_rebuilt));
    });
    BOOST_TEST(seen.size() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
