#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "census.hpp"
#include "checksum.hpp"
#include "demo/console.hpp"
#include "demo/process.hpp"
#include "demo/stages.hpp"
#include "dxf_import.hpp"

namespace cad::demo {
namespace {

namespace fs = std::filesystem;

/// What is sent, and what its receiver makes of it.
fs::path mail_file(const Setting& setting) { return setting.out / "library.tyz"; }
fs::path received_file(const Setting& setting) { return setting.out / "received.tyn"; }

}  // namespace

int receive_mail(const Setting& setting) {
    remove_heap(received_file(setting));
    const Clock::time_point start = Clock::now();
    //[ who gets the compressed copy makes a heap of it
    taiyen::expand_file(mail_file(setting), received_file(setting));
    taiyen::SnapshotHeap heap(taiyen::open_only, received_file(setting));
    const Document& document = *heap.find<Document>("document");
    //]
    std::printf("time %.1f\n", microseconds_since(start));
    std::printf("entities %llu\n", static_cast<unsigned long long>(census_of(document).entities()));
    std::printf("checksum %llu\n", static_cast<unsigned long long>(checksum(document)));
    const std::string broken = broken_invariant(document);
    std::printf("broken %s\n", broken.empty() ? "nothing" : broken.c_str());
    std::printf("sound %s\n", heap.verify().ok() ? "yes" : "no");
    return 0;
}

bool send_by_mail(const Setting& setting) {
    heading("7. A copy to send by mail, and a receiver who opens it");
    std::uint64_t sent = 0;
    std::uint64_t heap_bytes = 0;
    double packed_in = 0;
    taiyen::Compressed packed;
    {
        const taiyen::SnapshotHeap heap(taiyen::open_read_only, setting.heap_file());
        sent = checksum(*heap.find<Document>("document"));
        heap_bytes = heap.stats().allocated_bytes;
    }
    const Clock::time_point packing = Clock::now();
    //[ a copy to send holds only what is live
    packed = taiyen::compress_file(setting.heap_file(), mail_file(setting));
    //]
    packed_in = microseconds_since(packing);
    std::uint64_t dxf_bytes = 0;
    for (const fs::path& part : dxf_files(setting.part_folder)) dxf_bytes += fs::file_size(part);
    const std::uint64_t mail_bytes = fs::file_size(mail_file(setting));

    Child receiver({"--receive-mail", "--library", setting.part_folder.string(), "--out", setting.out.string()});
    const std::map<std::string, std::string> report = parsed_report(receiver.read_all());
    const int status = receiver.wait();
    const auto text = [&](const char* key) { return report.contains(key) ? report.at(key) : std::string(); };
    row(mail_file(setting).filename().string(), bytes_text(mail_bytes),
        "the heap " + bytes_text(heap_bytes) + ", what is live of it " + bytes_text(packed.content_bytes) + ", the DXF files " +
            bytes_text(dxf_bytes));
    row("compressed and synced", time_text(packed_in));
    row("expanded and opened", time_text(text("time").empty() ? 0 : std::stod(text("time"))), "by process " + std::to_string(receiver.pid()));
    bool fine = verdict("the receiver came to its end", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fine &=
        verdict("received what was sent", text("checksum") == std::to_string(sent), text("entities") + " entities, one checksum over all they say");
    fine &= verdict("pointers, spatial index, extents", text("broken") == "nothing", text("broken") == "nothing" ? "" : text("broken"));
    fine &= verdict("verify() of what was received", text("sound") == "yes");
    fine &= verdict("smaller than the heap", mail_bytes < heap_bytes);
    return fine;
}

}  // namespace cad::demo
