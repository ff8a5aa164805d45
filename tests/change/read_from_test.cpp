// read(2) into a heap whose writes are captured.
#include <taiyen/change/read_from.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <array>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "change/captured_core.hpp"

namespace taiyen::change {
BOOST_AUTO_TEST_SUITE(read_from_heap)

namespace {

using test::CapturedCore;

constexpr std::uint64_t user = 2U << 20U;

struct Pipe {
    Pipe() { BOOST_REQUIRE(::pipe(ends.data()) == 0); }
    ~Pipe() {
        ::close(ends[0]);
        if (ends[1] >= 0) ::close(ends[1]);
    }
    void finish() {
        ::close(ends[1]);
        ends[1] = -1;
    }
    std::array<int, 2> ends{};
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_read_alone_refuses_arrives_and_is_captured_in_every_mode) {
    for (const Capture mode : {Capture::pages, Capture::declared}) {
        CapturedCore core;
        Recorder& recorder = core.capture(mode, Audit::scope);
        const std::string text(3 * page_bytes, 'x');
        Pipe pipe;
        std::thread writer([&] {
            for (std::size_t at = 0; at < text.size();) {
                const ssize_t put = ::write(pipe.ends[1], text.data() + at, std::min<std::size_t>(text.size() - at, 1000));
                if (put > 0) at += static_cast<std::size_t>(put);
            }
            pipe.finish();
        });
        if (mode == Capture::pages) {
            const ssize_t alone = ::read(pipe.ends[0], core.base() + user, 10);
            BOOST_TEST((alone < 0 && errno == EFAULT));
        }
        // More is asked for than comes.
        BOOST_TEST(read_from(core, pipe.ends[0], core.base() + user + 100, 2 * text.size()) == text.size());
        writer.join();
        BOOST_TEST(std::memcmp(core.base() + user + 100, text.data(), text.size()) == 0);
        BOOST_TEST(recorder.counters().faults == 0U);
        ChangeSet set;
        recorder.cut(set);
        BOOST_TEST(set.size() > text.size());
        recorder.apply(set, Direction::backward);
        BOOST_TEST((core.base()[user + 100] == std::byte{0}));
    }
}

BOOST_AUTO_TEST_CASE(a_heap_without_capture_is_read_into_as_well) {
    CapturedCore core;
    Pipe pipe;
    BOOST_REQUIRE(::write(pipe.ends[1], "abc", 3) == 3);
    BOOST_TEST(read_from(core, pipe.ends[0], core.base() + user, 3) == 3U);
    BOOST_TEST(std::memcmp(core.base() + user, "abc", 3) == 0);
}

BOOST_AUTO_TEST_CASE(a_target_outside_the_heap_and_a_bad_descriptor_are_errors) {
    CapturedCore core;
    core.capture(Capture::pages);
    char outside = 0;
    const auto is = [](errc code) { return [code](const Error& error) { return error.code() == code; }; };
    BOOST_CHECK_EXCEPTION(read_from(core, 0, &outside, 1), Error, is(errc::invalid_argument));
    BOOST_CHECK_EXCEPTION(read_from(core, 0, core.base() + core.ranges().durable_bytes - 1, 2), Error, is(errc::invalid_argument));
    BOOST_CHECK_EXCEPTION(read_from(core, -1, core.base() + user, 2), Error, is(errc::io_error));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
