#pragma once
/// What a log heap must hold: ids and bytes, state by state; and random operations that change both.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "logheap/object_log.hpp"

namespace taiyen::logheap::test {

using Bytes = std::vector<std::byte>;
using Values = std::map<std::uint64_t, Bytes>;

inline Bytes some_bytes(std::mt19937_64& random, std::size_t length) {
    Bytes bytes(length);
    const std::uint64_t first = random();
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>((first >> (i % 8 * 8)) + i / 8);
    return bytes;
}

/// What the log holds, by reading it.
inline Values values_of(const ObjectLog& log) {
    Values values;
    log.for_each([&](const LogView& view) {
        if (!values.emplace(static_cast<std::uint64_t>(view.id()), Bytes(view.bytes().begin(), view.bytes().end())).second)
            throw std::runtime_error("an id was told twice: " + std::to_string(static_cast<std::uint64_t>(view.id())));
    });
    if (values.size() != log.size())
        throw std::runtime_error("the log says that it has " + std::to_string(log.size()) + " values, and shows " + std::to_string(values.size()));
    return values;
}

/// Throws with the first difference.
inline void require_equal(const Values& found, const Values& wanted, const std::string& when) {
    for (const auto& [id, bytes] : wanted) {
        const auto at = found.find(id);
        if (at == found.end()) throw std::runtime_error(when + ": value " + std::to_string(id) + " is gone");
        if (at->second != bytes) throw std::runtime_error(when + ": value " + std::to_string(id) + " has other bytes");
    }
    for (const auto& [id, bytes] : found)
        if (!wanted.contains(id))
            throw std::runtime_error(when + ": value " + std::to_string(id) + " is back, with " + std::to_string(bytes.size()) + " bytes");
}

inline std::uint64_t known_in(const Values& values, std::mt19937_64& random) {
    auto at = values.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random() % values.size()));
    return at->first;
}

/// How often what is done, in parts of all.
struct Mix {
    unsigned put = 4;
    unsigned put_as = 2;
    unsigned update = 6;
    unsigned remove = 3;
    unsigned batch = 2;
    unsigned clean = 1;
    unsigned checkpoint = 1;
    unsigned ahead = 0;  ///< what the log's own thread would do, in parts, with operations between them; needs a log without that thread
    std::size_t bytes_max = 3000;
    unsigned large_one_in = 0;  ///< of puts and updates; 0: none
    std::size_t large_bytes = 150'000;
};

/// Does one random operation in both. False: it was refused for want of room, or changed nothing; then nothing happened.
inline bool operate(ObjectLog& log, Values& values, std::mt19937_64& random, const Mix& mix) {
    const unsigned sum = mix.put + mix.put_as + mix.update + mix.remove + mix.batch + mix.clean + mix.checkpoint;
    unsigned drawn = static_cast<unsigned>(random() % sum);
    const auto is = [&](unsigned share) {
        if (drawn < share) return true;
        drawn -= share;
        return false;
    };
    const auto some = [&] {
        if (mix.large_one_in != 0 && random() % mix.large_one_in == 0)
            return some_bytes(random, mix.large_bytes / 2 + random() % (mix.large_bytes / 2));
        return some_bytes(random, random() % 8 == 0 ? 0 : random() % (mix.bytes_max + 1));
    };
    try {
        if (is(mix.put)) {
            const Bytes bytes = some();
            const LogHandle handle = log.put(bytes);
            if (!values.emplace(static_cast<std::uint64_t>(handle.id), bytes).second) throw std::runtime_error("an id was given that is in use");
        } else if (is(mix.put_as)) {
            const std::uint64_t id = (std::uint64_t{1} << 40U) + random() % 12;
            const Bytes bytes = some();
            log.put_as(LogId{id}, bytes);
            values[id] = bytes;
        } else if (is(mix.update)) {
            if (values.empty()) return false;
            const std::uint64_t id = known_in(values, random);
            const Bytes bytes = some();
            if (!log.update(LogId{id}, {}, bytes)) throw std::runtime_error("update finds no value");
            values[id] = bytes;
        } else if (is(mix.remove)) {
            if (values.empty()) return false;
            const std::uint64_t id = known_in(values, random);
            try {
                if (!log.remove(LogId{id})) throw std::runtime_error("remove finds no value");
            } catch (const HeapFull& full) {
                throw std::runtime_error(std::string("a removal was refused: ") + full.what());
            }
            values.erase(id);
        } else if (is(mix.batch)) {
            LogBatch batch;
            Values after = values;
            for (std::uint64_t i = 0; i < 2 + random() % 5; ++i) {
                if (random() % 3 == 0 && !after.empty()) {
                    const std::uint64_t id = known_in(after, random);
                    batch.remove(LogId{id});
                    after.erase(id);
                } else {
                    const std::uint64_t id = (std::uint64_t{1} << 40U) + random() % 12;
                    const Bytes bytes = some();
                    batch.put(LogId{id}, bytes);
                    after[id] = bytes;
                }
            }
            const Serial before = log.stats().appended;
            log.commit(batch);
            values = after;
            return log.stats().appended != before;
        } else if (is(mix.clean)) {
            log.clean(2 * log.stats().segment_bytes);
            return false;
        } else {
            log.checkpoint();
            return false;
        }
    } catch (const HeapFull&) {
        return false;
    }
    return true;
}

/// Begins one of the works that go on beside operations, at random, and calls `between` wherever it leaves the log to them, `in_image` in the middle of an image.
inline void work_ahead(ObjectLog& log, std::mt19937_64& random, const std::function<void()>& between, const std::function<void()>& in_image = [] {}) {
    try {
        log.do_ahead(std::array{ObjectLog::Task::flush, ObjectLog::Task::image, ObjectLog::Task::cleaning}[random() % 3], between, in_image);
    } catch (const HeapFull&) {}
}

}  // namespace taiyen::logheap::test
