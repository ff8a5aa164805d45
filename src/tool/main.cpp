// The `taiyen` command: looks into heaps. Each command lies in a file of its own and calls the library.

#include <array>
#include <cstdio>
#include <exception>

#include "tool/command_line.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {

std::span<const Command> commands() {
    static const std::array all{info_command(),     ls_command(),        show_command(),     stats_command(),     verify_command(),
                                leaks_command(),    map_command(),       log_command(),      history_command(),   diff_command(),
                                recover_command(),  copy_command(),      compress_command(), expand_command(),    convert_command(),
                                migrate_command(),  scrub_command(),     repair_command(),   rebase_command(),    resize_command(),
                                sparsify_command(), replicate_command(), restore_command(),  replicas_command(),  follow_command(),
                                promote_command(),  bench_command(),     man_command(),      completion_command()};
    return all;
}

}  // namespace taiyen::tool

int main(int count, char** words) {
    using namespace taiyen::tool;
    Exit exit = Exit::failed;
    try {
        exit = run_command_line(count, words);
    } catch (const std::exception& error) {
        print_error(error);
    }
    // Results that could not be written are no results.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fputs("taiyen: standard output can't be written\n", stderr);
        exit = Exit::failed;
    }
    return static_cast<int>(exit);
}
