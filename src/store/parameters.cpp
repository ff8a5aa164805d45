#include <taiyen/store/parameters.hpp>

#include <taiyen/base/error.hpp>

#include "store/header.hpp"
#include "store/opening_record.hpp"

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
    parameters.role = header->replica.role == store::ReplicaRole::follower  ? ReplicaRole::follower
                      : header->replica.role == store::ReplicaRole::deposed ? ReplicaRole::deposed
                                                                            : ReplicaRole::owner;
    parameters.clean = header->clean;
    parameters.written_at = store::time_of(header->written_at);
    parameters.last_restoration = store::restoration_of(header->opening);
    // Of a data file with another name nobody can tell whose companion it is.
    const bool is_data = header->role == store::FileRole::data;
    const std::filesystem::path backing = is_data ? (path.extension() == ".data" ? std::filesystem::path(path).replace_extension() : "") : path;
    if (!header->data.is_nil()) parameters.data_file = is_data ? path : std::filesystem::path(backing.string() + ".data");
    if (header->ring_kind == store::RingKind::journal && !backing.empty()) parameters.journal_file = backing.string() + ".journal";
    if (!header->log.is_nil() && !backing.empty()) parameters.log_file = backing.string() + ".log";
    parameters.file_bytes = info.size_bytes;
    parameters.allocated_bytes = info.allocated_bytes;
    return parameters;
}

}  // namespace taiyen
