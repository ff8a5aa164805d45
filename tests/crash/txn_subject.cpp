#include "crash/txn_subject.hpp"

#include <cstddef>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "crash/disk_sums.hpp"
#include "crash/heap_life.hpp"

namespace taiyen::crash {
namespace {}  // namespace

std::uint64_t TxnSubject::check(io::SimulatedStorage& disk, std::uint64_t state) {
    if (!disk.find(txn_path)) return check_missing(disk, state);
    const std::uint64_t choice = mix(state, 0x7478'6e73);
    const auto leave = [&](TxnLife& life) {
        disk.disconnect();
        life.abandon();
    };
    TxnSetup setup = setup_;
    setup.detach_data_file = misses_data(disk, state);
    std::optional<std::pair<std::uint64_t, std::uint64_t>> as_reader;
    if (choice % 8 == 0) {  // a reader sees the same and writes nothing
        const std::uint64_t before = disk_sum(disk);
        TxnLife reader(disk, nullptr, setup, history_);
        reader.open_to_read();
        as_reader = {reader.compare(), reader.file().files().restoration().transactions_replayed};
        reader.abandon();
        if (disk_sum(disk) != before) throw std::runtime_error("a read-only opening changed the files");
    }
    const std::uint64_t kind_choice = choice / 8 % 8;
    const HeapKind kind = kind_choice == 0 ? HeapKind::archive : kind_choice == 1 ? HeapKind::snapshot : HeapKind::transactional;
    TxnLife life(disk, nullptr, setup, history_);
    life.open(kind);
    const std::uint64_t number = life.compare();
    if (setup.detach_data_file && number > lost_->number)
        throw std::runtime_error("state " + std::to_string(number) + " was made without the lost data file, but the heap still names it");
    setup.detach_data_file = false;  // once is enough
    const Restoration restoration = life.file().files().restoration();
    if (restoration.clean && restoration.transactions_replayed != 0) throw std::runtime_error("a heap that was closed had transactions to replay");
    if (restoration.transactions_replayed > history_[number].serial.value) throw std::runtime_error("more transactions were replayed than there are");
    if (as_reader && *as_reader != std::pair(number, restoration.transactions_replayed)) {
        throw std::runtime_error("a reader saw state " + std::to_string(as_reader->first) + " after " + std::to_string(as_reader->second) +
                                 " transactions, a writer recovers " + std::to_string(number) + " after " +
                                 std::to_string(restoration.transactions_replayed));
    }
    for (const heap::Damage& damage : life.file().engine().check(1)) throw std::runtime_error("engine: " + damage.what);
    if (setup_.lends && life.is_transactional()) life.prove_leaks(history_[number]);
    if (choice / 64 % 4 == 0) life.prove();
    const std::uint64_t next = choice / 256 % 4;
    if (next == 0) {  // recovering twice equals recovering once
        const auto once = page_sums(disk);
        leave(life);
        TxnLife again(disk, nullptr, setup, history_);
        again.open(kind);
        if (again.compare() != number) throw std::runtime_error("a second recovery finds another state");
        if (again.file().files().restoration().transactions_replayed != 0)
            throw std::runtime_error("a second recovery replays what the first one saved");
        if (page_sums(disk) != once) throw std::runtime_error("a second recovery changed pages");
        leave(again);
        return number;
    }
    if (next == 1) {  // life goes on: transactions, which the next opening finds, with or without a clean close
        leave(life);
        TxnLife more(disk, nullptr, setup, history_);
        more.open(HeapKind::transactional);
        if (setup_.history && choice / 32768 % 4 != 0) more.resume();
        for (std::uint64_t i = 0; i < 2; ++i) more.transact(state + i);
        if (choice / 4096 % 4 == 0) more.snapshot();
        more.transact(state + 2);
        if (setup_.durability == Durability::async) more.wait();
        const bool closes = choice / 1024 % 2 == 0;
        closes ? more.close() : leave(more);
        TxnLife after(disk, nullptr, setup, more.history());
        after.open(choice / 2048 % 8 == 0 ? HeapKind::archive : HeapKind::transactional);
        if (after.compare() + 1 != more.history().size()) throw std::runtime_error("a transaction that was committed after recovery is not there");
        if (after.file().files().restoration().clean != closes) throw std::runtime_error("the heap says wrongly whether it was closed");
        if (choice / 16384 % 2 == 0) after.prove();
        if (setup_.history && after.is_transactional()) after.prove_history(choice / 65536 % 2 == 0);
        leave(after);
        return number;
    }
    if (setup_.history && life.is_transactional()) life.prove_history(next == 2);
    leave(life);
    return number;
}

std::uint64_t TxnSubject::check_missing(io::SimulatedStorage& disk, std::uint64_t state) const {
    // No heap under its name: nothing must be in the way of creating it.
    TxnSetup setup = setup_;
    setup.kind = HeapKind::transactional;
    TxnLife life(disk, nullptr, setup);
    life.create();
    life.transact(state);
    life.prove();
    disk.disconnect();
    life.abandon();
    return 0;
}

bool TxnSubject::misses_data(io::SimulatedStorage& disk, std::uint64_t state) const {
    const std::filesystem::path data = setup_.data_path();
    // A heap that does without it already is in nobody's way, and the file is in the way of a new one.
    if (!lost_ || disk.find(data) || !names_data_file(disk, txn_path)) return false;
    if (mix(state, 0x6261'636b) % 4 != 0) return true;
    const auto node = disk.make_node(device_of(io::directory_of(data)));
    node->write(lost_->bytes, 0);
    disk.put(data, node);
    return false;
}

std::unique_ptr<Subject> TxnSubject::live_on(io::RecordingStorage& disk, std::uint64_t number, std::uint64_t state) {
    TxnSetup setup = setup_;
    setup.kind = HeapKind::transactional;
    TxnHistory history = history_;
    history.cut(number + 1);
    TxnLife life(disk, &disk, setup, std::move(history));
    std::mt19937_64 random(state);
    number == 0 ? life.create() : life.open(HeapKind::transactional);
    if (setup_.history && random() % 4 != 0) life.resume();
    if (random() % 4 == 0) life.snapshot_meanwhile(1, random());
    for (std::uint64_t more = random() % 3; more-- > 0;) life.transact(random());
    if (random() % 4 == 0) life.put("large", 40'000, random());
    if (random() % 4 == 0) life.snapshot();
    if (setup_.durability == Durability::async && random() % 2 == 0) life.wait();
    if (random() % 4 != 0) life.close();
    std::optional<LostFile> lost = lost_;
    if (lost) lost->number = number;
    return std::make_unique<TxnSubject>(setup_, life.history(), std::move(lost));
}

}  // namespace taiyen::crash
