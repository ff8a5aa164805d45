#pragma once
/// Runs the built `taiyen` command as a script would, and makes the heaps that it looks into.

#include <sys/wait.h>

#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "file_bytes.hpp"
#include "scratch_directory.hpp"

namespace tool_test {

using taiyen::test::file_bytes;

struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double weight = 0;
};

using Parts = taiyen::map<taiyen::string, Part>;

struct Ran {
    int exit = -1;
    std::string out;
    std::string err;
    boost::property_tree::ptree json() const {
        boost::property_tree::ptree tree;
        std::istringstream stream(out);
        boost::property_tree::read_json(stream, tree);
        return tree;
    }
};

/// `taiyen` with these words, quoted by the caller where they need it. Standard output and error are files, so nothing is a terminal.
inline Ran run_tool(const ScratchDirectory& dir, const std::string& words) {
    const std::string out = (dir / "stdout").string();
    const std::string err = (dir / "stderr").string();
    const std::string line = "cd '" + dir.path().string() + "' && '" TAIYEN_TOOL "' " + words + " >'" + out + "' 2>'" + err + "'";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), file_bytes(out), file_bytes(err)};
}

/// All files of the folder with what is in them, the tool's own outputs left out.
inline std::map<std::string, std::string> contents(const ScratchDirectory& dir) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
        const std::string name = entry.path().filename().string();
        if (name != "stdout" && name != "stderr") files[name] = file_bytes(entry.path());
    }
    return files;
}

inline taiyen::PersistentOptions small() {
    taiyen::PersistentOptions options;
    options.capacity = 64U << 20U;
    options.log_capacity = 1U << 20U;
    return options;
}

/// The parts of a drawing; also the heap of the documents' examples.
inline void fill(taiyen::ArchiveHeap& heap) {
    auto& parts = heap.find_or_construct<Parts>("parts");
    for (int i = 0; i < 200; ++i) {
        Part& part = parts[taiyen::string(("bolt, number " + std::to_string(i)).c_str())];
        part.name = ("a bolt of length " + std::to_string(10 + i % 90) + " millimetres").c_str();
        part.tags.emplace_back("steel, hot-dip galvanised");
        part.weight = 0.01 * i;
    }
    heap.find_or_construct<taiyen::vector<double>>("lengths").resize(3000);
    heap.find_or_construct<int>("revision") = 7;
}

template <class Heap = taiyen::SnapshotHeap>
void make_drawing(const std::filesystem::path& path) {
    Heap heap(taiyen::create_only, path, small());
    if constexpr (std::is_same_v<Heap, taiyen::TransactionalHeap>) {
        taiyen::Transaction tx(heap);
        fill(heap);
        tx.commit();
    } else {
        fill(heap);
        heap.snapshot();
    }
    heap.close();
}

/// 1,000 values of which every fourth is removed.
inline void make_log_heap(const std::filesystem::path& path) {
    taiyen::LogHeapOptions options;
    options.segment_bytes = 64 * 1024;
    options.capacity = 64 * options.segment_bytes;
    options.log_capacity = 512 * 1024;
    options.background = false;
    taiyen::LogHeap heap(taiyen::create_only, path, options);
    taiyen::LogBatch batch;
    for (std::uint64_t id = 1; id <= 1000; ++id) {
        batch.put(taiyen::LogId{id}, std::string(id, 'v'));
        if (id % 100 != 0) continue;
        heap.commit(batch);
        batch.clear();
    }
    for (std::uint64_t id = 4; id <= 1000; id += 4) batch.remove(taiyen::LogId{id});
    heap.commit(batch);
    heap.close();
}

/// The files of `heap` under another name as a crash at this moment would leave them.
inline void copy_as_crashed(const std::filesystem::path& heap, const std::filesystem::path& to) {
    for (const char* suffix : {"", ".data", ".journal", ".log"}) {
        const std::filesystem::path from = heap.string() + suffix;
        if (std::filesystem::exists(from)) std::filesystem::copy(from, to.string() + suffix, std::filesystem::copy_options::overwrite_existing);
    }
}

using Accounts = taiyen::map<int, taiyen::string>;

/// A bank whose last user was killed: seven transactions stand in its log and not in its file.
inline void make_crashed_bank(const ScratchDirectory& dir, const std::string& name, bool with_undo = false) {
    const ScratchDirectory elsewhere;
    taiyen::PersistentOptions options = small();
    options.address = 0x4510'0000'0000;  // how many bytes of a pointer change depends on it, and documents show that
    taiyen::TransactionalHeap heap(taiyen::create_only, elsewhere / "bank.tyn", options);
    if (with_undo) heap.attach_undo();
    for (int i = 0; i < 7; ++i) {
        taiyen::Transaction tx(heap);
        auto& accounts = heap.find_or_construct<Accounts>("accounts");
        accounts[i] = ("the account of customer " + std::to_string(i)).c_str();
        tx.commit();
    }
    copy_as_crashed(elsewhere / "bank.tyn", dir / name);
}

inline void overwrite(const std::filesystem::path& path, std::uint64_t at, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline void flip(const std::filesystem::path& path, std::uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 16);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
}

}  // namespace tool_test
