#include <taiyen/store/parameters.hpp>

#include <taiyen/base/error.hpp>

#include "store/header.hpp"

namespace taiyen {

HeapParameters read_parameters(const std::filesystem::path& path) {
    const auto file = io::posix_storage().open(path, io::Access::read_only);
    const store::Slots slots = store::read_slots(*file);
    const store::Header* header = slots.newest();
    if (header == nullptr) {
        const store::SlotProblem problem = slots.verdict();
        throw Error(problem.code, path, 0, problem.what);
    }
    const io::FileInfo info = file->info();
    HeapParameters parameters;
    parameters.version = store::format_version;
    parameters.kind = !header->log.is_nil() ? HeapKind::transactional : header->data.is_nil() ? HeapKind::archive : HeapKind::snapshot;
    parameters.uuid = header->heap.text();
    parameters.address = header->base;
    parameters.position_independent = header->position_independent;
    parameters.capacity_bytes = header->capacity;
    parameters.extent_bytes = header->extent;
    parameters.generation = header->generation.value;
    parameters.serial = header->serial.value;
    parameters.clean = header->clean;
    if (!header->data.is_nil()) {
        parameters.data_file = path.string() + ".data";
    }
    if (header->ring_kind == store::RingKind::journal) {
        parameters.journal_file = path.string() + ".journal";
    }
    if (!header->log.is_nil()) {
        parameters.log_file = path.string() + ".log";
    }
    parameters.file_bytes = info.size_bytes;
    parameters.allocated_bytes = info.allocated_bytes;
    return parameters;
}

}  // namespace taiyen
