#include <taiyen/store/parameters.hpp>
#include <taiyen/transfer/resize.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

Exit run_resize(const Given& given) {
    if (!given.value("capacity")) throw Error(errc::invalid_argument, "resize needs --capacity BYTES, such as 4G, or --capacity 0 for the least one");
    const std::size_t before = set_capacity(given.files[0], given.bytes("capacity", 0), given.heap_options());
    const std::size_t now = read_parameters(given.files[0]).capacity_bytes;
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("old_capacity_bytes", std::uint64_t{before})
            .member("capacity_bytes", std::uint64_t{now})
            .end_object();
        print(json);
    } else {
        print("capacity " + bytes_text(now) + (before == now ? ", as before\n" : ", was " + bytes_text(before) + "\n"));
    }
    return Exit::ok;
}

}  // namespace

Command resize_command() {
    return {"resize",
            "Gives a heap another capacity",
            "Changes how far the heap may grow, in place: addresses, names and the undo history stay. A capacity is address space, not disk. By one "
            "save, so that a crash leaves the heap with the old capacity or the new "
            "one. A heap that was not closed is recovered first. Once the part is in use that a capacity between two powers of two cuts short, it "
            "can't change any more; 'convert --capacity' makes a heap of another one "
            "then.",
            {"FILE"},
            {{"capacity", "BYTES", "the new one, such as 4G; 0: the least that what is in use allows"}},
            "",
            run_resize};
}

}  // namespace taiyen::tool
