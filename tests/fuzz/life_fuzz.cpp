// The life of a heap of any kind against a model that knows nothing of it: objects are made, changed, resized and freed, in steps and transactions that are kept or taken back; saves,
// undo, redo, healing, closing, reopening as another kind, crashes of the process and of the power, damaged bytes on the disk, failing calls of the disk.
//
// Rules: without a failing disk nothing throws but HeapFull. After a crash the heap is what was acknowledged, or what was on its way. A page that was damaged is healed from the second copy or
// told; what is told may cost the heap, never give another content. A history leads through the contents that the program saw.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/taiyen.hpp>

#include "fuzz/input.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_node.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::store;
using taiyen::fuzz::Input;

/// Objects by name. Their bytes are shared: a program's contents are kept by the hundred, and each differs from the one before it in an object or two.
using Bytes = std::vector<std::byte>;
using Content = std::map<std::string, std::shared_ptr<const Bytes>>;
using Moment = std::shared_ptr<const Content>;

/// What a save holds: the content, and the contents that undo and redo lead to.
struct State {
    Content content;
    std::vector<Moment> timeline;  ///< empty: no history
    std::size_t at = 0;            ///< in the timeline
};

const std::filesystem::path heap_path = "/disk/l.tyn";

class Life {
public:
    explicit Life(Input& input) : input_(input) {
        disk_.add_directory("/disk");
        disk_.set_space(64_MiB);
        const std::uint64_t setup = input_.number(1);
        constexpr HeapKind kinds[] = {HeapKind::archive, HeapKind::snapshot, HeapKind::snapshot, HeapKind::transactional, HeapKind::transactional};
        kind_ = kinds[setup % 5];
        with_history_ = setup % 5 == 2;
        options_.capacity = 512_KiB;
        options_.address = 0x2a00'0000'0000;
        options_.log_capacity = 64_KiB;
        options_.capture = Capture::declared;
        options_.loss_window = std::chrono::hours(1);
        options_.snapshot_log_fill = 1e9;
        options_.dirty_limit = 64_MiB;
        options_.durability = setup / 5 % 2 == 0 ? Durability::sync : Durability::async;
        if (setup % 5 == 4) options_.data_file = heap_path.string() + ".data";
        tuning_.journal_bytes = 64_KiB;
        tuning_.batch_bytes = 16_KiB;
        const HeapKind first = kind_;
        open(OpenMode::create_only, first);
        begin();
    }
    ~Life() { abandon(); }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

    void run() {
        for (unsigned steps = 0; steps < 200 && !input_.empty() && !lost_; ++steps) {
            try {
                step();
            } catch (const HeapFull&) {
                // Nothing was changed, or it was taken back.
                after_failure(true);
            } catch (const Error& error) {
                if (!failing_ && !damaged_) {
                    std::fprintf(stderr, "%s\n", error.what());
                    TAIYEN_CHECK(false);
                }
                after_failure(false);
            }
        }
        if (!lost_) crash(2);
    }

private:
    // ---- opening

    void open(OpenMode mode, HeapKind kind) {
        file_ = HeapFile::open(faulty_, heap_path, mode, kind, options_, tuning_);
        opened_as_ = kind;
        if (kind == HeapKind::transactional && mode != OpenMode::read_only) {
            txn::TransactionService::join(*file_, options_);
            transactional_.emplace(HeapAccess::make<TransactionalHeap>(file_));
        } else {
            snapshot_.emplace(HeapAccess::make<SnapshotHeap>(file_));
        }
    }
    ArchiveHeap& heap() { return transactional_ ? static_cast<ArchiveHeap&>(*transactional_) : *snapshot_; }
    void abandon() noexcept {
        disk_.disconnect();  // what a destructor would still do to the disk is not what a crash leaves
        transactional_.reset();
        snapshot_.reset();
        file_.reset();
    }

    /// The history is attached before anything is changed.
    void begin() {
        if (!with_history_ || transactional_ || opened_as_ != HeapKind::snapshot) {
            ends_history_ = !now_.timeline.empty();
            return;
        }
        snapshot_->attach_undo({.bytes = 1_MiB});
        ends_history_ = false;
        if (now_.timeline.empty()) {
            now_.timeline = {std::make_shared<const Content>(now_.content)};
            now_.at = 0;
        }
        expect_history();
    }

    // ---- the model

    std::uint64_t base() const { return file_->ranges().durable; }
    std::byte* object(const std::string& name) const {
        const auto root = file_->engine().find_root(name);
        return root ? reinterpret_cast<std::byte*>(base() + root->object.value) : nullptr;
    }
    bool equals(const Content& content) const {
        const std::vector<heap::Root> roots = file_->engine().roots();
        return roots.size() == content.size() && std::all_of(roots.begin(), roots.end(), [&](const heap::Root& root) {
                   const auto found = content.find(root.name);
                   return found != content.end() && found->second->size() == root.bytes &&
                          std::memcmp(found->second->data(), reinterpret_cast<const std::byte*>(base() + root.object.value), root.bytes) == 0;
               });
    }
    void require(bool right) {
        if (right) return;
        // Pages are read by the processor: what is damaged without a second copy is there to be seen, and verify() tells it.
        TAIYEN_CHECK(damaged_ && !heap().verify().ok());
        throw Error(errc::corrupt, "seen by the program");
    }
    void expect() { require(equals(now_.content) && file_->engine().check(1).empty()); }
    void expect_history() {
        if (!snapshot_->has_undo() && failing_) throw Error(errc::history_full, "the disk had no room for the history");
        const std::vector<UndoStep> steps = snapshot_->undo_steps();
        TAIYEN_CHECK(snapshot_->has_undo() && steps.size() <= now_.timeline.size() - 1);
        // Steps that fell off at the front.
        const std::size_t gone = now_.timeline.size() - 1 - steps.size();
        now_.timeline.erase(now_.timeline.begin(), now_.timeline.begin() + static_cast<std::ptrdiff_t>(gone));
        now_.at -= gone;
        const auto undone = std::count_if(steps.begin(), steps.end(), [](const UndoStep& step) { return step.undone; });
        TAIYEN_CHECK(now_.at + static_cast<std::size_t>(undone) == steps.size());
    }

    // ---- changes

    /// An edit may store what was there: then the save behind it may find nothing to save, and a history goes on.
    static bool differ(const Content& one, const Content& other) {
        return !std::equal(one.begin(), one.end(), other.begin(), other.end(),
                           [](const auto& left, const auto& right) { return left.first == right.first && *left.second == *right.second; });
    }

    template <class Scope>
    void edit(Scope* scope, Content& content) {
        const auto touch = [&](void* at, ByteCount bytes) {
            if constexpr (!std::is_same_v<Scope, int>) scope->touch(at, bytes);
        };
        heap::Engine& engine = file_->engine();
        const std::uint64_t what = input_.number(1);
        const std::string name(1 + what / 64 * 9, static_cast<char>('a' + what / 8 % 8));
        const auto found = content.find(name);
        std::byte* const at = object(name);
        require((found != content.end()) == (at != nullptr));
        if (at != nullptr && what % 8 == 0) {
            engine.remove_root(name);
            engine.deallocate(at);
            content.erase(found);
        } else if (at != nullptr && what % 8 < 5) {
            Bytes bytes = *found->second;
            const std::size_t from = input_.number(2) % bytes.size();
            const std::size_t length = std::min<std::size_t>(bytes.size() - from, 1 + input_.number(1));
            touch(at + from, length);
            std::memset(at + from, static_cast<int>(what), length);
            std::memset(bytes.data() + from, static_cast<int>(what), length);
            found->second = std::make_shared<const Bytes>(std::move(bytes));
        } else {
            const std::uint64_t code = input_.number(1);
            const ByteCount size = code < 128 ? 1 + code * 3 : code < 250 ? 1 + (code - 120) * 130 : (code - 249) * 70'000;
            const int fill = static_cast<int>(input_.number(1));
            std::byte* block = nullptr;
            if (at == nullptr) {
                block = static_cast<std::byte*>(engine.allocate(size, what % 8 == 7 ? 64 : 16));
            } else {
                block = static_cast<std::byte*>(engine.resize(at, size));
                engine.remove_root(name);
            }
            Bytes bytes = at == nullptr ? Bytes() : *found->second;
            const std::size_t kept = std::min<std::size_t>(bytes.size(), size);
            require(kept == 0 || std::memcmp(block, bytes.data(), kept) == 0);
            bytes.resize(size, static_cast<std::byte>(fill));
            content[name] = std::make_shared<const Bytes>(std::move(bytes));
            touch(block + kept, size - kept);
            std::memset(block + kept, fill, size - kept);
            engine.add_root({name, "", {reinterpret_cast<std::uintptr_t>(block) - base()}, size, 1});
        }
    }

    void transaction(std::uint64_t code) {
        Content content = now_.content;
        Transaction transaction(*transactional_);
        for (std::uint64_t i = 0; i <= code % 3; ++i) edit(&transaction, content);
        if (code / 4 % 8 == 0) {
            Transaction inner(*transactional_);
            Content gone = content;
            edit(&inner, gone);
            if (code / 32 % 2 == 0) {
                inner.commit();
                content = gone;
            } else {
                inner.rollback();
                transaction.rollback();
                expect();
                return;
            }
        }
        if (code / 4 % 8 == 1) {
            transaction.rollback();
            expect();
            return;
        }
        on_its_way_.push_back({content, {}, 0});
        const Serial serial = transaction.commit();
        now_ = on_its_way_.back();  // a history that nobody attached ends
        if (options_.durability == Durability::sync || transactional_->last_durable() >= serial) acknowledge();
    }

    void scope(std::uint64_t code) {
        Content content = now_.content;
        UndoScope scope(*snapshot_, code % 2 == 0 ? "step" : "");
        edit(&scope, content);
        if (code / 4 % 4 == 0) {
            UndoScope inner(*snapshot_);
            Content gone = content;
            edit(&inner, gone);
            if (code / 16 % 2 == 0) {
                inner.commit();
                content = gone;
            } else {
                inner.cancel();
            }
        }
        if (code / 4 % 4 == 1) {
            scope.cancel();
            expect();
            return;
        }
        scope.commit();
        now_.content = content;
        now_.timeline.resize(now_.at + 1);
        now_.timeline.push_back(std::make_shared<const Content>(content));
        ++now_.at;
        expect_history();
    }

    void move(bool back) {
        const bool possible = back ? now_.at > 0 : now_.at + 1 < now_.timeline.size();
        TAIYEN_CHECK((back ? snapshot_->can_undo() : snapshot_->can_redo()) == possible);
        TAIYEN_CHECK((back ? snapshot_->undo() : snapshot_->redo()) == possible);
        if (!possible) return;
        now_.at = back ? now_.at - 1 : now_.at + 1;
        now_.content = *now_.timeline[now_.at];
        expect();
    }

    void change() {
        const std::uint64_t code = input_.number(1);
        if (transactional_) {
            transaction(code);
        } else if (file_->participant() != nullptr) {
            code % 4 == 2 ? move(true) : code % 4 == 3 ? move(false) : scope(code);
        } else {
            Content content = now_.content;
            try {
                edit<int>(nullptr, content);
            } catch (const std::bad_alloc&) {
                // Nothing was changed but, perhaps, the name of an object that no name could be given to again.
                lost_ = !equals(now_.content);
                throw;
            }
            changed_ = changed_ || differ(now_.content, content);
            now_.content = content;
        }
    }

    // ---- saving

    /// Everything that is on its way is durable.
    void acknowledge() {
        saved_ = now_;
        on_its_way_.clear();
    }
    void save() {
        if (transactional_) {
            heap().snapshot();
        } else {
            if (ends_history_ && changed_) now_.timeline.clear();
            on_its_way_.push_back(now_);
            heap().snapshot();
            if (ends_history_ && !changed_) unsure_ = true;
            changed_ = false;
        }
        acknowledge();
    }

    /// Requires: the disk works.
    void reopen(HeapKind kind) {
        open(OpenMode::open_only, kind);
        const auto fits = [&](const State& state) { return equals(state.content); };
        const auto newest = std::find_if(on_its_way_.rbegin(), on_its_way_.rend(), fits);
        if (newest != on_its_way_.rend())
            saved_ = *newest;
        else
            require(fits(saved_));
        on_its_way_.clear();
        now_ = saved_;
        changed_ = false;
        expect();
    }

    /// The process is gone, and perhaps the power.
    void crash(std::uint64_t how) {
        faulty_.disarm();
        abandon();
        switch (how % 4) {
            case 0: disk_.power_cut(); break;
            case 1: disk_.power_cut(input_.number(2)); break;
            default: break;
        }
        failing_ = false;
        come_back(how / 4 % 8 == 0 ? HeapKind::archive : kind_);
    }
    void come_back(HeapKind kind) {
        try {
            settle_history(kind);
        } catch (const Error& error) {
            if (!damaged_) {
                std::fprintf(stderr, "it does not open again: %s\n", error.what());
                TAIYEN_CHECK(false);
            }
            lost_ = true;
            abandon();
        } catch (const HeapFull&) {
            lost_ = true;  // an archive's or a transactional heap's files leave no room for the second copy or the history
            abandon();
        }
    }
    void settle_history(HeapKind kind) {
        // Two saves may have the same content and different histories: the history itself says which one it is.
        std::vector<State> candidates = on_its_way_;
        candidates.push_back(saved_);
        reopen(kind);
        if (with_history_ && kind == HeapKind::snapshot) {
            snapshot_->attach_undo({.bytes = 1_MiB});
            const std::vector<UndoStep> steps = snapshot_->undo_steps();
            const auto at = static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const UndoStep& step) { return !step.undone; }));
            const auto fits = [&](const State& state) {
                return equals(state.content) &&
                       (state.timeline.empty() ? steps.empty() : state.timeline.size() == steps.size() + 1 && state.at == at);
            };
            const auto found = std::find_if(candidates.begin(), candidates.end(), fits);
            if (found != candidates.end()) {
                now_ = saved_ = *found;
            } else {
                TAIYEN_CHECK(unsure_ || damaged_);
                now_.timeline.clear();
                saved_.timeline.clear();  // so it stands in the files
            }
            unsure_ = false;
            if (now_.timeline.empty()) {
                now_.timeline = {std::make_shared<const Content>(now_.content)};
                now_.at = 0;
                lost_ = !steps.empty();
            }
            ends_history_ = false;
        } else {
            begin();
        }
    }

    void close(HeapKind next) {
        try {
            heap().close();
        } catch (const Error&) {
            TAIYEN_CHECK(failing_ || damaged_);
        }
        if (transactional_ && !failing_ && !damaged_) acknowledge();
        faulty_.disarm();
        failing_ = false;
        abandon();
        come_back(next);
    }

    void after_failure(bool full) {
        if (lost_) return;
        if (full && !failing_ && !damaged_ && !file_->condition().is_poisoned()) {
            expect();
            return;
        }
        crash(2);
    }

    void damage() {
        const auto files = disk_.files();
        auto file = files.begin();
        std::advance(file, static_cast<std::ptrdiff_t>(input_.number(1) % files.size()));
        const std::uint64_t at = input_.number(3) % std::max<ByteCount>(1, file->second->size_bytes());
        const auto byte = static_cast<std::byte>(input_.number(1));
        if (at < file->second->size_bytes()) file->second->write({&byte, 1}, at);
        damaged_ = true;
    }

    void step() {
        const std::uint64_t code = input_.number(1);
        switch (code % 32) {
            case 0:
            case 1:
            case 2:
            case 3: save(); break;
            case 4: {
                expect();
                const Report report = heap().verify();
                if (!damaged_ && !report.ok()) std::fprintf(stderr, "%s\n", report.findings.front().what.c_str());
                TAIYEN_CHECK(damaged_ || report.ok());
                break;
            }
            case 5:
                (void)heap().heal();
                expect();
                break;
            case 6: close(kind_); break;
            case 7: close(HeapKind::archive); break;
            case 8: close(HeapKind::snapshot); break;
            case 9: close(HeapKind::transactional); break;
            case 10:
            case 11:
            case 12: crash(code / 32); break;
            case 13:
                faulty_.arm({.at = 1 + input_.number(1) % 64,
                             .error = code / 32 % 2 == 0 ? 5 : 28,
                             .sticky = code / 64 % 2 == 0,
                             .calls = io::Call::write | io::Call::write_durable | io::Call::sync | io::Call::allocate | io::Call::resize,
                             .short_bytes = input_.number(1) * 512});
                failing_ = true;
                break;
            case 14:
                if (code / 32 == 7) damage();
                break;
            case 15:
                if (transactional_) {
                    transactional_->wait_durable(txn::TransactionService::of(*file_)->last_committed());
                    acknowledge();
                }
                break;
            case 16:
                if (transactional_) {
                    transactional_->rebuild();
                    expect();
                }
                break;
            case 17:
                if (!transactional_ && file_->participant() != nullptr && now_.at + 1 == now_.timeline.size() && now_.at >= 2) {
                    snapshot_->squash_undo(2, "two");
                    now_.timeline.erase(now_.timeline.end() - 2);
                    --now_.at;
                    expect_history();
                }
                break;
            default: change(); break;
        }
    }

    Input& input_;
    io::SimulatedStorage disk_{{.power_cuts = true}};
    io::FaultyStorage faulty_{disk_};
    PersistentOptions options_;
    Tuning tuning_;
    HeapKind kind_ = HeapKind::archive;
    HeapKind opened_as_ = HeapKind::archive;
    bool with_history_ = false;
    std::shared_ptr<HeapFile> file_;
    std::optional<TransactionalHeap> transactional_;
    std::optional<SnapshotHeap> snapshot_;

    State now_;
    State saved_;                    ///< acknowledged
    std::vector<State> on_its_way_;  ///< later ones, each of which may have become durable
    bool changed_ = false;           ///< the program changed something since the last save
    bool ends_history_ = false;      ///< the next save that changes something does
    bool unsure_ = false;            ///< whether a save without a change of the program's has ended the history
    bool failing_ = false;           ///< the disk
    bool damaged_ = false;           ///< bytes on the disk
    bool lost_ = false;              ///< the heap is gone for good, as it may be
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    set_report_handler([](const Incident&) noexcept {});
    Input input(bytes, size);
    Life(input).run();
    return 0;
}
