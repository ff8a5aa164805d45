#pragma once
/// Manual pages and shell completion, from the tables of commands.

#include <string>

#include "tool/command.hpp"

namespace taiyen::tool {

/// The manual page taiyen(1), in the man(7) macros.
std::string manual_page();
/// Completion scripts.
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace taiyen::tool
