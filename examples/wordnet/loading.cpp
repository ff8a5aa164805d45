#include "loading.hpp"

#include <optional>

namespace wordnet {
namespace {

/// Commits after so many steps and goes on in a new transaction.
class Steps {
public:
    Steps(taiyen::TransactionalHeap& heap, std::size_t per_transaction, std::size_t all, const LoadProgress& progress)
        : heap_(&heap), per_transaction_(per_transaction), all_(all), progress_(&progress) {
        transaction_.emplace(heap);
    }

    void count() {
        ++done_;
        if (per_transaction_ != 0 && done_ % per_transaction_ == 0) {
            commit();
            transaction_.emplace(*heap_);
        }
        constexpr std::size_t often = 1000;
        if (*progress_ && done_ % often == 0) (*progress_)(done_, all_, result_.transactions);
    }

    Loading finish() {
        commit();
        if (*progress_) (*progress_)(all_, all_, result_.transactions);
        return result_;
    }

private:
    void commit() {
        result_.last = transaction_->commit();
        transaction_.reset();
        ++result_.transactions;
    }

    taiyen::TransactionalHeap* heap_;
    std::size_t per_transaction_;
    std::size_t all_;
    const LoadProgress* progress_;
    std::size_t done_ = 0;
    Loading result_;
    std::optional<taiyen::Transaction> transaction_;
};

NamedSynset& known_synset(Lexicon& lexicon, SynsetId id, const std::string& wanted_by) {
    NamedSynset* const synset = find_synset(lexicon, id);
    if (synset == nullptr)
        throw DatabaseError("WordNet's files contradict each other: " + wanted_by + " wants " + text_of(id) + ", which isn't there");
    return *synset;
}

void add_words(Lexicon& lexicon, const IndexLine& line) {
    NamedWord& word = add_word(lexicon, line.lemma);
    for (const SynsetId id : line.senses) add_sense(lexicon, word, known_synset(lexicon, id, line.lemma));
}

void connect(Lexicon& lexicon, const DataLine& line) {
    NamedSynset& synset = known_synset(lexicon, line.id, text_of(line.id));
    synset.second.members.reserve(line.words.size());
    synset.second.relations.reserve(line.pointers.size());
    for (const std::string& spelling : line.words) {
        NamedWord* const word = find_word(lexicon, spelling);
        if (word == nullptr) {
            throw DatabaseError("WordNet's files contradict each other: " + text_of(line.id) + " has the word " + spelling +
                                ", which no index lists");
        }
        add_member(synset, *word, spelling);
    }
    for (const DataPointer& pointer : line.pointers)
        add_relation(lexicon, synset, {pointer.kind, pointer.from, pointer.to, &known_synset(lexicon, pointer.target, text_of(line.id))});
}

}  // namespace

Loading load(taiyen::TransactionalHeap& heap, const Database& database, const LoadingOptions& options, const LoadProgress& progress) {
    if (const Lexicon* const there = heap.find<Lexicon>(lexicon_name); there != nullptr && there->complete) {
        throw LexiconError(heap.path().string() + " has a lexicon of " + std::to_string(there->synsets.size()) +
                           " synsets already; load into a new file");
    }
    Steps steps(heap, options.per_transaction, database.data.size() * 2 + database.index.size(), progress);
    heap.destroy<Lexicon>(lexicon_name);  // what an interrupted load left, if any
    auto& lexicon = heap.construct<Lexicon>(lexicon_name);
    for (const DataLine& line : database.data) {
        add_synset(lexicon, line.id, line.gloss);
        steps.count();
    }
    for (const IndexLine& line : database.index) {
        add_words(lexicon, line);
        steps.count();
    }
    for (const DataLine& line : database.data) {
        connect(lexicon, line);
        steps.count();
    }
    lexicon.complete = true;
    return steps.finish();
}

const Lexicon& lexicon_of(const taiyen::TransactionalHeap& heap) {
    const Lexicon* const lexicon = heap.find<Lexicon>(lexicon_name);
    if (lexicon == nullptr || !lexicon->complete) {
        throw LexiconError(heap.path().string() + (lexicon == nullptr ? " has no lexicon" : " has half a lexicon: loading it was interrupted") +
                           "; 'taiyen_wordnet load' puts one there");
    }
    return *lexicon;
}

Lexicon& lexicon_of(taiyen::TransactionalHeap& heap) {
    static_cast<void>(lexicon_of(static_cast<const taiyen::TransactionalHeap&>(heap)));
    return *heap.find<Lexicon>(lexicon_name);
}

}  // namespace wordnet
