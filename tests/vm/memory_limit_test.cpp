#include "vm/memory_limit.hpp"

#include <fstream>
#include <optional>
#include <string>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"

namespace {

using namespace taiyen;

/// A made-up machine: what a process sees of its control groups.
class Machine {
public:
    Machine& file(const std::string& path, const std::string& text) {
        const auto where = folder_ / path;
        std::filesystem::create_directories(where.parent_path());
        std::ofstream(where) << text;
        return *this;
    }
    std::optional<ByteCount> limit() const { return vm::group_memory_limit(folder_ / "proc", folder_.path()); }

private:
    ScratchDirectory folder_;
};

constexpr const char* mounted = "25 1 0:22 / / rw - ext4 /dev/sda1 rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* mounted_old =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 master:2 - cgroup cgroup rw,memory\n";

BOOST_AUTO_TEST_SUITE(memory_limits)

BOOST_AUTO_TEST_CASE(without_groups_there_is_no_limit) {
    BOOST_TEST(!Machine().limit());
    BOOST_TEST(!Machine().file("proc/mountinfo", "25 1 0:22 / / rw - ext4 /dev/sda1 rw\n").file("proc/cgroup", "0::/a\n").limit());
    BOOST_TEST(!Machine().file("proc/mountinfo", mounted).file("proc/cgroup", "").limit());
    BOOST_TEST(!Machine().file("proc/mountinfo", mounted).file("proc/cgroup", "0::/\n").limit());
    BOOST_TEST(!Machine().file("proc/mountinfo", "not\na - mountinfo\n- \n").file("proc/cgroup", "0::/\nx\n:\n").limit());
}

BOOST_AUTO_TEST_CASE(the_least_limit_of_a_group_and_those_above_it_counts) {
    Machine machine;
    machine.file("proc/mountinfo", mounted).file("proc/cgroup", "0::/user.slice/user-7.slice/app\n");
    machine.file("sys/fs/cgroup/user.slice/user-7.slice/app/memory.max", "max\n");
    BOOST_TEST(!machine.limit());
    machine.file("sys/fs/cgroup/user.slice/user-7.slice/memory.max", "5000\n");
    BOOST_TEST(machine.limit().value() == 5000U);
    machine.file("sys/fs/cgroup/user.slice/user-7.slice/app/memory.max", "7000\n");
    BOOST_TEST(machine.limit().value() == 5000U);
    machine.file("sys/fs/cgroup/user.slice/memory.max", "3000\n");
    BOOST_TEST(machine.limit().value() == 3000U);
    machine.file("sys/fs/cgroup/user.slice/user-8.slice/memory.max", "1000\n");
    BOOST_TEST(machine.limit().value() == 3000U);
}

BOOST_AUTO_TEST_CASE(in_a_container_the_folder_that_is_mounted_counts) {
    // The group's own namespace: the path is "/".
    Machine own;
    own.file("proc/mountinfo", mounted).file("proc/cgroup", "0::/\n").file("sys/fs/cgroup/memory.max", "4000\n");
    BOOST_TEST(own.limit().value() == 4000U);
    // The host's namespace, and only the container's part mounted: the path is the host's.
    Machine hosts;
    hosts.file("proc/mountinfo", "30 23 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n").file("proc/cgroup", "0::/docker/1f/inner\n");
    hosts.file("sys/fs/cgroup/memory.max", "4000\n");
    BOOST_TEST(hosts.limit().value() == 4000U);
    hosts.file("sys/fs/cgroup/inner/memory.max", "2000\n");
    BOOST_TEST(hosts.limit().value() == 2000U);
    // A group elsewhere than what is mounted.
    for (const char* const path : {"0::/docker/2e\n", "0::/../2e\n"}) {
        Machine other;
        other.file("proc/mountinfo", "30 23 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n").file("proc/cgroup", path);
        other.file("sys/fs/cgroup/memory.max", "4000\n").file("sys/fs/memory.max", "1\n").file("sys/2e/memory.max", "1\n");
        BOOST_TEST(other.limit().value() == 4000U);
    }
}

BOOST_AUTO_TEST_CASE(the_memory_controller_of_version_1_is_found_where_it_is_mounted) {
    Machine machine;
    machine.file("proc/mountinfo", mounted_old).file("proc/cgroup", "8:cpu,cpuacct:/elsewhere\n4:memory:/service/app\n0::/\n");
    BOOST_TEST(!machine.limit());
    machine.file("sys/fs/cgroup/memory/service/app/memory.limit_in_bytes", "9223372036854771712\n");
    machine.file("sys/fs/cgroup/memory/elsewhere/memory.limit_in_bytes", "10\n");
    BOOST_TEST(machine.limit().value() == 9223372036854771712U);
    machine.file("sys/fs/cgroup/memory/service/memory.limit_in_bytes", "6000\n");
    BOOST_TEST(machine.limit().value() == 6000U);
}

BOOST_AUTO_TEST_CASE(a_mount_whose_path_has_a_space_is_found) {
    Machine machine;
    machine.file("proc/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n").file("proc/cgroup", "0::/a b\n");
    machine.file("my groups/a b/memory.max", "8000\n");
    BOOST_TEST(machine.limit().value() == 8000U);
}

BOOST_AUTO_TEST_CASE(a_process_may_use_no_more_than_the_machine_has) {
    BOOST_TEST(vm::usable_memory() > 0U);
    BOOST_TEST(vm::usable_memory() <= vm::group_memory_limit().value_or(~ByteCount{0}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
