#pragma once
/// LoggedRecorder: the recorder of Capture::stores and Capture::declared. Whoever is about to write says so; the old bytes are kept first.
///
/// Bytes are kept by lines of 64, each once per cut:
///
///   opened_   one bit per line of the span: kept since the last cut
///   lines_    the old lines, in the order in which they were opened
///   runs_     neighbouring lines that were opened one after the other: first line, place in lines_, count
///
/// (L1) A line's old bytes are in lines_ exactly if its bit is set; a cut or restore costs what was touched, not what is mapped.
/// (L2) Room for every line of the span is there before the span grows: a hook never allocates and never fails.
/// Stores mode: hooks of instrumented code arrive as on_store, also between scopes. Declared mode: only `touch` and the engine's announcements count.
/// Thread rule: as Recorder.

#include <array>
#include <cstdint>
#include <optional>

#include "change/audit_shadow.hpp"
#include "change/changed_ranges.hpp"
#include "change/recorder.hpp"
#include "change/side_memory.hpp"

namespace taiyen::change {

class LoggedRecorder final : public Recorder {
public:
    /// `mode`: stores or declared. Throws: HeapFull{address_space}, std::bad_alloc.
    LoggedRecorder(Capture mode, heap::HeapCore& core, ByteCount mapped, Audit audit, Outside outside = Outside::implicit);
    ~LoggedRecorder() override;

    Capture mode() const override { return mode_; }
    void start() override;
    void stop() noexcept override;
    void begin_scope() override { enter_scope(); }
    void end_scope() noexcept override { leave_scope(); }
    void begin_inner_scope() noexcept override {}
    void touch(HeapOffset where, ByteCount length) override;
    void cut(ChangeSet& out) override;
    bool keeps_open(PageNumber page) const noexcept override {
        return offset_of(page).value < mapped_ && opened_.as<std::uint64_t>()[page.value] != 0;
    }
    bool certainly_unchanged() const override { return run_count_ == 0; }
    /// Complexity: linear in the lines that were announced.
    bool has_changed() const override;
    /// The lines that are kept.
    void add_written(WrittenRanges& ranges) const override;
    void restore() noexcept override;
    void apply(const ChangeSetView& changes, Direction direction) noexcept override;
    void reserve_for(const ChangeSetView&) override {}
    void extended(ByteCount from, ByteCount to) override;
    void audit() const override;
    RecorderCounters counters() const override { return counters_; }

    void about_to_write(HeapOffset offset, ByteCount length) override;
    bool on_fault(void*) noexcept override { return false; }
    void on_store(void* address, ByteCount length) noexcept override;

private:
    static constexpr ByteCount lines_per_page = page_bytes / line_bytes;
    static_assert(lines_per_page == 64, "one word of bits per page");
    /// Memory that stays with the recorder between scopes.
    static constexpr ByteCount kept_memory_max = ByteCount{16} << 20U;

    struct Line {
        std::array<std::byte, line_bytes> bytes;
    };
    struct Run {
        static constexpr std::uint64_t count_max = 0xffff;
        std::uint64_t first_line;
        std::uint64_t slot_and_count;  ///< bits 16–63: index in lines_
        std::uint64_t slot() const { return slot_and_count >> 16U; }
        std::uint64_t count() const { return slot_and_count & count_max; }
    };

    void grow(ByteCount mapped);
    void record(std::uint64_t where, ByteCount length) noexcept;
    void open(std::uint64_t page, std::uint64_t lines) noexcept;
    void open_run(std::uint64_t first_line, std::uint64_t count) noexcept;
    void add_changes(ChangeSet& out);
    void add_audited_changes(ChangeSet& out, AuditShadow& shadow);
    void clear() noexcept;

    const Capture mode_;
    const Audit audit_;
    ByteCount mapped_ = 0;
    bool listening_ = false;  ///< between start and stop, and not while the recorder itself writes
    SideMemory opened_;       ///< std::uint64_t per page
    SideMemory lines_;
    SideMemory runs_;
    std::optional<AuditShadow> shadow_;
    std::uint64_t line_count_ = 0;
    std::uint64_t run_count_ = 0;
    RecorderCounters counters_;
    std::array<std::byte, page_bytes> joined_;  ///< old bytes of one page whose lines lie apart in lines_
};

}  // namespace taiyen::change
