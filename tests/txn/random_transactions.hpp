#pragma once
/// A random program of transactions over all containers, with rollbacks, exceptions, nesting, snapshots, crashes and reopening, held against a model.
///
/// The model is the content after the last commit, as text; it knows nothing of pages, bytes or logs. Failures are thrown with seed and step.
/// `Prepare` is called at the begin of each transaction: a mode that captures declared ranges only declares them there.

#include <taiyen/taiyen.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "containers/document.hpp"
#include "store/heap_access.hpp"

namespace taiyen::txn::test {

struct RandomTransactionsOptions {
    PersistentOptions heap;
    std::uint32_t seed = 1;
    int verify_every = 300;
    bool crashes = true;
    unsigned large_bytes = 1'500'000;  ///< of the largest blocks
    std::function<void(TransactionalHeap&, Transaction&)> prepare = [](TransactionalHeap&, Transaction&) {};
};

class RandomTransactions {
public:
    using Document = taiyen::test::Document<taiyen::test::InHeap>;

    RandomTransactions(std::filesystem::path directory, RandomTransactionsOptions options)
        : directory_(std::move(directory)), path_(directory_ / "heap.tyn"), options_(std::move(options)), random_(options_.seed),
          heap_(std::in_place, create_only, path_, options_.heap) {
        transact(*heap_, [&](Transaction& transaction) {
            options_.prepare(*heap_, transaction);
            heap_->construct<Document>("document");
        });
        heap_->wait_durable(ReadLock(*heap_).serial());  // a crash may come before anything else is committed
        content_ = now();
    }

    /// Returns how often the content was compared.
    std::uint64_t run(int steps) {
        for (step_ = 0; step_ < steps; ++step_) {
            turn();
            if (step_ % options_.verify_every == 0) verify();
        }
        reopen();
        verify();
        return compared_;
    }
    TransactionalHeap& heap() { return *heap_; }

private:
    struct Thrown {};

    void check(bool right, const std::string& what) const {
        if (!right) throw std::logic_error("seed " + std::to_string(options_.seed) + ", step " + std::to_string(step_) + ": " + what);
    }
    void verify() const {
        const Report report = heap_->verify();
        if (!report.ok()) check(false, "verify() finds damage: " + report.findings.front().what);
    }
    void expect(const char* after) {
        ++compared_;
        if (const std::string found = now(); found != content_) {
            const auto shorter = static_cast<std::ptrdiff_t>(std::min(found.size(), content_.size()));
            const auto at = static_cast<std::size_t>(std::mismatch(found.begin(), found.begin() + shorter, content_.begin()).first - found.begin());
            const std::size_t from = at < 60 ? 0 : at - 60;
            check(false, std::string("the content differs after ") + after + ": …" + found.substr(from, 120) + "… instead of …" +
                             content_.substr(from, 120) + "…");
        }
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

    Document& document() { return *heap_->find<Document>("document"); }
    std::string now() {
        std::string text = taiyen::test::describe(document());
        for (int i = 0; i < 4; ++i)
            if (const auto* const extra = heap_->find<taiyen::vector<char>>("extra " + std::to_string(i)))
                text += "extra " + std::to_string(i) + ": " + std::to_string(extra->size()) + (extra->empty() ? ' ' : extra->front()) + '\n';
        return text;
    }

    void edit() {
        Document& d = document();
        if (below(30) == 0) {  // a block of its own, now and then larger than the log
            const std::string name = "extra " + std::to_string(below(4));
            if (auto* const extra = heap_->find<taiyen::vector<char>>(name); extra == nullptr) {
                heap_->construct<taiyen::vector<char>>(name).assign(below(12) == 0 ? options_.large_bytes : below(3000),
                                                                    static_cast<char>('a' + below(26)));
            } else if (below(2) == 0) {
                heap_->destroy<taiyen::vector<char>>(name);
            } else {
                extra->resize(below(20'000), 'z');
                extra->shrink_to_fit();
            }
            return;
        }
        taiyen::test::change_once(d, random_);
        taiyen::test::keep_small(d, random_);
    }

    /// The body of a transaction.
    void edits(unsigned depth) {
        for (unsigned i = 1 + below(4); i-- > 0;) {
            edit();
            if (depth < 3 && below(6) == 0) inner(depth + 1);
        }
    }
    void inner(unsigned depth) {
        const std::string before = now();
        {
            Transaction transaction(*heap_);
            edits(depth);
            if (below(3) != 0) {
                transaction.commit();
                return;
            }
        }
        ++compared_;
        check(now() == before, "the content differs after an inner rollback");
    }

    void reopen() {
        heap_.reset();
        heap_.emplace(open_only, path_, options_.heap);
        check(heap_->restoration().clean, "a heap that was closed is not clean");
        expect("reopening");
    }
    void crash() {
        const std::filesystem::path left = directory_ / ("crash " + std::to_string(step_));
        std::filesystem::create_directory(left);
        auto saves = std::optional(HeapAccess::file(*heap_).files().hold_saves());  // files of one moment
        for (const auto& file : std::filesystem::directory_iterator(path_.parent_path()))
            if (file.is_regular_file()) std::filesystem::copy_file(file.path(), left / file.path().filename());
        saves.reset();
        const Serial last = heap_->last_durable();
        heap_.reset();
        const std::filesystem::path before = std::exchange(path_, left / "heap.tyn");
        for (const char* const suffix : {"", ".log", ".data"}) std::filesystem::remove(before.string() + suffix);
        if (!options_.heap.data_file.empty()) options_.heap.data_file = left / options_.heap.data_file.filename();
        heap_.emplace(open_only, path_, options_.heap);
        check(heap_->last_durable() == last, "recovery ends at another transaction than the last one");
        expect("a crash");
    }

    void turn() {
        switch (const unsigned what = below(100); what) {
            case 0:
            case 1:
                heap_->snapshot();
                expect("a snapshot");
                break;
            case 2:
                if (below(3) == 0) reopen();
                break;
            case 3:
                if (options_.crashes) {
                    heap_->wait_durable(committed_);
                    crash();
                }
                break;
            case 4:
                if (below(4) == 0) {
                    heap_->rebuild();
                    expect("rebuilding");
                }
                break;
            default:
                if (what < 20) {
                    Transaction transaction(*heap_);
                    options_.prepare(*heap_, transaction);
                    edits(1);
                    transaction.rollback();
                    expect("a rollback");
                } else if (what < 30) {
                    try {
                        Transaction transaction(*heap_);
                        options_.prepare(*heap_, transaction);
                        edits(1);
                        throw Thrown();
                    } catch (const Thrown&) {
                        expect("an exception");
                    }
                } else {
                    Transaction transaction(*heap_);
                    options_.prepare(*heap_, transaction);
                    edits(1);
                    content_ = now();
                    committed_ = transaction.commit();
                    expect("a commit");
                }
        }
    }

    std::filesystem::path directory_;
    std::filesystem::path path_;
    RandomTransactionsOptions options_;
    std::mt19937 random_;
    std::optional<TransactionalHeap> heap_;
    std::string content_;
    Serial committed_;
    int step_ = 0;
    std::uint64_t compared_ = 0;
};

}  // namespace taiyen::txn::test
