// Frames in a log of messages: appended by whoever knows the end, whole or not at all, found again whatever was lost.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include <taiyen/base/error.hpp>

#include "nats/frame_parts.hpp"
#include "nats/publisher.hpp"
#include "pretended_log.hpp"
#include "seed.hpp"
#include "throws.hpp"

using namespace taiyen;
using namespace taiyen::nats;
using namespace taiyen::nats::test;
using std::chrono::milliseconds;
using taiyen::test::throws;

namespace {

constexpr std::size_t small = sizeof(PartHead) + 10;  // ten bytes of a frame in each message

std::vector<std::byte> frame_of(std::uint64_t number, std::size_t bytes, unsigned salt = 0) {
    std::vector<std::byte> frame(bytes);
    for (std::size_t i = 0; i < bytes; ++i) frame[i] = static_cast<std::byte>(number * 7 + i + salt);
    return frame;
}

/// Sizes of nothing to several messages.
std::vector<std::byte> frame_of(std::uint64_t number) { return frame_of(number, number * 13 % 41); }

}  // namespace

BOOST_AUTO_TEST_SUITE(frame_parts)

BOOST_AUTO_TEST_CASE(frames_of_any_size_come_back_one_after_the_other_and_in_any_order) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log);
    BOOST_TEST(parts.range().empty());
    BOOST_TEST(parts.range().last == 0U);
    BOOST_TEST(!parts.append(2, frame_of(2)));
    BOOST_TEST(!messages.is_made);
    for (std::uint64_t number = 1; number <= 200; ++number) BOOST_TEST(parts.append(number, frame_of(number)));
    BOOST_TEST(!parts.append(202, frame_of(202)));
    BOOST_TEST(parts.append(200, frame_of(200)));   // again, after an answer that was lost
    BOOST_TEST(!parts.append(200, frame_of(201)));  // another one
    PretendedLog other_log(messages, small);
    FrameParts other(other_log);
    BOOST_TEST(other.range().first == 1U);
    BOOST_TEST(other.range().last == 200U);
    for (std::uint64_t number = 1; number <= 200; ++number) BOOST_TEST((other.read(number) == frame_of(number)));
    for (const std::uint64_t number : {200U, 1U, 77U, 78U, 3U, 199U, 100U}) BOOST_TEST((other.read(number) == frame_of(number)));
    BOOST_TEST(throws(errc::not_found, [&] { (void)other.read(201); }));
    BOOST_TEST(parts.append(201, frame_of(201)));
    BOOST_TEST(other.range().last == 201U);
    BOOST_TEST((other.read(201) == frame_of(201)));
}

BOOST_AUTO_TEST_CASE(a_frame_is_looked_up_with_few_questions) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log);
    for (std::uint64_t number = 1; number <= 10'000; ++number) BOOST_TEST(parts.append(number, frame_of(number, number % 1000 == 0 ? 95 : 8)));
    PretendedLog other_log(messages, small);
    FrameParts other(other_log);
    (void)other.range();
    for (const std::uint64_t number : {1U, 2U, 999U, 1000U, 1001U, 5000U, 9998U, 10'000U}) {
        messages.asked = 0;
        BOOST_TEST((other.read(number) == frame_of(number, number % 1000 == 0 ? 95 : 8)));
        BOOST_TEST(messages.asked < 80U, number << " " << messages.asked);
    }
    messages.asked = 0;
    for (std::uint64_t number = 2000; number < 2990; ++number) BOOST_TEST((other.read(number) == frame_of(number, number % 1000 == 0 ? 95 : 8)));
    BOOST_TEST(messages.asked < 60U);  // they come many at a time
}

BOOST_AUTO_TEST_CASE(a_large_frame_is_in_flight_in_pieces_and_whole_behind_what_others_put_between) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log);
    BOOST_TEST(parts.append(1, frame_of(1, 1000)));
    BOOST_TEST(log.largest_flight == 16U);  // of a hundred
    PretendedLog other_log(messages, small);
    FrameParts other(other_log);
    BOOST_TEST((other.read(1) == frame_of(1, 1000)));

    // Another writer's part lands in the middle of a flight: a run that breaks off there, which is void, and nothing of ours behind it.
    unsigned sent = 0;
    log.before_next = [&] {
        if (++sent != 5) return;
        const PartHead head{2, 0, 0, 3};
        const auto bytes = std::as_bytes(std::span(&head, 1));
        messages.there.emplace(++messages.last, std::vector<std::byte>(bytes.begin(), bytes.end()));
    };
    BOOST_TEST(parts.append(2, frame_of(2, 300)));
    BOOST_TEST(parts.append(3, frame_of(3, 300)));
    for (std::uint64_t number = 2; number <= 3; ++number) BOOST_TEST((other.read(number) == frame_of(number, 300)));
    BOOST_TEST(other.range().last == 3U);
}

BOOST_AUTO_TEST_CASE(answers_of_servers_are_understood) {
    BOOST_TEST(answer_of(R"({"stream":"TAIYEN_bank","seq":4711})").sequence == 4711U);
    BOOST_TEST(answer_of(R"({"stream": "seq", "seq": 12, "domain": "here", "duplicate": true})").sequence == 12U);
    const Answer refused =
        answer_of(R"({"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 5"},"stream":"TAIYEN_bank","seq":0})");
    BOOST_TEST(refused.sequence == 0U);
    BOOST_TEST(refused.code == 10071);
    BOOST_TEST(refused.description == "wrong last sequence: 5");
    for (const char* const nothing : {"", "{}", "{\"seq\":}", "{\"error\":", "+OK"}) {
        BOOST_TEST(answer_of(nothing).sequence == 0U, nothing);
        BOOST_TEST(answer_of(nothing).code == 0, nothing);
    }
}

BOOST_AUTO_TEST_CASE(what_is_trimmed_is_gone_and_numbers_go_on) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log);
    for (std::uint64_t number = 1; number <= 30; ++number) BOOST_TEST(parts.append(number, frame_of(number)));
    parts.trim(11);
    BOOST_TEST(parts.range().first == 11U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)parts.read(10); }));
    BOOST_TEST((parts.read(11) == frame_of(11)));
    parts.trim(5);  // no way back
    BOOST_TEST(throws(errc::not_found, [&] { parts.trim(31); }));
    PretendedLog other_log(messages, small);
    FrameParts other(other_log);
    BOOST_TEST(other.range().first == 11U);
    BOOST_TEST(other.range().last == 30U);
    BOOST_TEST(other.append(31, frame_of(31)));
    BOOST_TEST(parts.append(31, frame_of(31)));
    BOOST_TEST(!parts.append(10, frame_of(10)));
}

BOOST_AUTO_TEST_CASE(a_frame_that_breaks_off_is_not_there_and_is_appended_again_as_a_whole) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log);
    BOOST_TEST(parts.append(1, frame_of(1, 5)));
    unsigned calls = 0;
    log.fate = [&] { return ++calls == 3 ? PretendedLog::Fate::away : PretendedLog::Fate::works; };
    BOOST_TEST(throws(errc::unreachable, [&] { parts.append(2, frame_of(2, 45)); }));
    BOOST_TEST(messages.there.size() == 3U);
    BOOST_TEST(parts.range().last == 1U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)parts.read(2); }));
    {
        PretendedLog other_log(messages, small);
        FrameParts other(other_log);
        BOOST_TEST(other.range().last == 1U);
        BOOST_TEST(other.append(2, frame_of(2, 24, 1)));  // by somebody else, who takes the place
        BOOST_TEST(other.range().last == 2U);
    }
    BOOST_TEST(!parts.append(2, frame_of(2, 45)));
    BOOST_TEST((parts.read(2) == frame_of(2, 24, 1)));
    BOOST_TEST(parts.append(3, frame_of(3)));
    parts.trim(2);
    BOOST_TEST((parts.read(2) == frame_of(2, 24, 1)));
}

BOOST_AUTO_TEST_CASE(an_end_that_an_engine_has_lost_is_noticed_and_frames_are_found_where_they_were_appended_again) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log, milliseconds(0));
    for (std::uint64_t number = 1; number <= 20; ++number) BOOST_TEST(parts.append(number, frame_of(number, 45)));
    PretendedLog reader_log(messages, small);
    FrameParts reader(reader_log);
    for (std::uint64_t number = 1; number <= 15; ++number) BOOST_TEST((reader.read(number) == frame_of(number, 45)));
    // The last six and a half are gone, and their numbers are given again.
    messages.last = 14 * 5 - 2;
    messages.there.erase(messages.there.upper_bound(messages.last), messages.there.end());
    BOOST_TEST(!parts.append(21, frame_of(21)));
    BOOST_TEST(parts.range().last == 13U);
    for (std::uint64_t number = 14; number <= 24; ++number) BOOST_TEST(parts.append(number, frame_of(number, 7, 3)));
    BOOST_TEST(reader.range().last == 24U);
    for (std::uint64_t number = 16; number <= 24; ++number) BOOST_TEST((reader.read(number) == frame_of(number, 7, 3)));
    // From the middle: those in front and behind are found.
    messages.there.erase(messages.there.find(5 * 5 + 1), messages.there.find(9 * 5 + 1));
    for (const std::uint64_t number : {5U, 10U, 13U, 24U})
        BOOST_TEST((reader.read(number) == frame_of(number, number < 14 ? 45 : 7, number < 14 ? 0 : 3)));
    for (const std::uint64_t number : {6U, 7U, 9U}) BOOST_TEST(throws(errc::not_found, [&] { (void)reader.read(number); }));
    // All of it.
    messages.there.clear();
    BOOST_TEST(reader.range().empty());
    BOOST_TEST(!parts.append(25, frame_of(25)));
    BOOST_TEST(parts.append(1, frame_of(1)));
    BOOST_TEST((reader.read(1) == frame_of(1)));
    messages = {};
    BOOST_TEST(reader.range().empty());
    BOOST_TEST(!parts.append(2, frame_of(2)));
    BOOST_TEST(parts.append(1, frame_of(1, 33)));
    BOOST_TEST((reader.read(1) == frame_of(1, 33)));
}

BOOST_AUTO_TEST_CASE(a_run_that_broke_off_hides_no_frame_whatever_its_number) {
    {
        Messages messages;
        PretendedLog log(messages, small);
        FrameParts parts(log, milliseconds(0));
        for (std::uint64_t number = 1; number <= 10; ++number) BOOST_TEST(parts.append(number, frame_of(number, 8)));
        unsigned calls = 0;
        log.fate = [&] { return ++calls == 2 ? PretendedLog::Fate::away : PretendedLog::Fate::works; };
        BOOST_TEST(throws(errc::unreachable, [&] { parts.append(11, frame_of(11, 25)); }));
        messages.there.erase(10);  // an engine loses the frame in front of it
        BOOST_TEST(parts.append(10, frame_of(10, 9)));
        BOOST_TEST(parts.append(10, frame_of(10, 9)));
        BOOST_TEST(parts.append(11, frame_of(11, 3)));
        PretendedLog other_log(messages, small);
        FrameParts other(other_log);
        BOOST_TEST(other.range().last == 11U);
        for (const std::uint64_t number : {11U, 10U, 9U, 1U}) BOOST_TEST((other.read(number) == parts.read(number)));
        BOOST_TEST((other.read(10) == frame_of(10, 9)));
    }
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log, milliseconds(0));
    for (std::uint64_t number = 1; number <= 20; ++number) BOOST_TEST(parts.append(number, frame_of(number, 8)));
    unsigned calls = 0;
    log.fate = [&] {
        if (++calls == 2)
            messages.there.erase(messages.there.begin(), std::prev(messages.there.end()));  // purged, but for the part that has just come
        return calls == 2 ? PretendedLog::Fate::away : PretendedLog::Fate::works;
    };
    BOOST_TEST(throws(errc::unreachable, [&] { parts.append(21, frame_of(21, 25)); }));
    BOOST_TEST(messages.there.size() == 1U);
    BOOST_TEST(!parts.append(21, frame_of(21, 25)));
    for (std::uint64_t number = 1; number <= 5; ++number) BOOST_TEST(parts.append(number, frame_of(number, 12)));
    PretendedLog other_log(messages, small);
    FrameParts other(other_log);
    BOOST_TEST(other.range().first == 1U);
    BOOST_TEST(other.range().last == 5U);
    for (std::uint64_t number = 5; number >= 1; --number) BOOST_TEST((other.read(number) == frame_of(number, 12)));
}

BOOST_AUTO_TEST_CASE(what_somebody_else_published_is_no_frame) {
    Messages messages;
    PretendedLog log(messages, small);
    FrameParts parts(log);
    BOOST_TEST(parts.append(1, frame_of(1)));
    messages.there.emplace(++messages.last, std::vector<std::byte>(3));
    BOOST_TEST(throws(errc::corrupt, [&] { (void)parts.range(); }));
    messages.there[messages.last].assign(40, std::byte{0x41});
    BOOST_TEST(throws(errc::corrupt, [&] { (void)parts.range(); }));
}

// Two take turns in appending the next frame, while answers are lost and parts break off: each frame is one's, as a whole, and both and a third one read the same.
BOOST_AUTO_TEST_CASE(of_two_writers_exactly_one_appends_each_frame) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (unsigned round = 0; round < 300; ++round) {
        Messages messages;
        PretendedLog logs[2] = {{messages, small}, {messages, small}};
        FrameParts writers[2] = {FrameParts(logs[0]), FrameParts(logs[1])};
        for (PretendedLog& log : logs) {
            log.fate = [&] {
                const unsigned what = static_cast<unsigned>(random() % 10);
                return what == 0 ? PretendedLog::Fate::away : what == 1 ? PretendedLog::Fate::loses_answer : PretendedLog::Fate::works;
            };
        }
        std::map<std::uint64_t, std::vector<std::byte>> won;
        std::optional<std::pair<std::uint64_t, std::vector<std::byte>>> pending[2];
        for (unsigned step = 0; step < 60; ++step) {
            const unsigned who = static_cast<unsigned>(random() % 2);
            try {
                if (!pending[who]) {
                    const std::uint64_t number = writers[who].range().last + 1;
                    pending[who].emplace(number, frame_of(number, random() % 45, who + 1));
                }
                const auto& [number, frame] = *pending[who];
                if (writers[who].append(number, frame)) {
                    const auto [found, is_new] = won.emplace(number, frame);
                    BOOST_TEST_REQUIRE((is_new || found->second == frame));
                }
                pending[who].reset();
            } catch (const Error& error) {
                BOOST_TEST_REQUIRE((error.code() == errc::unreachable));
            }
        }
        PretendedLog third_log(messages, small);
        FrameParts third(third_log);
        const std::uint64_t last = third.range().last;
        for (const auto& [number, frame] : won) {
            BOOST_TEST_REQUIRE(number <= last);
            BOOST_TEST_REQUIRE((third.read(number) == frame));
        }
        for (std::uint64_t number = 1; number <= last; ++number) BOOST_TEST_REQUIRE((writers[0].read(number) == third.read(number)));
        for (std::uint64_t number = last; number >= 1; --number) BOOST_TEST_REQUIRE((writers[1].read(number) == writers[0].read(number)));
    }
}

/// As a server has it: each message of a flight arrives by itself, and is taken if the one that it expects is the newest, whatever became of those before it.
struct RacingServerLog final : MessageLog {
    RacingServerLog(Messages& the_messages, std::size_t bytes) : messages(the_messages), message_bytes(bytes) {}
    std::string name() const override { return "served"; }
    std::size_t message_bytes_max() const override { return message_bytes; }
    std::optional<State> state() override { return plain.state(); }
    void create() override { plain.create(); }
    std::optional<Placed> append(std::span<const Outgoing> outgoing, std::uint64_t after) override {
        Placed placed{~std::uint64_t{0}, 0};
        bool is_refused = false;
        for (std::size_t i = 0; i < outgoing.size(); ++i) {
            if (before_arrival) before_arrival(i);
            if (messages.last == after + i) {
                std::vector<std::byte> bytes(outgoing[i].head.begin(), outgoing[i].head.end());
                bytes.insert(bytes.end(), outgoing[i].body.begin(), outgoing[i].body.end());
                messages.there.emplace(++messages.last, std::move(bytes));
                placed = {std::min(placed.first, messages.last), messages.last};
            } else {
                is_refused = true;
            }
        }
        if (is_refused) return std::nullopt;
        return placed;
    }
    std::optional<Message> get(std::uint64_t sequence) override { return plain.get(sequence); }
    std::vector<Message> get_many(std::uint64_t sequence, std::size_t count) override { return plain.get_many(sequence, count); }
    void trim(std::uint64_t first) override { plain.trim(first); }
    Messages& messages;
    const std::size_t message_bytes;
    PretendedLog plain{messages, message_bytes};
    std::function<void(std::size_t)> before_arrival;
};

BOOST_AUTO_TEST_CASE(flights_of_two_writers_never_mix) {
    Messages messages;
    RacingServerLog logs[2] = {{messages, small}, {messages, small}};
    FrameParts writers[2] = {FrameParts(logs[0]), FrameParts(logs[1])};
    BOOST_TEST(writers[0].append(1, frame_of(1, 5)));
    BOOST_TEST(writers[1].range().last == 1U);
    const auto mine = frame_of(2, 40, 1);
    const auto other = frame_of(2, 40, 2);
    bool won_other = false;
    bool is_begun = false;
    logs[0].before_arrival = [&](std::size_t i) {
        if (i != 1 || is_begun) return;
        is_begun = true;
        won_other = writers[1].append(2, other);
    };
    const bool won_mine = writers[0].append(2, mine);
    BOOST_TEST((won_mine || won_other));
    RacingServerLog log(messages, small);
    FrameParts third(log);
    BOOST_TEST(third.range().last == 2U);
    const auto found = third.read(2);
    BOOST_TEST((found == mine || found == other));
}

struct LateFlight {
    Messages messages;
    RacingServerLog logs[2] = {{messages, small}, {messages, small}};
    FrameParts writers[2] = {FrameParts(logs[0]), FrameParts(logs[1])};
    LateFlight() {
        for (std::uint64_t number = 1; number <= 4; ++number) BOOST_TEST(writers[0].append(number, frame_of(number, 5)));
        BOOST_TEST(writers[1].range().last == 4U);
        // The former owner's large frame goes slowly, while the one that was promoted appends small ones.
        bool is_begun = false;
        logs[1].before_arrival = [&](std::size_t i) {
            if (i == 0 && !is_begun) {
                is_begun = true;
                for (std::uint64_t number = 5; number <= 7; ++number) BOOST_TEST(writers[0].append(number, frame_of(number, 5)));
            }
        };
        BOOST_TEST(!writers[1].append(5, frame_of(5, 80, 1)));
        for (std::uint64_t number = 8; number <= 9; ++number) BOOST_TEST(writers[0].append(number, frame_of(number, 5)));
    }
};

BOOST_AUTO_TEST_CASE(a_late_flight_hides_no_frame) {
    LateFlight late;
    for (std::uint64_t number = 1; number <= 9; ++number) {
        RacingServerLog log(late.messages, small);
        FrameParts third(log);
        BOOST_TEST(third.range().last == 9U);
        try {
            BOOST_TEST((third.read(number) == frame_of(number, 5)));
        } catch (const Error& error) {
            BOOST_ERROR("frame " << number << ": " << error.what());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_late_flight_lets_no_frame_be_trimmed) {
    LateFlight late;
    late.writers[0].trim(7);
    RacingServerLog log(late.messages, small);
    FrameParts third(log);
    BOOST_TEST(third.range().first == 7U);
}

BOOST_AUTO_TEST_CASE(the_rest_of_a_late_flight_hides_no_frame) {
    Messages messages;
    RacingServerLog logs[2] = {{messages, small}, {messages, small}};
    FrameParts writers[2] = {FrameParts(logs[0]), FrameParts(logs[1])};
    for (std::uint64_t number = 1; number <= 4; ++number) BOOST_TEST(writers[0].append(number, frame_of(number, 5)));
    BOOST_TEST(writers[1].range().last == 4U);
    int arrivals = 0;
    logs[1].before_arrival = [&](std::size_t) {
        if (++arrivals != 2) return;  // its first part is there
        for (std::uint64_t number = 5; number <= 7; ++number) BOOST_TEST(writers[0].append(number, frame_of(number, 5)));
    };
    BOOST_TEST(!writers[1].append(5, frame_of(5, 80, 1)));
    for (std::uint64_t number = 8; number <= 12; ++number) BOOST_TEST(writers[0].append(number, frame_of(number, 5)));
    for (std::uint64_t number = 1; number <= 12; ++number) {
        RacingServerLog log(messages, small);
        FrameParts third(log);
        BOOST_TEST(third.range().last == 12U);
        try {
            BOOST_TEST((third.read(number) == frame_of(number, 5)));
        } catch (const Error& error) {
            BOOST_ERROR("frame " << number << ": " << error.what());
        }
    }
    for (std::uint64_t number = 2; number <= 12; ++number) {
        writers[0].trim(number);
        RacingServerLog log(messages, small);
        FrameParts third(log);
        BOOST_TEST(third.range().first == number);
        BOOST_TEST((third.read(number) == frame_of(number, 5)));
    }
}

BOOST_AUTO_TEST_SUITE_END()
