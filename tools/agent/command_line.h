// SPDX-License-Identifier: Apache-2.0
// The agent's command line as values. Pure: reads words, touches nothing; any thread.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lib/base/result.h"
#include "tools/agent/attachment.h"
#include "tools/agent/settings.h"

namespace holdfast::agent {

struct AttachCommand {
  std::string interface;
  DecapSettings settings{};  // locals empty: the interface's
  WantedMode mode = WantedMode::automatic;
  std::string pin_dir;
  bool verbose = false;
};

struct StatusCommand {
  std::string interface;  // empty: all
  std::string pin_dir;
  bool json = false;
};

struct DetachCommand {
  std::string interface;
  std::string pin_dir;
};

/// Help was asked for: print it and be done.
struct HelpCommand {
  std::string text;
};

using Command = std::variant<AttachCommand, StatusCommand, DetachCommand, HelpCommand>;

/// `words`: the arguments after the program's name. Error code "usage", with a sentence.
[[nodiscard]] Result<Command> read_command_line(std::vector<std::string> words);

}  // namespace holdfast::agent
