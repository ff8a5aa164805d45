#include "undo/history_memory.hpp"

#include <algorithm>

#include <taiyen/base/error.hpp>

namespace taiyen::undo {
namespace {

class AnnexMemory final : public HistoryMemory {
public:
    AnnexMemory(store::HeapFile& file, ByteCount bytes) : file_(file), capacity_(std::max({bytes, file.image().annex().used(), reserved_bytes_min})) {
        base_ = file.open_annex(file.image().annex().is_open() ? bytes : std::max(bytes, reserved_bytes_min));
    }
    std::byte* base() override { return base_; }
    ByteCount bytes() const override { return file_.image().annex().used(); }
    ByteCount capacity() const override { return capacity_; }
    void extend(ByteCount bytes) override { file_.extend_annex(bytes); }

private:
    store::HeapFile& file_;
    std::byte* base_ = nullptr;
    ByteCount capacity_;
};

class ViewedMemory final : public HistoryMemory {
public:
    explicit ViewedMemory(const store::HeapFile& file) : view_(file.view_annex()) {}
    std::byte* base() override { return const_cast<std::byte*>(view_.bytes.data()); }
    ByteCount bytes() const override { return view_.bytes.size(); }
    ByteCount capacity() const override { return store::sequence_bytes_max; }  // whatever its header says: nothing has to be made smaller here
    void extend(ByteCount bytes) override { throw HeapFull(bytes, 0); }
    void about_to_write(std::uint64_t, ByteCount) override { throw Error(errc::read_only, "the undo history is only looked at"); }

private:
    store::Annex::View view_;
};

}  // namespace

std::unique_ptr<HistoryMemory> annex_history_memory(store::HeapFile& file, ByteCount bytes) { return std::make_unique<AnnexMemory>(file, bytes); }

std::unique_ptr<HistoryMemory> viewed_history_memory(const store::HeapFile& file) { return std::make_unique<ViewedMemory>(file); }

}  // namespace taiyen::undo
