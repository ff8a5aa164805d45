// A program with one of each thing that doc/taiyen_printers.py prints; stops at `look`. program FOLDER
#include <optional>
#include <string>

#include <taiyen/taiyen.hpp>

#include <taiyen/stl/offset_ptr.hpp>

struct Part {
    taiyen::string name;
    taiyen::vector<int> sizes;
    double weight;
};

struct Linked {
    taiyen::offset_ptr<int> to;
    taiyen::offset_ptr<int> to_nothing;
    int number;
};

void make_others(taiyen::SnapshotHeap& heap);

[[gnu::noinline]] void look() { asm volatile(""); }

int main(int, char** argv) {
    const std::string folder = argv[1];

    taiyen::SnapshotHeap drawing(taiyen::create_only, folder + "/drawing.tyn");
    {
        auto& parts = drawing.construct<taiyen::map<taiyen::string, Part>>("parts");
        parts["bolt"].name = "a hexagon bolt";
        parts["bolt"].sizes = {8, 40};
        drawing.construct<int>("revision", 5);
        auto& linked = drawing.construct<Linked>("linked");
        linked.number = 42;
        linked.to = &linked.number;
        auto& ids = drawing.construct<taiyen::object_id_set<>>("ids");
        ids.insert(7);
        ids.insert(1'000'000);
        drawing.snapshot();
    }
    taiyen::SnapshotHeap others(taiyen::create_only, folder + "/others.tyn");
    make_others(others);
    taiyen::VolatileHeap memory;
    memory.construct<int>("größe", 42);
    taiyen::ArchiveHeap closed(taiyen::create_only, folder + "/closed.tyn");
    closed.close();

    taiyen::TransactionalHeap bank(taiyen::create_only, folder + "/bank.tyn");
    taiyen::Serial serial;
    std::optional<taiyen::string> taken;  // its block has an entry beside the names, which is none
    taiyen::transact(bank, serial, [&] {
        bank.construct<long>("balance", 100);
        taken.emplace(std::move(*bank.make<taiyen::string>("a text that is longer than a small buffer")));
    });
    taiyen::HeapOffset offset{0x2000};
    {
        taiyen::UndoScope scope(drawing, "a step");
        taiyen::Transaction outer(bank);
        taiyen::Transaction inner(bank);
        const taiyen::string outside("text of a container that lies outside", drawing);
        taiyen::btree_map<taiyen::string, int> ledger;
        for (int i = 0; i < 150; ++i) ledger.emplace(std::to_string(1000 + i), i);
        ledger.erase("1001");
        const taiyen::btree_multiset<double> weights{2.5, -1, 2.5};
        const taiyen::ordered_map<int, taiyen::string> colours{{7, "red"}, {2, "a blue that is like the sea"}};
        const taiyen::ordered_set<taiyen::string> words{"two", "one"};
        const taiyen::flat_hash_map<taiyen::string, int> codes{{"red", 255}};
        const taiyen::flat_hash_set<long> numbers{42};
        look();
        inner.commit();
        outer.rollback();
        scope.commit();
        look();
    }
    taiyen::ReadLock lock(bank);
    look();
    return static_cast<int>(offset.value - 0x2000);
}
