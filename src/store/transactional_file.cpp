// The side of a heap file that a transactional heap uses: saves of a point in its log, in the background or quiesced. The order of steps is the protocol: FORMAT.md.

#include "store/heap_file.hpp"

namespace taiyen::store {
namespace {

[[noreturn]] void throw_unsupported(const std::filesystem::path& path) { throw Error(errc::unsupported_version, path, "this version opens no transactional heaps"); }

}  // namespace

std::unique_ptr<log::Ring> HeapFile::take_log() { throw_unsupported(paths_.backing); }
Serial HeapFile::serial() const { return backing_->header.serial; }
log::RingStart HeapFile::log_start() const { return backing_->header.ring_start; }
void HeapFile::save_images(const SavePoint&, std::span<const PageNumber>, const PatchPages&) { throw_unsupported(paths_.backing); }
void HeapFile::save_at(const SavePoint&) { throw_unsupported(paths_.backing); }
void HeapFile::drop_private() { throw_unsupported(paths_.backing); }

}  // namespace taiyen::store
