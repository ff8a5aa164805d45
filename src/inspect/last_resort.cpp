#include <taiyen/inspect/last_resort.hpp>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/repair.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "store/last_resort.hpp"

namespace taiyen {
namespace {

/// What the ordinary opening says; empty: it opens. Throws: Error that says nothing of damage.
std::string problem_of(const std::filesystem::path& path, PersistentOptions options) {
    options.verify = Verify::changes;
    try {
        const ArchiveHeap heap(open_read_only, path, options);
        return {};
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        return error.what();
    }
}

std::string number(std::uint64_t value) { return std::to_string(value); }

void tell(LastResort& told) {
    const std::string one = told.has_log ? "transaction" : "save";
    const std::string next = number(told.goes_on_from + 1);
    const auto say = [&](std::string sentence) { told.sentences.push_back(std::move(sentence)); };
    if (told.goes_on_from == told.last_save || !told.has_log) {
        say("the last save is whole: it contains everything up to " + one + " " + number(told.goes_on_from));
    } else {
        say("the last save is whole, and the log intact up to " + one + " " + number(told.intact_up_to) + ": it is replayed up to " +
            number(told.goes_on_from));
    }
    say("given up: " + one + " " + next + " and all behind it");
    say(told.known_lost != 0 ? "lost: at least " + number(told.known_lost) + " " + one + (told.known_lost == 1 ? "" : "s") + ", " + next + " to " +
                                   number(told.goes_on_from + told.known_lost)
                             : "how many are lost is unknown: what is left tells of none");
    say("when they were made is unknown: records have no times");
    if (told.has_log && told.goes_on_from < told.intact_up_to)
        say("the log is intact up to transaction " + number(told.intact_up_to) + ": --up-to-serial " + number(told.intact_up_to) + " gives up less");
    say("an undo history is as of that point, and its later steps are gone");
}

LastResort told_of(const store::RingRemains& remains, const LastResortOptions& options, const std::filesystem::path& path) {
    LastResort told;
    told.needed = true;
    told.has_log = remains.is_log;
    told.damage = remains.damage;
    told.last_save = remains.last_save;
    told.intact_up_to = remains.intact_upto;
    told.goes_on_from = remains.last_save;
    if (options.up_to_serial) {
        const std::uint64_t wanted = *options.up_to_serial;
        if (!remains.is_log) throw Error(errc::invalid_argument, path, "the heap has no transaction log to replay; accept its last save instead");
        if (wanted < remains.last_save || wanted > remains.intact_upto)
            throw Error(errc::invalid_argument, path,
                        "serial " + number(wanted) + " can't be reached: the last save contains " + number(remains.last_save) +
                            ", and the log is intact up to " + number(remains.intact_upto));
        told.goes_on_from = wanted;
    }
    told.known_lost = remains.seen_upto > told.goes_on_from ? remains.seen_upto - told.goes_on_from : 0;
    tell(told);
    return told;
}

LastResort resort(const std::filesystem::path& path, const LastResortOptions& options, bool carries_out) {
    PersistentOptions how = options.heap;
    how.verify = Verify::changes;  // all is proven here
    const std::string problem = problem_of(path, how);
    if (problem.empty()) {
        LastResort told;
        told.sentences.emplace_back("the heap opens as it is: nothing is given up");
        return told;
    }
    const store::RingRemains remains = store::look_at_remains(io::posix_storage(), path, how);
    LastResort told = told_of(remains, options, path);
    told.problem = problem;
    if (!carries_out) return told;
    for (const store::KeptCopy& copy : store::go_on_with_remains(io::posix_storage(), path, how, remains, told.goes_on_from)) {
        told.kept.push_back({copy.file, copy.kept});
        told.sentences.push_back("kept: " + copy.file.string() + " as it was, in " + copy.kept.string());
    }
    told.done = true;
    return told;
}

}  // namespace

LastResort look_at_last_resort(const std::filesystem::path& path, const LastResortOptions& options) { return resort(path, options, false); }
LastResort last_resort(const std::filesystem::path& path, const LastResortOptions& options) { return resort(path, options, true); }

}  // namespace taiyen
