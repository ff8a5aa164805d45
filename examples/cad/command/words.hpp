#pragma once
/// One line of a session as words, and words as numbers, points and ids. Whatever can't be read says what was expected.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"

namespace cad::command {

/// A command that can't be carried out; nothing was changed. The text says what to do instead.
class CommandError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Words are separated by blanks; "…" keeps blanks together, and within it \" and \\ stand for themselves; # starts a comment.
/// Throws CommandError for a quotation without end.
std::vector<std::string> words_of(std::string_view line);
/// The word as it has to be typed.
std::string as_typed(std::string_view word);

double number_in(std::string_view word, std::string_view expected);
/// "X,Y".
Point2 point_in(std::string_view word, std::string_view expected);
/// "17" or "17-20", appended to `ids`.
void append_ids(std::string_view word, std::vector<EntityId>& ids);

/// The candidate that is spelt most like `word`; empty if none is close.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// The words after a command's name, taken one by one.
class Arguments {
public:
    Arguments(std::vector<std::string> words, std::string_view usage) : words_(std::move(words)), usage_(usage) {}

    bool empty() const { return at_ == words_.size(); }
    std::size_t count() const { return words_.size() - at_; }
    /// The next word without taking it; empty at the end.
    std::string_view peek() const { return empty() ? std::string_view() : std::string_view(words_[at_]); }
    /// Throws CommandError if there is none.
    std::string next(std::string_view expected);
    double number(std::string_view expected) { return number_in(next(expected), expected); }
    /// Throws CommandError unless it is above zero.
    double length(std::string_view expected);
    Point2 point(std::string_view expected) { return point_in(next(expected), expected); }
    /// Takes the next word if it is `word`.
    bool take(std::string_view word);
    /// The next word, or `otherwise` at the end, as a count from 1.
    std::size_t count_or(std::size_t otherwise, std::string_view expected);
    /// Throws CommandError if a word is left.
    void end() const;
    [[noreturn]] void misused(const std::string& why) const;

private:
    std::vector<std::string> words_;
    std::size_t at_ = 0;
    std::string usage_;
};

}  // namespace cad::command
