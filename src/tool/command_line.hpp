#pragma once
/// From the words of a command line to a command and what was given to it.

#include "tool/command.hpp"

namespace taiyen::tool {

/// Runs the command that the words name; prints help and mistakes itself.
Exit run_command_line(int count, char** words);

}  // namespace taiyen::tool
