#include "undo/history_memory.hpp"

#include <algorithm>

namespace taiyen::undo {
namespace {

/// Address space is reserved for a history larger than the one that is asked for: one that ended can be followed by a larger one.
constexpr ByteCount reserved_min = ByteCount{1} << 30U;

class AnnexMemory final : public HistoryMemory {
public:
    AnnexMemory(store::HeapFile& file, ByteCount bytes) : file_(file), capacity_(std::max({bytes, file.annex_bytes(), reserved_min})) {
        base_ = file.open_annex(file.annex_is_open() ? bytes : std::max(bytes, reserved_min));
    }
    std::byte* base() override { return base_; }
    ByteCount bytes() const override { return file_.annex_bytes(); }
    ByteCount capacity() const override { return capacity_; }
    void extend(ByteCount bytes) override { file_.extend_annex(bytes); }

private:
    store::HeapFile& file_;
    std::byte* base_ = nullptr;
    ByteCount capacity_;
};

}  // namespace

std::unique_ptr<HistoryMemory> annex_history_memory(store::HeapFile& file, ByteCount bytes) { return std::make_unique<AnnexMemory>(file, bytes); }

}  // namespace taiyen::undo
