#include "change/procedure_calls.hpp"

#include <cstring>

#include <boost/test/unit_test.hpp>

#include "change/captured_core.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::change;
using namespace taiyen::change::test;

void fill(std::byte* bytes, std::uint8_t value) { std::memset(bytes, value, 40'000); }

struct Procedures {
    Procedures() {
        register_procedure(
            "flip",
            [](ProcedureHeap&, std::byte* bytes) {
                for (std::size_t i = 0; i < 40'000; ++i) bytes[i] ^= std::byte{0xff};
            },
            [](ProcedureHeap&, std::byte* bytes) {
                for (std::size_t i = 0; i < 40'000; ++i) bytes[i] ^= std::byte{0xff};
            });
        register_procedure(
            "count", [](ProcedureHeap&, std::byte* bytes) { fill(bytes, static_cast<std::uint8_t>(++calls)); },
            [](ProcedureHeap&, std::byte* bytes) { fill(bytes, 0); });
        register_procedure(
            "throw",
            [](ProcedureHeap&, std::byte* bytes) {
                fill(bytes, 9);
                throw std::runtime_error("no");
            },
            [](ProcedureHeap&, std::byte*) {});
    }
    static inline int calls = 1;
};

struct CallsFixture {
    CallsFixture() {
        static const Procedures registered;
        recorder.begin_scope();
        fill(bytes, 1);
        ChangeSet ignored;
        recorder.cut(ignored);
        recorder.end_scope();
    }
    CapturedCore core;
    std::byte* const bytes = static_cast<std::byte*>(core.allocate_durable(40'000, 16));
    Recorder& recorder = core.capture(Capture::pages);
    ProcedureCalls calls{core};
    ByteCount mapped = core.ranges().durable_bytes;

    struct Made {
        ChangeSet changes;
        ChangeSet call;
    };
    Made call(std::string_view name) {
        ArgumentWriter arguments(core);
        arguments.put_pointer(bytes);
        Made made;
        recorder.begin_scope();
        calls.call(recorder, mapped, name, signature<std::byte*>(), arguments.bytes, made.changes, made.call);
        recorder.end_scope();
        return made;
    }
    void repeat(const ChangeSet& call, Direction direction, ChangeSet& changes) {
        recorder.begin_scope();
        struct End {
            Recorder& recorder;
            ~End() { recorder.end_scope(); }
        } end{recorder};
        calls.repeat(recorder, mapped, stored(call), direction, changes);
    }
    StoredCall stored(const ChangeSet& call) {
        std::optional<StoredCall> found;
        call.for_each(Direction::forward, [&](const Entry& entry) { found = calls.stored(entry); });
        return *found;
    }
    errc code_of(auto&& action) {
        try {
            action();
        } catch (const Error& error) {
            return static_cast<errc>(error.code().value());
        }
        return errc{};
    }
};

BOOST_FIXTURE_TEST_SUITE(procedure_calls, CallsFixture)

BOOST_AUTO_TEST_CASE(a_call_is_shorter_than_what_it_changed_and_is_taken_back_and_repeated) {
    const std::vector<std::byte> before = core.image();
    const Made made = call("flip");
    const std::vector<std::byte> after = core.image();
    BOOST_TEST(made.call.size() < 1024U);
    BOOST_TEST(made.changes.size() >= 2 * 40'000U);
    ChangeSet changes;
    repeat(made.call, Direction::backward, changes);
    BOOST_TEST((core.image() == before));
    changes.clear();
    repeat(made.call, Direction::forward, changes);
    BOOST_TEST((core.image() == after));
}

BOOST_AUTO_TEST_CASE(replayed_without_capture_a_call_gives_the_same_bytes) {
    const Made made = call("flip");
    const std::vector<std::byte> after = core.image();
    recorder.apply(made.changes, Direction::backward);
    recorder.stop();
    calls.replay(mapped, stored(made.call));
    BOOST_TEST((core.image() == after));
    BOOST_TEST(
        (code_of([&] { calls.replay(mapped, stored(made.call)); }) == errc::history_conflict));  // the pages are not those that it was recorded on
}

BOOST_AUTO_TEST_CASE(a_procedure_that_gives_other_bytes_the_second_time_is_refused) {
    const Made made = call("count");
    recorder.apply(made.changes, Direction::backward);
    const std::vector<std::byte> before = core.image();
    ChangeSet changes;
    BOOST_TEST((code_of([&] { repeat(made.call, Direction::forward, changes); }) == errc::history_conflict));
    recorder.apply(changes, Direction::backward);
    BOOST_TEST((core.image() == before));
    recorder.stop();
    BOOST_TEST((code_of([&] { calls.replay(mapped, stored(made.call)); }) == errc::history_conflict));
}

BOOST_AUTO_TEST_CASE(a_call_that_throws_changed_nothing) {
    const std::vector<std::byte> before = core.image();
    BOOST_CHECK_THROW(call("throw"), std::runtime_error);
    recorder.end_scope();
    BOOST_TEST((core.image() == before));
    BOOST_TEST(!calls.running());
}

BOOST_AUTO_TEST_CASE(hostile_calls_are_corrupt_and_unknown_ones_missing) {
    const Made made = call("flip");
    made.call.for_each(Direction::forward, [&](const Entry& entry) {
        for (std::size_t size = 0; size < 24 + 16; size += 8) {  // head and one run
            Entry cut = entry;
            cut.arguments = entry.arguments.first(size);
            BOOST_TEST((code_of([&] { (void)calls.stored(cut); }) == errc::corrupt), "size " << size);
        }
        std::vector<std::byte> bytes(entry.arguments.begin(), entry.arguments.end());
        std::memset(bytes.data() + 24, 0xff, 8);  // the first run's page
        Entry outside = entry;
        outside.arguments = bytes;
        BOOST_TEST((code_of([&] { (void)calls.stored(outside); }) == errc::corrupt));
        Entry unknown = entry;
        unknown.name = "nobody";
        BOOST_TEST((code_of([&] { (void)calls.stored(unknown); }) == errc::missing_procedure));
        std::vector<std::byte> other(entry.arguments.begin(), entry.arguments.end());
        other[0] ^= std::byte{1};
        Entry typed = entry;
        typed.arguments = other;
        BOOST_TEST((code_of([&] { (void)calls.stored(typed); }) == errc::missing_procedure));
    });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
