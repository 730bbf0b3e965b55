// SPDX-License-Identifier: Apache-2.0
// The command line of holdfast-replay, which users know as `holdfast replay`. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace holdfast {

/// Another configuration, from a packet on.
struct ReplayChange {
  std::uint64_t index = 0;  // of the first packet that meets it, from 0
  std::string config;       // path
};

struct ReplayOptions {
  std::string config;
  std::string input;
  std::string output;
  bool json = false;
  std::optional<unsigned> workers{};  // absent: as the configuration says
  std::vector<std::string> drained{};
  std::vector<std::string> down{};
  std::vector<ReplayChange> changes{};  // by index; of equal ones, as they were given
};

/// When there is nothing to replay: --help, or words that are wrong.
struct ReplayNotice {
  std::string text;
  bool is_error = false;
};

[[nodiscard]] std::variant<ReplayOptions, ReplayNotice> parse_replay_options(
    int argc, const char* const* argv);

}  // namespace holdfast
