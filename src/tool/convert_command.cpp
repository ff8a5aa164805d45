// `taiyen convert`.

#include <taiyen/transfer/convert.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/moving.hpp"

namespace taiyen::tool {
namespace {

Exit run_convert(const Given& given) {
    ConvertOptions options;
    take_options(given, options);
    options.files = given.heap_options();
    options.drop_history = given.has("drop-history");
    Expanded made;
    {
        ProgressLine line("converting");
        options.progress = line.progress();
        made = convert(given.files[0], given.files[1], options);
    }
    print_made(given, given.files[1], options, made);
    return Exit::ok;
}

}  // namespace

Command convert_command() {
    return {
        "convert",
        "Makes another heap of a heap: of another kind, capacity or address",
        "OUT is a new heap with what the newest save of FILE holds, whole or not there at all; nothing is ever replaced, and FILE stays as it is "
        "until you remove it. An address other than FILE's, and blocks that are laid close together, take the pointers in the heap to be found and "
        "rewritten, as rebase does: by the shapes of its types, and where they don't tell all by --conservative. The files beside OUT lie beside it.",
        {"FILE", "OUT"},
        {{"kind", "KIND", "archive, snapshot or transactional; by default what it was"},
         {"capacity", "BYTES", "another one than it had, such as 4M; a power of two if that was one"},
         {"address", "ADDRESS", "where it lies, a multiple of 2 GiB such as 0x2300_0000_0000; auto: a free place is chosen"},
         {"conservative", "", "where shapes don't tell which words are pointers, guess it by their values; each that nothing proves is listed"},
         {"list", "N", "how many guessed words are listed, in JSON, too (20)"},
         {"refuse-ambiguous", "", "fail if there is an ambiguous word"},
         {"drop-history", "", "convert a heap with an undo history; the new one has none"},
         {"accept-hashed-by-address", "", "move a heap whose containers hash pointers; their elements must be inserted again"}},
        "",
        run_convert};
}

}  // namespace taiyen::tool
