#pragma once
/// Lines typed on a terminal: edited, remembered and completed by libedit where the build found it, plain otherwise.

#include <memory>
#include <optional>
#include <string>

#include "command/workplace.hpp"

namespace cad::command {

class Prompt {
public:
    /// Completes from `place`. Lines are remembered in `~/.taiyen_cad_history` if there is a home.
    explicit Prompt(Workplace& place);
    ~Prompt();
    Prompt(const Prompt&) = delete;
    Prompt& operator=(const Prompt&) = delete;

    /// Nothing at the end of input (Ctrl-D).
    std::optional<std::string> read(const std::string& prompt);
    /// As `read`, but the line is not remembered.
    std::optional<std::string> ask(const std::string& question);

private:
    struct Editor;
    std::unique_ptr<Editor> editor_;
};

}  // namespace cad::command
