#pragma once
/// One document in every standard container, in a heap and in ordinary memory, changed by the same seeded program.

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "containers/families.hpp"

namespace taiyen::test {

/// A plain struct: no allocator plumbing.
template <class In>
struct Part {
    typename In::string name;
    typename In::template vector<typename In::string> tags;
    double x = 0;
    std::optional<typename In::string> note;
    std::variant<int, typename In::string> shape;
    typename PointerIn<In, Part>::type neighbour = nullptr;  ///< within the heap
};

template <class In>
struct Document {
    using string = typename In::string;
    typename In::template vector<int> numbers;
    typename In::template vector<string> lines;
    typename In::template deque<string> queue;
    typename In::template list<string> names;
    typename In::template forward_list<string> stack;
    typename In::template map<string, typename In::template vector<string>> index;
    typename In::template multimap<int, string> events;
    typename In::template set<string> words;
    typename In::template multiset<int> counts;
    typename In::template unordered_map<string, typename In::template map<int, string>> table;
    typename In::template unordered_multimap<int, string> links;
    typename In::template unordered_set<string> seen;
    typename In::template unordered_multiset<int> bag;
    typename In::template map<string, Part<In>> parts;
    typename In::template btree_map<string, string> ledger;
    typename In::template btree_multimap<int, string> calendar;
    typename In::template btree_set<string> terms;
    typename In::template btree_multiset<int> scores;
    typename In::template ordered_map<string, string> glossary;
};

/// One change: the same numbers make the same changes in either kind of document.
template <class In>
void change_once(Document<In>& d, std::mt19937& random) {
    using string = typename Document<In>::string;
    const auto text = [&] { return std::string("text ") + std::to_string(random() % 300) + std::string(random() % 90, '#'); };
    const auto key = [&] { return "key " + std::to_string(random() % 60) + " of the table, longer than a small buffer"; };
    const auto number = static_cast<int>(random() % 1000);
    switch (random() % 25) {
        case 0: d.numbers.push_back(number); break;
        case 1:
            if (!d.numbers.empty()) d.numbers.erase(d.numbers.begin() + number % static_cast<int>(d.numbers.size()));
            break;
        case 2: d.lines.emplace_back(text().c_str()); break;
        case 3:
            if (d.lines.empty()) break;
            if constexpr (takes_own_elements<In>)
                d.lines.insert(d.lines.begin(), d.lines.back());
            else
                d.lines.insert(d.lines.begin(), string(d.lines.back()));
            break;
        case 4:
            d.queue.emplace_back(text().c_str());
            d.queue.emplace_front(text().c_str());
            break;
        case 5:
            if (!d.queue.empty()) d.queue.pop_front();
            break;
        case 6:
            d.names.emplace_front(text().c_str());
            d.names.sort();
            break;
        case 7:
            if (!d.names.empty()) d.names.pop_back();
            break;
        case 8: d.stack.emplace_front(text().c_str()); break;
        case 9: d.index[string(key().c_str())].emplace_back(text().c_str()); break;
        case 10: d.index.erase(string(key().c_str())); break;
        case 11:
            d.events.emplace(number, text().c_str());
            if (d.events.size() > 100) d.events.erase(d.events.begin());
            break;
        case 12: d.words.emplace(text().c_str()); break;
        case 13:
            d.counts.insert(number);
            d.bag.insert(number % 10);
            break;
        case 14: d.table[string(key().c_str())][number] = text().c_str(); break;
        case 15: d.table.erase(string(key().c_str())); break;
        case 16: d.links.emplace(number, text().c_str()); break;
        case 17:
            d.seen.emplace(text().c_str());
            if (random() % 9 == 0) d.seen.clear();
            break;
        case 18: {
            auto& part = d.parts[string(key().c_str())];
            part.name = text().c_str();
            part.tags.emplace_back(text().c_str());
            part.x += 0.5;
            part.neighbour = &d.parts.begin()->second;
            if (random() % 2 == 0) part.note.emplace(text().c_str());
            if (random() % 3 == 0)
                part.shape.template emplace<string>(text().c_str());
            else
                part.shape = number;
            break;
        }
        case 19:  // enough for several leaves, now and then
            for (int i = 0; i < number % 30; ++i)
                d.ledger.emplace(string(("entry " + std::to_string((number + 37 * i) % 500)).c_str()), text().c_str());
            d.ledger.erase(string(("entry " + std::to_string(number % 500)).c_str()));
            break;
        case 23:
            for (int i = 0; i < number % 50; ++i)
                d.glossary.emplace(string(("word " + std::to_string((number + 37 * i) % 400)).c_str()), text().c_str());
            d.glossary.erase(string(("word " + std::to_string(number % 400)).c_str()));
            if (!d.glossary.empty()) d.glossary.insert(d.glossary.extract(d.glossary.begin()));
            break;
        case 20:
            d.calendar.emplace(number % 40, text().c_str());
            if (number % 4 == 0) d.calendar.erase(d.calendar.begin());
            break;
        case 21:
            d.terms.emplace(key().c_str());
            d.terms.erase(string(key().c_str()));
            break;
        case 22:
            for (int i = 0; i < number % 40; ++i) d.scores.insert((number + i * i) % 300);
            d.scores.erase(number % 300);
            break;
        default:
            if (d.parts.size() > 20) {
                for (auto& [name, part] : d.parts) part.neighbour = nullptr;
                d.parts.erase(d.parts.begin());
            }
            break;
    }
}

/// What grew is cut down now and then, so that a long random program allocates and frees alike, and comparing takes no longer and longer.
template <class In>
void keep_small(Document<In>& d, std::mt19937& random) {
    if (d.numbers.size() > 40) d.numbers.resize(20);
    if (d.lines.size() > 12) d.lines.erase(d.lines.begin() + 2, d.lines.end());
    if (d.queue.size() > 20) d.queue.clear();
    if (d.names.size() > 12) d.names.resize(4);
    if (d.stack.begin() != d.stack.end() && random() % 12 == 0) d.stack.clear();
    if (d.index.size() > 8) d.index.erase(d.index.begin());
    if (d.events.size() > 20) d.events.erase(d.events.begin(), d.events.find(d.events.rbegin()->first));
    if (d.words.size() > 15) d.words.erase(d.words.begin());
    if (d.counts.size() > 20) d.counts.clear();
    if (d.bag.size() > 30) d.bag.clear();
    if (d.table.size() > 8) d.table.clear();
    if (d.links.size() > 20) d.links.clear();
    if (d.seen.size() > 15) d.seen.clear();
    if (d.parts.size() > 6) {
        for (auto& [name, part] : d.parts) part.neighbour = nullptr;
        d.parts.erase(d.parts.begin());
    }
    if (d.ledger.size() > 150) d.ledger.erase(d.ledger.begin(), d.ledger.find(std::next(d.ledger.begin(), 120)->first));
    if (d.calendar.size() > 30) d.calendar.clear();
    if (d.glossary.size() > 150) d.glossary.erase(d.glossary.begin(), d.glossary.find(std::next(d.glossary.begin(), 110)->first));
    if (d.terms.size() > 20) d.terms.erase(d.terms.begin());
    if (d.scores.size() > 400) d.scores.erase(d.scores.lower_bound(50), d.scores.end());
    for (auto& [name, part] : d.parts)
        if (part.tags.size() > 5) part.tags.clear();
}

/// One step of the program.
template <class In>
void change(Document<In>& d, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 400; ++i) change_once(d, random);
    d.lines.shrink_to_fit();
    if (d.numbers.size() > 50) d.numbers.resize(50);
}

/// Everything in the document as text, in an order that does not depend on hash functions.
template <class In>
std::string describe(const Document<In>& d) {
    std::vector<std::string> unordered;
    std::string out;
    const auto add = [&](const auto& value) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
            out += std::to_string(value) + ";";
        else
            out.append(value.data(), value.size()) += ';';
    };
    const auto all = [&](const char* name, const auto& container) {
        out += std::string("\n") + name + ": ";
        for (const auto& value : container) add(value);
    };
    all("numbers", d.numbers);
    all("lines", d.lines);
    all("queue", d.queue);
    all("names", d.names);
    all("stack", d.stack);
    all("words", d.words);
    all("counts", d.counts);
    all("terms", d.terms);
    all("scores", d.scores);
    for (const auto& [name, values] : d.index) {
        add(name);
        all("index", values);
    }
    for (const auto& [number, value] : d.events) {
        add(number);
        add(value);
    }
    for (const auto& [name, value] : d.ledger) {
        add(name);
        add(value);
    }
    for (const auto& [number, value] : d.calendar) {
        add(number);
        add(value);
    }
    for (const auto& [name, value] : d.glossary) {
        add(name);
        add(value);
    }
    for (const auto& [name, part] : d.parts) {
        add(name);
        add(part.name);
        all("tags", part.tags);
        add(part.x);
        add(part.note ? std::string(part.note->data(), part.note->size()) : std::string("-"));
        if (part.shape.index() == 0)
            add(std::get<0>(part.shape));
        else
            add(std::get<1>(part.shape));
        if (part.neighbour != nullptr) add(part.neighbour->name);
    }
    const auto note = [&](std::string line) { unordered.push_back(std::move(line)); };
    for (const auto& [name, values] : d.table)
        for (const auto& [number, value] : values)
            note("table " + std::string(name.data(), name.size()) + std::to_string(number) + std::string(value.data(), value.size()));
    for (const auto& [number, value] : d.links) note("links " + std::to_string(number) + std::string(value.data(), value.size()));
    for (const auto& value : d.seen) note("seen " + std::string(value.data(), value.size()));
    for (const int value : d.bag) note("bag " + std::to_string(value));
    std::sort(unordered.begin(), unordered.end());
    for (const auto& line : unordered) out += line + "\n";
    return out;
}

}  // namespace taiyen::test
