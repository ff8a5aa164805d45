#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "checksum.hpp"
#include "demo/console.hpp"
#include "demo/process.hpp"
#include "demo/stages.hpp"
#include "edits.hpp"

namespace cad::demo {
namespace {

constexpr int kills = 20;       ///< that strike a save
constexpr int kills_max = 200;  ///< with those that come too late

/// What the child says through its pipe, once before and once after each save. Smaller than PIPE_BUF: it arrives whole or not at all.
struct Message {
    enum class Kind : std::uint64_t { begins, saved };
    Kind kind = Kind::begins;
    std::uint64_t revision = 0;
    std::uint64_t checksum = 0;
    std::uint64_t microseconds = 0;  ///< that the save took, or, when it begins, that the last one of its size took
};

void tell(const Message& message) {
    if (write(STDOUT_FILENO, &message, sizeof message) != static_cast<ssize_t>(sizeof message)) _exit(1);  // the parent is gone
}

/// False at the end of the pipe.
bool hear(Child& child, Message& message) {
    const std::string bytes = child.read(sizeof message);
    if (bytes.size() != sizeof message) return false;
    std::memcpy(&message, bytes.data(), sizeof message);
    return true;
}

/// What the drawings contribute to the document's checksum.
std::uint64_t share_of(const Document& document, const std::vector<std::string>& names) {
    std::uint64_t sum = 0;
    for (const std::string& name : names) {
        const auto at = document.drawings.find(std::string_view(name));
        sum += at == document.drawings.end() ? 0 : checksum(name, at->second);
    }
    return sum;
}

/// What a life of the child left behind.
struct Life {
    Message saved;  ///< the last save it acknowledged
    Message begun;  ///< the last save it began
    std::uint64_t acknowledged = 0;
    bool killed = false;  ///< it did not end by itself
    bool during_save() const { return begun.revision > saved.revision; }
};

struct Tally {
    int old_state = 0;
    int new_state = 0;
    int between = 0;
    int damaged = 0;
    int ended_by_itself = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t replayed = 0;
};

/// Lets the child live for a random number of saves, then kills it at a random moment of the next.
Life live_and_die(const Setting& setting, const Message& start, std::mt19937_64& random) {
    Child child({"--edit-until-killed", "--out", setting.out.string(), "--seed", std::to_string(setting.seed)});
    Life life{start, start};
    const std::uint64_t saves = 1 + random() % 12;
    Message message;
    while (hear(child, message)) {
        if (message.kind == Message::Kind::saved) {
            life.saved = message;
            ++life.acknowledged;
            continue;
        }
        life.begun = message;
        if (life.acknowledged >= saves) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % message.microseconds));
            child.kill();
        }
    }
    const int status = child.wait();
    life.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return life;
}

/// Opens what the dead child left, and judges it.
Message judge(const Setting& setting, const Life& life, Tally& tally) {
    taiyen::SnapshotHeap heap(taiyen::open_only, setting.heap_file());
    const Document& document = *heap.find<Document>("document");
    const Message found{Message::Kind::saved, document.revision, checksum(document), 0};
    const auto is = [&](const Message& state) { return found.revision == state.revision && found.checksum == state.checksum; };
    const bool whole = heap.verify().ok() && broken_invariant(document).empty();
    tally.ended_by_itself += life.killed ? 0 : 1;
    tally.acknowledged += life.acknowledged;
    tally.replayed += heap.restoration().snapshots_replayed;
    if (!whole || !(is(life.saved) || is(life.begun)))
        ++tally.damaged;
    else if (!life.during_save())
        ++tally.between;
    else
        ++(is(life.begun) ? tally.new_state : tally.old_state);
    return found;
}

}  // namespace

int edit_until_killed(const Setting& setting) {
    taiyen::SnapshotHeap heap(taiyen::open_only, setting.heap_file());
    Document& document = *heap.find<Document>("document");
    std::uint64_t sum = checksum(document);
    std::uint64_t took_small = 200;
    std::uint64_t took_large = 20'000;
    while (true) {
        const Edit edit = next_edit(document, setting.seed);
        const std::uint64_t before = share_of(document, edit.drawings);
        apply(document, edit);
        sum += share_of(document, edit.drawings) - before + 1;  // one for the revision
        std::uint64_t& took = edit.drawings.size() > 1 ? took_large : took_small;
        tell({Message::Kind::begins, document.revision, sum, took});
        const Clock::time_point start = Clock::now();
        heap.snapshot();
        took = static_cast<std::uint64_t>(microseconds_since(start)) + 1;
        tell({Message::Kind::saved, document.revision, sum, took});
    }
}

bool kill_during_saves(const Setting& setting) {
    heading("5. Twenty kills during saves");
    say("A child edits and saves as fast as it can: lines, notes, renamed layers, new and removed drawings,");
    say("now and then a move of 250 drawings. SIGKILL strikes at a random moment of a save. Then the file is");
    say("opened here and verified, and its whole content compared with the state before and after that save.");
    Message state;
    {
        taiyen::SnapshotHeap heap(taiyen::open_only, setting.heap_file());
        const Document& document = *heap.find<Document>("document");
        state = {Message::Kind::saved, document.revision, checksum(document), 0};
    }
    std::mt19937_64 random(setting.seed);
    Tally tally;
    ProgressBar bar("killing");
    int all = 0;
    for (; tally.old_state + tally.new_state + tally.damaged < kills && all < kills_max; ++all) {
        const Life life = live_and_die(setting, state, random);
        state = judge(setting, life, tally);
        bar.show(static_cast<std::size_t>(tally.old_state + tally.new_state), kills, std::to_string(life.acknowledged) + " saves");
    }
    row("old state", std::to_string(tally.old_state), "the save under way had not become durable");
    row("new state", std::to_string(tally.new_state), "it had, before it was acknowledged");
    if (tally.between > 0) row("too late, just after the save", std::to_string(tally.between), "not among the twenty");
    row("saves acknowledged in all", grouped(tally.acknowledged), grouped(tally.replayed) + " saves replayed from the journal");
    const bool all_killed =
        verdict("every child was killed", tally.ended_by_itself == 0, tally.ended_by_itself == 0 ? "" : "some ended by themselves");
    return all_killed & verdict("damaged", tally.damaged == 0, std::to_string(tally.damaged) + " of " + std::to_string(all));
}

}  // namespace cad::demo
