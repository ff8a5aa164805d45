#include <iostream>

#include "command/prompt.hpp"

namespace cad::command {

struct Prompt::Editor {};

Prompt::Prompt(Workplace&) {}
Prompt::~Prompt() = default;

std::optional<std::string> Prompt::read(const std::string& prompt) { return ask(prompt); }

std::optional<std::string> Prompt::ask(const std::string& question) {
    std::cout << question << std::flush;
    std::string line;
    return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
}

}  // namespace cad::command
