// SPDX-License-Identifier: Apache-2.0
#include "ctrl/cli/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ctrl/command/command.h"
#include "lib/base/printable.h"
#include "lib/base/standard_output.h"

namespace holdfast {
namespace {

constexpr std::string_view kProgram = "holdfast-replay";

/// What stands before the command may be --socket, which a replay has no use for, and --json.
struct Words {
  bool replay = false;
  bool json = false;
  int rest = 0;  // index of the first word behind "replay"
};

Words read_words(int argc, char** argv) {
  Words words;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      words.json = true;
    } else if (word == "--socket") {
      ++i;
    } else if (!word.starts_with("--socket=")) {
      words.replay = word == "replay";
      words.rest = i + 1;
      break;
    }
  }
  return words;
}

/// Beside this program, as installed; in a build's own folder, as built.
std::vector<std::filesystem::path> places() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto folder = self.parent_path();
  return {folder / kProgram, folder.parent_path() / "lb" / "replay" / kProgram};
}

}  // namespace

std::optional<int> become_replay(int argc, char** argv) {
  const Words words = read_words(argc, argv);
  if (!words.replay) return std::nullopt;

  std::string json = "--json";
  std::string own_name(kProgram);
  std::vector<char*> arguments{own_name.data()};
  if (words.json) arguments.push_back(json.data());
  arguments.insert(arguments.end(), argv + words.rest, argv + argc);
  arguments.push_back(nullptr);
  int why = ENOENT;
  for (const auto& path : places()) {
    ::execv(path.c_str(), arguments.data());
    if (errno != ENOENT) why = errno;
  }
  write_error(
      fmt::format("holdfast: {}, which is to stand beside holdfast, cannot be started: {}\n",
                  kProgram, std::generic_category().message(why)));
  return static_cast<int>(ExitCode::refused);
}

}  // namespace holdfast
