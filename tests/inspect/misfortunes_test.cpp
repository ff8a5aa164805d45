// One of a heap's files is lost, zeroed, cut, damaged or old: what the next ordinary opening makes of it, for each file of each kind, closed or after a crash.
// The table in doc/reliability.md is what happens here; TAIYEN_WRITE_DOCUMENTS=1 writes it. Whatever happens, nothing is lost that a whole copy has, a refused heap is untouched, and what is wrong is told or is
// found by verify().

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>
#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/disks/simulated_node.hpp"
#include "log/ring.hpp"
#include "store/geometry.hpp"
#include "store/header.hpp"
#include "store/heap_probe.hpp"
#include "store/last_resort.hpp"
#include "txn/transaction_service.hpp"

BOOST_AUTO_TEST_SUITE(misfortunes)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

const std::filesystem::path path = "/disk/x.tyn";

struct Kind {
    const char* title;
    HeapKind kind;
    bool data;
};
constexpr Kind kinds[]{{"`ArchiveHeap`", HeapKind::archive, false},
                       {"`SnapshotHeap`", HeapKind::snapshot, true},
                       {"`TransactionalHeap`", HeapKind::transactional, false},
                       {"… with a data file", HeapKind::transactional, true}};

enum class Left { closed, crashed };

struct Silent {
    ReportHandler before = set_report_handler([](const Incident&) noexcept {});
    Silent() = default;
    Silent(const Silent&) = delete;
    Silent& operator=(const Silent&) = delete;
    ~Silent() { set_report_handler(before); }
};

PersistentOptions options_of(const Kind& kind) {
    PersistentOptions options = small_heap(ByteCount{1} << 20U);
    options.log_capacity = ByteCount{64} << 10U;
    options.snapshot_log_fill = 1e9;  // nothing but the test asks for saves
    if (kind.data) options.data_file = path.string() + ".data";
    return options;
}

store::Tuning small_journal() {
    store::Tuning tuning;
    tuning.journal_bytes = ByteCount{128} << 10U;
    return tuning;
}

/// Either heap over a disk in memory.
class Opened {
public:
    Opened(io::Storage& disk, OpenMode mode, const Kind& kind, Verify verify = Verify::automatic) {
        PersistentOptions options = options_of(kind);
        options.verify = verify;
        auto file = HeapFile::open(disk, path, mode, kind.kind, options, small_journal());
        if (kind.kind == HeapKind::transactional && mode != OpenMode::read_only) {
            txn::TransactionService::join(*file, options);
            transactional_.emplace(HeapAccess::make<TransactionalHeap>(file));
        } else {
            lower_.emplace(HeapAccess::make<ArchiveHeap>(file));
        }
    }
    ArchiveHeap& heap() { return transactional_ ? *transactional_ : *lower_; }

    /// Save or transaction `number`: new bytes, and other ones in the place of old ones.
    void step(int number) {
        std::optional<Transaction> transaction;
        if (transactional_) transaction.emplace(*transactional_);
        put(heap(), std::to_string(number), text_of(number));
        char* const mark = number == 1 ? put(heap(), "mark", std::string(mark_bytes, ' ')) : find(heap(), "mark");
        std::memset(mark, number, mark_bytes);
        if (transaction)
            transaction->commit();
        else
            heap().snapshot();
    }
    void checkpoint() {
        if (transactional_)
            transactional_->snapshot();
        else
            HeapAccess::file(*lower_).saves().checkpoint();
    }
    /// How many steps it holds; nothing: that is no content that it ever had.
    std::optional<int> steps() {
        const char* const mark = find(heap(), "mark");
        if (mark == nullptr) return 0;
        if (std::any_of(mark, mark + mark_bytes, [&](char byte) { return byte != *mark; })) return std::nullopt;
        for (int number = 1; number < 9; ++number)
            if (get(heap(), std::to_string(number)) != (number <= *mark ? text_of(number) : "(none)")) return std::nullopt;
        return *mark;
    }

private:
    static constexpr std::size_t mark_bytes = 6000;
    static std::string text_of(int number) { return std::string(5000, static_cast<char>('a' + number)); }

    std::optional<ArchiveHeap> lower_;
    std::optional<TransactionalHeap> transactional_;
};

/// A heap of four steps: two in its files, two in its journal or log; closed, it has all four in its files.
struct Life {
    const Kind kind;
    const Left left;
    io::SimulatedStorage disk;
    std::map<std::string, std::string> earlier;  ///< each file, by suffix, as it was a save earlier
    const int all = 4;

    Life(const Kind& of, Left how) : kind(of), left(how) {
        disk.add_directory("/disk");
        const Silent silent;
        {
            Opened first(disk, OpenMode::create_only, kind);
            first.step(1);
            first.heap().close();
        }
        Opened heap(disk, OpenMode::open_only, kind);
        heap.step(2);
        keep({"", ".data"});
        heap.checkpoint();
        heap.step(3);
        if (left == Left::closed) {
            heap.heap().close();
            keep({"", ".data", ring()});
            heap = Opened(disk, OpenMode::open_only, kind);
            heap.step(4);
            heap.heap().close();
        } else {
            keep({ring()});
            heap.step(4);
        }
        disk.disconnect();
        disk.mark();
    }
    std::string ring() const { return kind.kind == HeapKind::transactional ? ".log" : ".journal"; }
    bool has(const std::string& suffix) const { return disk.node(path.string() + suffix) != nullptr; }
    std::string bytes_of(const std::string& suffix) const {
        const auto node = disk.node(path.string() + suffix);
        return node == nullptr ? "(none)" : std::string(reinterpret_cast<const char*>(node->data()), node->size_bytes());
    }
    std::map<std::string, std::string> files() const {
        std::map<std::string, std::string> files;
        for (const char* suffix : {"", ".data", ".journal", ".log"}) files[suffix] = bytes_of(suffix);
        return files;
    }
    void keep(std::initializer_list<std::string> suffixes) {
        for (const std::string& suffix : suffixes) earlier[suffix] = bytes_of(suffix);
    }
    /// The file has these bytes now.
    void replace(const std::string& suffix, const std::string& bytes) {
        const auto node = disk.node(path.string() + suffix);
        node->resize(bytes.size());
        node->write(std::as_bytes(std::span(bytes)), 0);
    }
};

/// A way in which a file comes to harm, in each place where it can.
struct Misfortune {
    std::string file;  ///< its suffix
    std::string what;
    std::vector<std::function<void(Life&)>> cases;
};

void flip_page(Life& life, const std::string& file, std::uint64_t page) {
    std::string bytes = life.bytes_of(file);
    for (std::uint64_t at = page * page_bytes; at < std::min<std::uint64_t>((page + 1) * page_bytes, bytes.size()); ++at)
        bytes[at] = static_cast<char>(~bytes[at]);
    life.replace(file, bytes);
}

/// What the page of a ring's file holds.
std::string part_of_ring(const std::vector<std::uint64_t>& records, std::uint64_t end, std::uint64_t page) {
    if (page * page_bytes < log::Ring::header_bytes) return "its head";
    if (records.empty() || page * page_bytes >= end || (page + 1) * page_bytes <= records.front()) return "what is unused";
    return (page + 1) * page_bytes > records.back() ? "its newest record" : "an older record";
}

std::vector<Misfortune> misfortunes_of(Life& life) {
    std::vector<Misfortune> all;
    for (const std::string& file : {std::string(), std::string(".data"), std::string(".journal"), std::string(".log")}) {
        if (!life.has(file)) continue;
        const std::uint64_t size = life.bytes_of(file).size();
        all.push_back({file, "missing", {[=](Life& now) { now.disk.take_away(path.string() + file); }}});
        all.push_back({file, "zeroed", {[=](Life& now) { now.replace(file, std::string(size, '\0')); }}});
        Misfortune cut{file, "cut at any length", {}};
        for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{14}, std::uint64_t{4095}, std::uint64_t{4096},
                                           std::uint64_t{8192}, std::uint64_t{12288}, size / 2 + 100, size - 4096, size - 1})
            cut.cases.emplace_back([=](Life& now) { now.disk.node(path.string() + file)->resize(length); });
        all.push_back(std::move(cut));
        const bool is_ring = file == life.ring();
        std::vector<std::uint64_t> records;
        std::uint64_t end = 0;
        if (is_ring && life.left == Left::crashed) {
            const store::Header header = *store::read_slots(*life.disk.open(path, io::Access::read_only)).newest();
            const log::ScanResult found = log::Ring::scan(*life.disk.open(path.string() + file, io::Access::read_only), header.ring_identity(),
                                                          header.ring_start, [&](const log::Record& record) {
                                                              records.push_back(record.file_offset);
                                                              return true;
                                                          });
            end = log::Ring::file_offset(header.ring_identity(), found.next.position);
        }
        const std::uint64_t content = store::FileLayout().file_offset({0}) / page_bytes;
        std::map<std::string, Misfortune> parts;
        for (std::uint64_t page = 0; page < size / page_bytes; ++page) {
            const std::string part = is_ring          ? part_of_ring(records, end, page)
                                     : page < 2       ? "a header"
                                     : page < content ? "its checksum table"
                                                      : "what it holds";
            Misfortune& flipped = parts[part];
            flipped.cases.emplace_back([=](Life& now) { flip_page(now, file, page); });
        }
        for (const char* part :
             {"a header", "its checksum table", "what it holds", "its head", "an older record", "its newest record", "what is unused"}) {
            if (!parts.contains(part)) continue;
            all.push_back({file, std::string("one page flipped: ") + part, std::move(parts[part].cases)});
        }
        if (life.earlier.at(file) != "(none)")
            all.push_back({file, "older by one save", {[=](Life& now) { now.replace(file, now.earlier.at(file)); }}});
    }
    return all;
}

/// "`corrupt`".
std::string name_of_code(const Error& error) {
    constexpr std::pair<errc, const char*> names[]{
        {errc::not_found, "not_found"}, {errc::not_a_heap, "not_a_heap"},   {errc::truncated, "truncated"}, {errc::corrupt, "corrupt"},
        {errc::mismatch, "mismatch"},   {errc::log_missing, "log_missing"}, {errc::poisoned, "poisoned"}};
    for (const auto& [code, name] : names)
        if (error.code() == code) return "`" + std::string(name) + "`";
    throw error;
}

/// Does what the refusal says, and opens again: the heap's steps. Nothing: it only says that a copy would help.
std::optional<int> steps_behind_remedy(Life& life, const Misfortune& misfortune, const Error& refusal) {
    PersistentOptions options = options_of(life.kind);
    if (std::string(refusal.what()).find("--accept-last-save") != std::string::npos) {
        const store::RingRemains remains = store::look_at_remains(life.disk, path, options, small_journal());
        (void)store::go_on_with_remains(life.disk, path, options, remains, std::max(remains.last_save, remains.intact_upto), small_journal());
    } else if (refusal.code() == errc::mismatch && misfortune.file.empty()) {
        life.disk.take_away(path);
    } else if (refusal.code() == errc::mismatch) {
        options.detach_data_file = true;
        HeapFile::open(life.disk, path, OpenMode::open_only, HeapKind::archive, options, small_journal());
    } else {
        return std::nullopt;
    }
    Opened heap(life.disk, OpenMode::open_only, life.kind);
    BOOST_TEST(heap.heap().verify().ok());
    return heap.steps();
}

/// One misfortune, the ordinary opening behind it, and work that goes on: in the words of the page.
std::string outcome_of(Life& life, const Misfortune& misfortune) {
    const auto before = life.files();
    int steps = life.all;
    bool opened = false;
    try {
        Opened heap(life.disk, OpenMode::open_only, life.kind);
        opened = true;
        const std::optional<int> found = heap.steps();
        if (!found) {
            BOOST_TEST(!heap.heap().verify().ok());
            return "read wrong";
        }
        heap.step(steps = *found + 1);
        heap.heap().close();
        Opened again(life.disk, OpenMode::open_only, life.kind);
        BOOST_TEST(again.steps().value_or(-1) == steps);
        const bool whole = again.heap().verify().ok();
        if (*found == life.all) return whole ? "all there" : "unhealed";
        BOOST_TEST(whole);
        return "older";
    } catch (const Error& error) {
        // Recovery may come upon a damaged page when it has begun.
        BOOST_TEST((opened || error.code() == errc::corrupt || life.files() == before), error.what());
        const std::string said = name_of_code(error) + (opened ? " when used" : "");
        const std::optional<int> left = steps_behind_remedy(life, misfortune, error);
        return !left ? said : said + (*left == steps ? ", all there" : ", last resort");
    }
}

/// Whether the heap has a second copy of what is in the file.
bool has_copy(const Life& life, const std::string& file) { return life.kind.data && (file.empty() || file == ".data"); }

using Rows = std::vector<std::pair<std::string, std::map<const Kind*, std::string>>>;  // by file and harm, in the order of the page

/// Lines of the page, a heap's file in each.
Rows rows_of(Left left) {
    constexpr const char* files[]{"its own file", "data file", "journal or log"};
    constexpr const char* harms[]{"missing",
                                  "zeroed",
                                  "cut at any length",
                                  "one page flipped: a header",
                                  "one page flipped: its checksum table",
                                  "one page flipped: what it holds",
                                  "one page flipped: its head",
                                  "one page flipped: an older record",
                                  "one page flipped: its newest record",
                                  "one page flipped: what is unused",
                                  "older by one save"};
    std::map<std::string, std::map<const Kind*, std::string>> found;
    for (const Kind& kind : kinds) {
        Life life(kind, left);
        for (const Misfortune& misfortune : misfortunes_of(life)) {
            std::set<std::string> outcomes;
            for (const auto& apply : misfortune.cases) {
                BOOST_TEST_CONTEXT(kind.title << (left == Left::closed ? ", closed, x.tyn" : ", crashed, x.tyn") << misfortune.file << " "
                                              << misfortune.what) {
                    apply(life);
                    const std::string outcome = outcome_of(life, misfortune);
                    if (has_copy(life, misfortune.file)) BOOST_TEST((outcome.ends_with("all there") || outcome == "unhealed"), outcome);
                    outcomes.insert(outcome);
                    life.disk.rollback();
                }
            }
            std::string cell;
            for (const std::string& outcome : outcomes) cell += (cell.empty() ? "" : "; ") + outcome;
            found[std::string(files[misfortune.file.empty() ? 0 : misfortune.file == ".data" ? 1 : 2]) + " | " + misfortune.what][&kind] = cell;
        }
    }
    Rows rows;
    for (const char* file : files)
        for (const char* harm : harms)
            if (const auto row = found.find(std::string(file) + " | " + harm); row != found.end()) rows.emplace_back(row->first, row->second);
    return rows;
}

std::string table_of(Left left) {
    std::string text = std::string("| ") + (left == Left::closed ? "of a heap that was closed" : "after a crash") + " | what happened to it |";
    for (const Kind& kind : kinds) text += std::string(" ") + kind.title + " |";
    text += "\n|---|---|---|---|---|---|\n";
    for (const auto& [file_and_harm, cells] : rows_of(left)) {
        text += "| " + file_and_harm + " |";
        for (const Kind& kind : kinds) text += cells.contains(&kind) ? " " + cells.at(&kind) + " |" : " – |";
        text += "\n";
    }
    return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_happens_is_what_the_page_says) {
    const Silent silent;
    const std::filesystem::path page = std::filesystem::path(TAIYEN_TESTS_DIR).parent_path() / "doc" / "reliability.md";
    const std::string begin = "<!-- table: tests/inspect/misfortunes_test.cpp -->\n";
    const std::string end = "<!-- end of table -->";
    const std::string made = begin + table_of(Left::closed) + "\n" + table_of(Left::crashed);
    std::string text = file_bytes(page);
    const std::size_t from = text.find(begin);
    const std::size_t to = text.find(end, from);
    BOOST_TEST_REQUIRE((from != std::string::npos && to != std::string::npos));
    if (std::getenv("TAIYEN_WRITE_DOCUMENTS") != nullptr) {
        std::ofstream(page, std::ios::binary) << text.replace(from, to - from, made);
        return;
    }
    BOOST_TEST(text.substr(from, to - from) == made, "doc/reliability.md has another table than\n" << made << "TAIYEN_WRITE_DOCUMENTS=1 writes it");
}

BOOST_AUTO_TEST_SUITE_END()
