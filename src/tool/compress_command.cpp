// `taiyen compress` and `taiyen expand`.

#include <taiyen/transfer/compress.hpp>
#include <taiyen/transfer/expand.hpp>

#include <algorithm>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/moving.hpp"

namespace taiyen::tool {
namespace {

/// The second file, or the first one with another ending.
std::filesystem::path target_of(const Given& given, const char* ending) {
    if (given.files.size() > 1) return given.files[1];
    return std::filesystem::path(given.files[0]).replace_extension(ending);
}

unsigned threads_of(const Given& given) { return static_cast<unsigned>(std::min<std::size_t>(given.number("threads", 0), 1024)); }

Exit run_compress(const Given& given) {
    const std::filesystem::path target = target_of(given, ".tyz");
    CompressOptions options;
    options.codec = chosen<Codec>(given, "codec", {{"zstd", Codec::zstd}, {"lz4", Codec::lz4}, {"none", Codec::none}}, Codec::zstd);
    options.level = static_cast<int>(std::min<std::size_t>(given.number("level", 0), 1000));
    options.threads = threads_of(given);
    Compressed done;
    {
        ProgressLine line("compressing");
        options.progress = line.progress();
        done = compress_file(given.files[0], target, options, given.heap_options());
    }
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("made", target.native())
            .member("content_bytes", done.content_bytes)
            .member("stream_bytes", done.stream_bytes)
            .member("serial", done.serial.value)
            .end_object();
        print(json);
        return Exit::ok;
    }
    print(visible(target.native()) + ": " + bytes_text(done.stream_bytes) + ", " + share_text(done.stream_bytes, done.content_bytes) + " of " +
          bytes_text(done.content_bytes) + "\n");
    return Exit::ok;
}

Exit run_expand(const Given& given) {
    const std::filesystem::path target = target_of(given, ".tyn");
    const PersistentOptions companions = given.heap_options();
    ExpandOptions options;
    options.data_file = companions.data_file;
    options.log_file = companions.log_file;
    options.expanded_bytes_max = given.bytes("max", options.expanded_bytes_max);
    take_options(given, options);
    Expanded heap;
    {
        ProgressLine line("expanding");
        options.progress = line.progress();
        heap = expand_file(given.files[0], target, options);
    }
    print_made(given, target.native(), options, heap);
    return Exit::ok;
}

}  // namespace

Command compress_command() {
    return {"compress",
            "Writes what is live in a heap into one small file",
            "The file holds what the newest save holds and no free space; it is for keeping, for sending by mail, for another machine. OUT is FILE "
            "with the ending .tyz if it is left out; a "
            "compressed heap of that name is replaced when the new one is complete, anything else is left alone. The heap stays as it is.",
            {"FILE", "[OUT]"},
            {{"codec", "NAME", "zstd (small, the default), lz4 (fast) or none"},
             {"level", "N", "how hard it tries: zstd 1 to 19, lz4 1 to 12"},
             {"threads", "N", "that compress; by default one for each processor, at most 8"}},
            "",
            run_compress};
}

Command expand_command() {
    return {"expand",
            "Makes a heap out of a compressed one",
            "The new heap holds the same objects, unless asked otherwise at the same address; it has a uuid of its own and no undo history. OUT is "
            "FILE with the ending .tyn if it is left out; nothing is ever "
            "replaced. Nothing in FILE is believed before its checksum, and the heap gets its name when it is complete and was checked.",
            {"FILE", "[OUT]"},
            {{"kind", "KIND", "archive, snapshot or transactional; by default what it was"},
             {"capacity", "BYTES", "another one than it had, such as 4M; a power of two if that was one"},
             {"address", "ADDRESS", "where it lies, a multiple of 2 GiB such as 0x2300_0000_0000; auto: a free place is chosen"},
             {"conservative", "", "where shapes don't tell which words are pointers, guess it by their values; each that nothing proves is listed"},
             {"list", "N", "how many guessed words are listed, in JSON, too (20)"},
             {"refuse-ambiguous", "", "fail if there is an ambiguous word"},
             {"accept-hashed-by-address", "", "move a heap whose containers hash pointers; their elements must be inserted again"},
             {"max", "BYTES", "refuse a heap that would take more (default: 64 GiB)"},
             {"threads", "N", "that expand; by default one for each processor, at most 8"}},
            "",
            run_expand,
            "the compressed heap"};
}

}  // namespace taiyen::tool
