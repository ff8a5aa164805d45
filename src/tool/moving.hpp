#pragma once
/// What the commands that make a heap at another place have in common: options, words, and what they tell. Thread rule: one thread.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/transfer/expand.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"

namespace taiyen::tool {

/// "auto" (taiyen::anywhere), "0x2300_0000_0000", or without the lines. Throws: Error{invalid_argument}.
std::uintptr_t place_of(std::string_view text);

/// One of the words; throws Error{invalid_argument} that names them.
template <class Value>
Value chosen(const Given& given, std::string_view option, std::initializer_list<std::pair<std::string_view, Value>> words, Value otherwise) {
    const auto asked = given.value(option);
    if (!asked) return otherwise;
    std::string known;
    for (const auto& [word, value] : words) {
        if (word == *asked) return value;
        known.append(known.empty() ? "" : ", ").append(word);
    }
    throw Error(errc::invalid_argument, "--" + std::string(option) + " takes one of " + known + ", not '" + *asked + "'");
}

/// Kind, capacity, address and threads of the new heap, as given. Throws: Error{invalid_argument}.
void take_options(const Given& given, ExpandOptions& options);
/// Words that nothing proves to be pointers, and that change where the heap goes.
void print_guessed(const RebaseReport& report);
/// The same as members of an object.
void add_guessed(JsonWriter& json, const RebaseReport& report);
/// Prints what was made.
void print_made(const Given& given, const std::string& target, const ExpandOptions& options, const Expanded& made);

}  // namespace taiyen::tool
