/// taiyen_wordnet: WordNet as an object graph in a transactional heap. See --help.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "command/console.hpp"
#include "database.hpp"
#include "lexicon.hpp"
#include "loading.hpp"
#include "queries.hpp"

namespace {

using namespace wordnet;
using namespace wordnet::command;

struct Settings {
    std::string file;
    std::string folder = database_folder;
    std::size_t per_transaction = 0;
    std::vector<std::string> words;
    std::string from;
    std::string to;
    std::string kind;
    std::string gloss;
    std::string part = "noun";
    bool everything = false;
    bool all = false;
    bool dry_run = false;
};

std::string words_of(const NamedSynset& synset) {
    std::string text;
    for (const Member& member : synset.second.members) text += (text.empty() ? "" : ", ") + spelt(member);
    return text;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : "_") + word;
    return text;
}

/// Throws: LexiconError that says what else could have been meant.
const NamedWord& known_word(const Lexicon& lexicon, const std::string& spelling) {
    if (const NamedWord* const word = find_word(lexicon, spelling)) return *word;
    std::string fault = "\"" + spelt(spelling) + "\" is not in the lexicon";
    const auto similar = similar_words(lexicon, spelling);
    for (std::size_t i = 0; i < similar.size(); ++i) fault += (i == 0 ? "; there is " : ", ") + spelt(similar[i]->first);
    throw LexiconError(fault);
}

NamedSynset& known_synset(Lexicon& lexicon, const std::string& text) {
    const auto id = synset_id_in(text);
    if (!id) throw LexiconError("\"" + text + "\" is no synset's id: those are a letter (n, v, a, r) and a number, as 'word' prints them");
    if (NamedSynset* const synset = find_synset(lexicon, *id)) return *synset;
    throw LexiconError("there is no synset " + text + "; 'word' prints the ids of a word's senses");
}

void print_opening(const taiyen::TransactionalHeap& heap) {
    if (const taiyen::Restoration restored = heap.restoration(); !restored.clean)
        fmt::print("(the last user of {} crashed: {} transactions replayed)\n", heap.path().string(), restored.transactions_replayed);
}

/// Opens, answers, and says how long each took.
int with_lexicon(const Settings& settings, const std::function<int(const Lexicon&)>& answer) {
    const auto start = Clock::now();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, settings.file);
    const Lexicon& lexicon = lexicon_of(heap);
    const auto opened = Clock::now();
    print_opening(heap);
    const int status = answer(lexicon);
    fmt::print("\nopened in {}, answered in {}\n", time_text(opened - start), time_text(Clock::now() - opened));
    return status;
}

int load_files(const Settings& settings) {
    const auto start = Clock::now();
    Database database;
    {
        ProgressLine line;
        database = read_database(settings.folder,
                                 [&](std::uint64_t done, std::uint64_t all, const std::string& file) { line.show(done, all, "reading " + file); });
    }
    const auto parsed = Clock::now();
    fmt::print("read {} lines of {} in {}\n", grouped(database.index.size() + database.data.size()), settings.folder, time_text(parsed - start));
    taiyen::TransactionalHeap heap(taiyen::open_or_create, settings.file);
    print_opening(heap);
    Loading loading;
    {
        ProgressLine line;
        loading = load(heap, database, {settings.per_transaction}, [&](std::size_t done, std::size_t all, std::size_t transactions) {
            line.show(done, all, fmt::format("{} of {}, {} transactions", grouped(done), grouped(all), transactions));
        });
    }
    const auto loaded = Clock::now();
    const Lexicon& lexicon = lexicon_of(heap);
    fmt::print("loaded {} synsets, {} words, {} relations into {} in {}: {} transaction{}, the last has serial {}\n", grouped(lexicon.synsets.size()),
               grouped(lexicon.words.size()), grouped(lexicon.relations), settings.file, time_text(loaded - parsed), loading.transactions,
               loading.transactions == 1 ? "" : "s", loading.last.value);
    heap.close();
    fmt::print("closed in {}\n", time_text(Clock::now() - loaded));
    return 0;
}

void print_synset(const NamedSynset& synset, std::size_t number, bool all) {
    fmt::print("{:3}  {}  {}\n{}", number, text_of(synset.first), words_of(synset), wrapped(synset.second.gloss, 5));
    constexpr std::size_t few = 8;
    std::size_t shown = 0;
    for (const Relation& relation : synset.second.relations) {
        if (++shown > few && !all) {
            fmt::print("       and {} more; --all prints them\n", synset.second.relations.size() - few);
            break;
        }
        fmt::print("       {:<18} {}  {}\n", name_of(relation.kind), text_of(relation.target->first), words_of(*relation.target));
    }
}

int show_word(const Settings& settings) {
    return with_lexicon(settings, [&](const Lexicon& lexicon) {
        const NamedWord& word = known_word(lexicon, joined(settings.words));
        std::optional<PartOfSpeech> part;
        std::size_t number = 0;
        for (const NamedSynset* const sense : word.second.senses) {
            if (part != sense->first.part) {
                part = sense->first.part;
                number = 0;
                fmt::print("{}, {}\n", spelt(word.first), name_of(*part));
            }
            print_synset(*sense, ++number, settings.all);
        }
        return 0;
    });
}

int show_hypernyms(const Settings& settings) {
    return with_lexicon(settings, [&](const Lexicon& lexicon) {
        const NamedWord& word = known_word(lexicon, joined(settings.words));
        std::size_t senses = 0;
        for (const NamedSynset* const sense : word.second.senses) {
            if (++senses > 1 && !settings.all) {
                fmt::print("{} more senses; --all prints them\n", word.second.senses.size() - 1);
                break;
            }
            fmt::print("{}  {}\n", text_of(sense->first), words_of(*sense));
            for (const HypernymPath& path : hypernym_paths(*sense)) {
                std::string line;
                for (const NamedSynset* const synset : path) line += (line.empty() ? "" : " → ") + spelt(synset->second.members.front());
                fmt::print("{}", wrapped(line, 4));
            }
        }
        return 0;
    });
}

int show_path(const Settings& settings) {
    return with_lexicon(settings, [&](const Lexicon& lexicon) {
        const NamedWord& from = known_word(lexicon, settings.from);
        const NamedWord& to = known_word(lexicon, settings.to);
        const auto path = shortest_path(from.second, to.second, settings.everything ? Follow::everything : Follow::hierarchy);
        if (path.empty()) {
            fmt::print("no way leads from {} to {}{}\n", spelt(from.first), spelt(to.first),
                       settings.everything ? "" : "; --everything follows all relations");
            return 1;
        }
        for (const PathStep& step : path)
            fmt::print("{:<18} {}  {}\n", step.by ? name_of(*step.by) : "", text_of(step.synset->first), words_of(*step.synset));
        fmt::print("{} steps\n", path.size() - 1);
        return 0;
    });
}

int show_statistics(const Settings& settings) {
    return with_lexicon(settings, [&](const Lexicon& lexicon) {
        const Statistics numbers = statistics(lexicon);
        const auto row = [](std::string_view what, std::size_t number) { fmt::print("{:<20} {:>9}\n", what, grouped(number)); };
        row("words", numbers.words);
        row("senses", numbers.senses);
        row("synsets", numbers.synsets);
        for (int i = 0; i < parts_of_speech; ++i) row("  " + std::string(name_of(static_cast<PartOfSpeech>(i))), numbers.synsets_of[i]);
        row("relations", numbers.relations);
        for (const auto& [kind, count] : numbers.relations_of) row("  " + std::string(name_of(kind)), count);
        if (numbers.most_senses != nullptr)
            fmt::print("most senses: {} ({})\n", spelt(numbers.most_senses->first), numbers.most_senses->second.senses.size());
        if (!numbers.deepest.empty()) fmt::print("longest way up: {} synsets, from {}\n", numbers.deepest.size(), words_of(*numbers.deepest.front()));
        return 0;
    });
}

int check(const Settings& settings) {
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, settings.file);
    print_opening(heap);
    const std::string broken = broken_invariant(lexicon_of(heap));
    const taiyen::Report report = heap.verify();
    fmt::print("the lexicon: {}\nthe heap:    {}\n", broken.empty() ? "whole" : broken, report.ok() ? "whole" : "damaged; 'taiyen verify' says more");
    return broken.empty() && report.ok() ? 0 : 1;
}

/// Runs an edit in a transaction; a dry run shows what came of it and takes it back.
int edit(const Settings& settings, const std::function<const NamedSynset*(Lexicon&)>& change) {
    taiyen::TransactionalHeap heap(taiyen::open_only, settings.file);
    print_opening(heap);
    taiyen::Transaction transaction(heap);
    Lexicon& lexicon = lexicon_of(heap);
    const NamedSynset* const synset = change(lexicon);
    print_synset(*synset, 1, true);
    if (settings.dry_run) {
        transaction.rollback();
        fmt::print("\nrolled back: {} is as it was\n", settings.file);
    } else {
        fmt::print("\ncommitted: serial {}\n", transaction.commit().value);
    }
    heap.close();
    return 0;
}

int add_word_to_synset(const Settings& settings) {
    return edit(settings, [&](Lexicon& lexicon) {
        NamedSynset& synset = known_synset(lexicon, settings.to);
        express(lexicon, synset, settings.from);
        return &synset;
    });
}

int add_new_synset(const Settings& settings) {
    return edit(settings, [&](Lexicon& lexicon) {
        std::optional<PartOfSpeech> part;
        for (int i = 0; i < parts_of_speech; ++i)
            if (name_of(static_cast<PartOfSpeech>(i)) == settings.part) part = static_cast<PartOfSpeech>(i);
        NamedSynset& synset = add_synset(lexicon, free_id(lexicon, *part), settings.gloss);
        for (const std::string& word : settings.words) express(lexicon, synset, word);
        if (!settings.to.empty()) relate(lexicon, synset, RelationKind::hypernym, known_synset(lexicon, settings.to));
        return &synset;
    });
}

int add_new_relation(const Settings& settings) {
    return edit(settings, [&](Lexicon& lexicon) {
        const auto kind = relation_kind_named(settings.kind);
        if (!kind) {
            std::string names;
            for (int i = 0; i <= static_cast<int>(RelationKind::usage_member); ++i) names += ' ' + std::string(name_of(static_cast<RelationKind>(i)));
            throw LexiconError("\"" + settings.kind + "\" is no kind of relation; there are:" + names);
        }
        NamedSynset& from = known_synset(lexicon, settings.from);
        relate(lexicon, from, *kind, known_synset(lexicon, settings.to));
        return &from;
    });
}

using Task = int (*)(const Settings&);

/// Declares the command line; `chosen` becomes what it asks for.
void declare(CLI::App& app, Settings& settings, Task& chosen) {
    const auto command = [&](CLI::App& parent, const char* name, const char* what, Task task) -> CLI::App& {
        CLI::App* const sub = parent.add_subcommand(name, what);
        sub->add_option("file", settings.file, "the heap")->required();
        sub->callback([&chosen, task] { chosen = task; });
        return *sub;
    };
    CLI::App& loading = command(app, "load", "Puts WordNet's database into a heap, created if need be", load_files);
    loading.add_option("--from", settings.folder, "folder of data.* and index.*")->capture_default_str();
    loading.add_option("--per-transaction", settings.per_transaction, "synsets or words that one transaction adds; 0: everything in one")
        ->capture_default_str();

    CLI::App& word = command(app, "word", "What a word can mean", show_word);
    word.add_option("word", settings.words, "one or more words, together one entry")->required();
    word.add_flag("--all", settings.all, "all relations");

    CLI::App& up = command(app, "hypernyms", "Every way up from a word: what it is a kind of, and that, and so on", show_hypernyms);
    up.add_option("word", settings.words, "one or more words, together one entry")->required();
    up.add_flag("--all", settings.all, "for all senses, not the most frequent alone");

    CLI::App& path = command(app, "path", "The shortest way between two words", show_path);
    path.add_option("from", settings.from)->required();
    path.add_option("to", settings.to)->required();
    path.add_flag("--everything", settings.everything, "follow all relations, not hypernyms and hyponyms alone");

    CLI::App* const add = app.add_subcommand("add", "Changes the lexicon in a transaction");
    add->require_subcommand(1);
    CLI::App& new_word = command(*add, "word", "Gives a synset one more word", add_word_to_synset);
    new_word.add_option("word", settings.from)->required();
    new_word.add_option("synset", settings.to, "its id, such as n02084071")->required();
    CLI::App& new_synset = command(*add, "synset", "Makes a synset", add_new_synset);
    new_synset.add_option("words", settings.words, "its words")->required();
    new_synset.add_option("--part", settings.part, "part of speech")
        ->check(CLI::IsMember({"noun", "verb", "adjective", "adverb"}))
        ->capture_default_str();
    new_synset.add_option("--gloss", settings.gloss, "what it means")->required();
    new_synset.add_option("--under", settings.to, "id of its hypernym");
    CLI::App& new_relation = command(*add, "relation", "Relates two synsets, both ways where the kind has an inverse", add_new_relation);
    new_relation.add_option("from", settings.from, "a synset's id")->required();
    new_relation.add_option("kind", settings.kind, "what the second is to the first: hypernym, part-meronym, …")->required();
    new_relation.add_option("to", settings.to, "a synset's id")->required();
    for (CLI::App* const sub : {&new_word, &new_synset, &new_relation})
        sub->add_flag("--dry-run", settings.dry_run, "show what would come of it, and roll back");

    command(app, "stats", "Counts", show_statistics);
    command(app, "check", "Whether the lexicon and its heap are whole", check);
}

}  // namespace

int main(int count, char** words) {
    CLI::App app("WordNet as an object graph of plain structs and pointers in a transactional heap.", "taiyen_wordnet");
    app.footer("Exit status: 0; 1 if something failed or is not as it should be; 2 for a wrong command line.");
    app.require_subcommand(1);
    Settings settings;
    Task chosen = nullptr;
    declare(app, settings, chosen);
    try {
        app.parse(count, words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    try {
        return chosen(settings);
    } catch (const std::exception& error) {
        std::cout.flush();
        fmt::print(stderr, "taiyen_wordnet: {}\n", error.what());
        return 1;
    }
}
