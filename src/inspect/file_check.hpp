#pragma once
/// FileCheck: the files of a heap compared with their checksums: headers, checksum tables, pages. Changes nothing, and never looks at the program's memory.
///
/// (I1) A page is compared with the table page of its own file, read while nothing is saved: so a heap may be saved meanwhile, and between two pieces of work it is.
/// (I2) Saves are held for one piece at a time: a table page and the pages that it covers, at most 2 MiB; `headers_and_tables` holds them once, for the tables of all files.
/// Thread rule: one thread, which starts others.

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <taiyen/inspect/report.hpp>

#include "base/aligned_buffer.hpp"
#include "store/heap_file.hpp"

namespace taiyen::inspect {

class FileCheck {
public:
    FileCheck(const store::HeapFile& heap, const VerifyOptions& options, Report& report) : heap_(heap), options_(options), report_(report) {}

    /// Both slots of each header, all pages of all tables, and that the header stands for them.
    void headers_and_tables();
    /// The pages that the level asks for. Requires: headers_and_tables() was called.
    void pages();

    void add(Severity severity, const std::filesystem::path& path, std::uint64_t offset, std::string what);
    /// Whether what is mapped of the sequence can be looked at: a page that the device can't read, or that Verify::at_first_touch hides, would end the program there. Tells it if not: `what` was not looked at.
    bool can_look_at(store::Sequence sequence, const char* what);
    /// How bad it is that what is mapped contradicts itself: where it is so because of pages that the other copy has whole, it is not lost.
    Severity severity_in(store::Sequence sequence) const;
    bool is_stopped() const { return options_.stop.stop_requested(); }

private:
    /// What became of the pages of one sequence in one file.
    struct Pages {
        bool damaged = false;
        bool lost = false;        ///< some of them in every copy
        bool unreadable = false;  ///< some of them are refused by the device
    };
    /// One file.
    struct File {
        File(const store::PageFile& of, const store::PageFile* second, const store::Extents& held, ByteCount bytes)
            : file(of), id(of.header.file), other(second), extents(held), size(bytes) {}
        const store::PageFile& file;  ///< of an open heap only while `is_there`: a data file may be detached
        const Uuid id;
        const store::PageFile* other;
        store::Extents extents;
        ByteCount size;
        std::array<Pages, 2> pages{};        ///< by sequence; the report's mutex guards them
        std::set<std::uint64_t> bad_tables;  ///< told already; the report's mutex guards them
    };
    /// Whether it is the heap's now. Requires: a Hold.
    bool is_there(const File& found) const;
    /// The other copy; null: there is none. Requires: a Hold.
    const store::PageFile* other_of(const File& found) const { return heap_.files().data() != nullptr ? found.other : nullptr; }
    struct Run {
        PageNumber first;
        std::uint64_t count;
    };
    /// A table page, and of the pages that it covers those that are compared: what one thread does in one piece.
    struct Piece {
        File* found;
        std::uint64_t table_page;
        std::vector<Run> runs;
        store::Via via;
    };
    class Hold;

    void check_headers(const store::PageFile& file, const store::PageFile* other);
    void check_tables(File& found, std::uint64_t header_root);
    bool check_table_page(File& found, std::uint64_t index, const store::TablePage& table, const std::optional<Error>& refusal);
    template <class F>
    void for_each_table_page(const File& found, F&& visit) const;
    void plan();
    void plan_mapped(File& found, PageNumber first, std::uint64_t count);
    void plan_metadata(File& found);
    void plan_directory(File& found);
    void plan_sample();
    void check_pieces();
    void take_pieces(bool tells) noexcept;
    void check_piece(const Piece& piece, AlignedBuffer& buffer);
    void check_run(const Piece& piece, const Run& run, const store::TablePage& table, const store::Extents& extents, AlignedBuffer& buffer);
    void report_page(File& found, PageNumber page, std::uint64_t expected, bool within, const std::optional<Error>& refusal);
    void report_table_page(File& found, std::uint64_t index, const Error& refusal);
    void note_pages(File& found, store::Sequence sequence, bool healable, bool unreadable);

    const store::HeapFile& heap_;
    const VerifyOptions& options_;
    std::list<File> files_;
    std::vector<Piece> pieces_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<std::uint64_t> pages_checked_ = 0;
    std::atomic<std::uint64_t> bytes_read_ = 0;
    std::mutex report_mutex_;  ///< guards the two below, and what files say of themselves, while threads are at work
    Report& report_;
    std::exception_ptr failed_;
};

}  // namespace taiyen::inspect
