// Options that a heap which is there doesn't have: whoever gave them is told, and how to change the heap.

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>
#include <taiyen/store/parameters.hpp>

#include "store/heap_file.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(ignored_options)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

struct Told {
    static inline std::vector<std::string> texts;
    ReportHandler before = set_report_handler(+[](const Incident& incident) noexcept {
        texts.push_back(incident.code == errc::invalid_argument ? std::string(incident.text) : "another incident");
    });
    Told() { texts.clear(); }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    ~Told() { set_report_handler(before); }
};

struct HeapThere {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    HeapThere() {
        PersistentOptions options = small_heap(8U << 20U);
        options.log_capacity = 128U << 10U;
        HeapAccess::open(path, OpenMode::create_only, HeapKind::transactional, options)->close();
    }
    std::vector<std::string> opening(const PersistentOptions& options, HeapKind kind = HeapKind::transactional,
                                     OpenMode mode = OpenMode::open_or_create) {
        const Told told;
        HeapAccess::open(path, mode, kind, options)->close();
        return Told::texts;
    }
};
}  // namespace

BOOST_FIXTURE_TEST_CASE(options_that_were_not_given_or_are_what_the_heap_has_are_not_told, HeapThere) {
    PersistentOptions same = small_heap((8U << 20U) - 100);  // rounded up to it
    same.log_capacity = 128U << 10U;
    same.address = read_parameters(path).address;
    BOOST_TEST(opening({}).empty());
    BOOST_TEST(opening(same).empty());
    BOOST_TEST(opening({}, HeapKind::archive, OpenMode::open_only).empty());
}

BOOST_FIXTURE_TEST_CASE(each_that_was_given_and_is_not_what_the_heap_has_is_told_with_the_remedy, HeapThere) {
    const auto says = [&](const PersistentOptions& options, const std::string& remedy) {
        for (const OpenMode mode : {OpenMode::open_only, OpenMode::open_or_create}) {
            const auto told = opening(options, HeapKind::transactional, mode);
            BOOST_TEST_REQUIRE(told.size() == 1U);
            BOOST_TEST(told[0].find(path.string()) == 0U, told[0]);
            BOOST_TEST(told[0].find(remedy) != std::string::npos, told[0]);
        }
        BOOST_TEST(opening(options, HeapKind::transactional, OpenMode::read_only).empty());  // it could make nothing
    };
    says({.capacity = 16U << 20U}, "its capacity is 8388608 bytes, not the 16777216 bytes that were asked for; taiyen resize");
    says({.address = read_parameters(path).address + (std::uintptr_t{4} << 30U)}, "taiyen rebase");
    PersistentOptions log;
    log.log_capacity = 1U << 20U;
    says(log, "its log has 131072 bytes, not the 1048576 bytes that were asked for; replace_log() makes one of another size");
}

BOOST_FIXTURE_TEST_CASE(a_closed_heap_whose_log_was_removed_gets_one_as_large_as_was_asked_for, HeapThere) {
    std::filesystem::remove(path.string() + ".log");
    PersistentOptions log;
    log.log_capacity = 1U << 20U;
    BOOST_TEST(opening(log).empty());
    BOOST_TEST(std::filesystem::file_size(path.string() + ".log") > (1U << 20U));
}

BOOST_AUTO_TEST_CASE(defaults_are_made_where_nothing_was_given) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    HeapAccess::open(path, OpenMode::create_only, HeapKind::archive, {})->close();
    BOOST_TEST(read_parameters(path).capacity_bytes == std::size_t{64} << 30U);
    HeapAccess::open(path, OpenMode::open_only, HeapKind::transactional, {})->close();  // its first log
    BOOST_TEST(std::filesystem::file_size(path.string() + ".log") > std::size_t{64} << 20U);
    BOOST_TEST(std::filesystem::file_size(path.string() + ".log") < std::size_t{65} << 20U);
}

BOOST_AUTO_TEST_SUITE_END()
