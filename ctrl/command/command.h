// SPDX-License-Identifier: Apache-2.0
// What a command of the CLI is: its name, arguments and help, what the daemon does for it and how
// its answer is shown. One family of commands is one file; list.cc names them all, and the daemon,
// the client and --help are fed from that list. run() is called in the control thread of the
// daemon; run_here() and the render functions in the client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/server/reply.h"
#include "lib/base/result.h"
#include "lib/protocol/json_fwd.h"

namespace holdfast {

class ControlPlane;
struct LocalResult;

/// Exit codes of `holdfast`, fixed for scripts.
enum class ExitCode : std::uint8_t {
  done = 0,
  refused = 1,
  usage = 2,
  no_daemon = 3,
  no_permission = 4,
  wait_not_fulfilled = 5,
};

/// Error::code of an answer that makes the client exit with ExitCode::wait_not_fulfilled.
inline constexpr std::string_view kWaitNotFulfilled = "wait_not_fulfilled";

struct Argument {
  enum class Kind : std::uint8_t {
    positional,  // POOL: a text, required
    text,        // --name VALUE
    duration,    // --name VALUE as "250ms", "10s", "15m", "2h"
    flag,        // --name
  };
  Kind kind = Kind::positional;
  std::string_view name;   // "pool", "no-wait"; also the key in the request's arguments
  std::string_view value;  // how help names the value: "POOL", "DURATION"; empty for a flag
  std::string_view help;
};

/// What select_backends() (ctrl/reconcile/select.h) reads.
inline constexpr Argument kBackendArgument{
    .kind = Argument::Kind::positional,
    .name = "backend",
    .value = "BACKEND",
    .help = "POOL/BACKEND for one pool, or BACKEND for all pools that have it; by name or address"};

struct Command {
  std::string_view name;     // one or two words: "status", "pool show"
  std::string_view summary;  // one line
  std::string_view example;  // "holdfast pool show web"
  std::vector<Argument> arguments{};
  bool changes = false;  // changes something: logged with the client's credentials

  /// In the daemon; null for a command that needs none. `arguments` has passed check_arguments().
  void (*run)(ControlPlane& control, const Json& arguments,
              const std::shared_ptr<Reply>& reply) = nullptr;
  /// In the client, for a command that needs no daemon.
  LocalResult (*run_here)(const Json& arguments) = nullptr;
  /// The result (or an event) as text for people, with line ends.
  std::string (*render)(const Json& result) = nullptr;
  std::string (*render_event)(const Json& event) = nullptr;
};

/// All commands, in the order of --help.
[[nodiscard]] const std::vector<Command>& all_commands();
[[nodiscard]] const Command* find_command(std::string_view name);

/// The daemon trusts no client: every argument must be known, of the right kind, and there if it is
/// positional.
[[nodiscard]] std::optional<Error> check_arguments(const Command& command, const Json& arguments);

/// Runs a request: finds the command, checks its arguments, logs it if it changes something.
void run_command(ControlPlane& control, std::string_view name, const Json& arguments,
                 const std::shared_ptr<Reply>& reply);

}  // namespace holdfast
