#include "transfer/rebase_file.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "store/heap_access.hpp"
#include "transfer/relocation_words.hpp"
#include "vm/address_space.hpp"

namespace taiyen {
namespace transfer {
namespace {

std::string hexadecimal(std::uintptr_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

/// Whether a type's name shows a hash of pointers: `hash<X*>`, also within pairs and the like.
bool hashes_addresses(const std::string& fingerprint) {
    const std::string mangled = fingerprint.substr(0, fingerprint.find(' '));
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
    if (!readable) return mangled.find("4hashIP") != std::string::npos;  // cut, as very long names are
    const std::string name = readable.get();
    for (std::size_t at = name.find("hash<"); at != std::string::npos; at = name.find("hash<", at + 1)) {
        int depth = 0;
        for (std::size_t i = at + 4; i < name.size(); ++i) {
            depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
            if (depth == 0) break;
            if (name[i] == '*') return true;
        }
    }
    return false;
}

/// Throws: Error{invalid_argument}.
void check_place(std::uintptr_t to, ByteCount capacity, const std::filesystem::path& path) {
    if (to != anywhere && !store::is_base(to, capacity))
        throw Error(errc::invalid_argument, path,
                    "a heap can't lie at " + hexadecimal(to) + ": its address is a multiple of 4 GiB, and it must end below 128 TiB");
}

/// Throws: Error{address_in_use}. What the heap itself occupies is free once it has moved.
void check_free(std::uintptr_t to, const heap::CoreRanges& ranges, const std::filesystem::path& path) {
    const ByteCount bytes = heap::CoreRanges::total_bytes(ranges.durable_bytes);
    const std::uintptr_t own = ranges.durable;
    const auto require_free = [&](std::uintptr_t first, std::uintptr_t end) {
        if (first >= end) return;
        if (const auto taken = vm::mapping_in(first, end - first))
            throw Error(errc::address_in_use, path,
                        "the new address is taken: " + hexadecimal(taken->begin) + " to " + hexadecimal(taken->end) + " is " +
                            (taken->name.empty() ? std::string("anonymous memory") : taken->name) + " in this process; choose another one");
    };
    require_free(to, std::min(to + bytes, own));
    require_free(std::max(to, own + bytes), to + bytes);
}

bool has_history(store::HeapFile& file) {
    if (!file.read_only()) return file.annex_is_saved();
    if (file.annex_bytes() == 0) return false;
    const std::byte* const annex = file.open_annex(0);
    return std::any_of(annex, annex + page_bytes, [](std::byte byte) { return byte != std::byte{0}; });
}

RebaseReport look(store::HeapFile& file, std::uintptr_t to, const RebaseOptions& options, std::vector<RelocationWords::Page>& pages) {
    const heap::CoreRanges& ranges = file.ranges();
    check_place(to, ranges.durable_bytes, file.path());
    RebaseReport report;
    report.from = ranges.durable;
    report.capacity_bytes = ranges.durable_bytes;
    report.to = to == anywhere ? store::HeapFile::find_place(ranges.durable_bytes) : to;
    if (report.to != report.from) check_free(report.to, ranges, file.path());
    // What decides which words are pointers must be what was saved.
    if (!file.read_only()) file.prove_span();
    if (const std::vector<heap::Damage> damages = file.engine().check(1); !damages.empty())
        throw Error(errc::corrupt, file.path(), damages[0].where.value, damages[0].what + "; run 'taiyen verify', restore the heap from a copy");
    const Relocation relocation = report.relocation();
    pages = RelocationWords(file, relocation).find(report, options.listed_max, options.progress);
    report.has_history = has_history(file);
    for (const heap::Root& root : file.engine().roots()) {
        if (hashes_addresses(root.fingerprint)) report.hashed_by_address.push_back(root.name);
    }
    std::sort(report.hashed_by_address.begin(), report.hashed_by_address.end());
    return report;
}

void refuse_ambiguous(const RebaseReport& report, const RebaseOptions& options, const std::filesystem::path& path) {
    if (options.refuse_ambiguous && report.ambiguous_words != 0)
        throw Error(errc::foreign_pointer, path, report.ambiguous.empty() ? Error::no_offset : report.ambiguous[0].offset,
                    std::to_string(report.ambiguous_words) +
                        " words lie in the heap's range of addresses and point to no live block; look at them in a dry run, or allow them");
}

void refuse_loss(const RebaseReport& report, const RebaseOptions& options, const std::filesystem::path& path) {
    if (report.has_history && !options.drop_history)
        throw Error(errc::history_conflict, path,
                    "the heap has a history whose steps hold old addresses: undoing one at the new address would put them back; drop the history "
                    "(drop_history), or leave the heap where it is");
    if (!report.hashed_by_address.empty() && !options.accept_hashed_by_address)
        throw Error(errc::type_mismatch, path,
                    "'" + report.hashed_by_address[0] +
                        "' hashes pointers: at another address its elements would not be found; accept that (accept_hashed_by_address) and insert "
                        "them again, or leave the heap where it is");
}

}  // namespace

RebaseReport rebase_file(store::HeapFile& file, std::uintptr_t to, const RebaseOptions& options) {
    std::vector<RelocationWords::Page> pages;
    RebaseReport report = look(file, to, options, pages);
    if (report.to == report.from) return report;
    refuse_ambiguous(report, options, file.path());
    if (options.dry_run) return report;
    refuse_loss(report, options, file.path());
    const Relocation relocation = report.relocation();
    RelocationWords words(file, relocation);
    std::vector<PageNumber> numbers;
    numbers.reserve(pages.size());
    for (const RelocationWords::Page& page : pages) numbers.push_back({page.number});
    std::size_t next = 0;
    file.save_moved(report.to, numbers, [&](std::span<const PageNumber> batch, std::span<std::byte> images) {
        if (pages.empty()) return;
        for (std::size_t i = 0; i < batch.size(); ++i, ++next) {
            // Found in memory, rewritten in the bytes of the file: the same ones, or nothing of it counts.
            if (words.patch(batch[i], images.subspan(i * page_bytes, page_bytes)) != pages[next].pointers)
                throw Error(errc::corrupt, file.path(), offset_of(batch[i]).value, "a page changed while its pointers were rewritten");
        }
    });
    report.moved = true;
    return report;
}

}  // namespace transfer

std::string_view name_of(AmbiguousTarget target) noexcept {
    switch (target) {
        case AmbiguousTarget::free_space: return "free space";
        case AmbiguousTarget::metadata: return "metadata";
        case AmbiguousTarget::beyond: return "beyond what is in use";
        case AmbiguousTarget::unaligned: return "a block, unaligned";
    }
    return "unknown";
}

RebaseReport rebase(const std::filesystem::path& path, std::uintptr_t to, const RebaseOptions& options) {
    transfer::check_place(to, heap::Engine::capacity_min, path);  // before recovery writes anything
    const store::OpenMode mode = options.dry_run ? store::OpenMode::read_only : store::OpenMode::open_only;
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, mode, HeapKind::archive, options.files);
    RebaseReport report = transfer::rebase_file(*file, to, options);
    file->close();
    return report;
}

}  // namespace taiyen
