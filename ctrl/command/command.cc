// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "ctrl/control_plane.h"
#include "ctrl/log.h"
#include "lib/base/printable.h"
#include "lib/config/config.h"
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

/// How the operator wrote it: POOL or --timeout.
std::string word_of(const Argument& argument) {
  return argument.kind == Argument::Kind::positional ? std::string(argument.value)
                                                     : "--" + std::string(argument.name);
}

std::optional<std::string> fault_of(const Argument& argument, const Json& value) {
  switch (argument.kind) {
    case Argument::Kind::positional:
    case Argument::Kind::text:
      if (!value.is_string()) return "must be a text";
      if (!value.get_ref<const std::string&>().empty()) return std::nullopt;
      return fmt::format("is {} ({})",
                         argument.kind == Argument::Kind::positional ? "an empty name" : "empty",
                         argument.help);
    case Argument::Kind::duration:
      if (value.is_string() && parse_duration(value.get_ref<const std::string&>())) {
        return std::nullopt;
      }
      return "must be a duration such as \"250ms\", \"10s\", \"15m\" or \"2h\"";
    case Argument::Kind::flag:
      if (value.is_boolean()) return std::nullopt;
      return "must be true or false";
  }
  return "?";
}

}  // namespace

const Command* find_command(std::string_view name) {
  const auto& all = all_commands();
  const auto it = std::find_if(all.begin(), all.end(),
                               [&](const Command& command) { return command.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::optional<Error> check_arguments(const Command& command, const Json& arguments) {
  const auto refuse = [&](std::string message) {
    return Error{
        .message = std::move(message), .where = std::string(command.name), .code = "usage"};
  };
  for (const auto& argument : command.arguments) {
    if (argument.kind == Argument::Kind::positional && !arguments.contains(argument.name)) {
      return refuse(fmt::format("needs {}: {}", argument.value, argument.help));
    }
  }
  for (const auto& [key, value] : arguments.items()) {
    const auto it =
        std::find_if(command.arguments.begin(), command.arguments.end(),
                     [&name = key](const Argument& argument) { return argument.name == name; });
    if (it == command.arguments.end())
      return refuse(fmt::format("has no argument {}", in_quotes(key)));
    if (const auto fault = fault_of(*it, value))
      return refuse(fmt::format("{} {}", word_of(*it), *fault));
  }
  return std::nullopt;
}

void run_command(ControlPlane& control, std::string_view name, const Json& arguments,
                 const std::shared_ptr<Reply>& reply) {
  const Command* command = find_command(name);
  if (command == nullptr || command->run == nullptr) {
    reply->error({.message = fmt::format("no command {} here: is the holdfast command newer than "
                                         "the daemon?",
                                         in_quotes(name)),
                  .code = "unknown_command"});
    return;
  }
  if (const auto fault = check_arguments(*command, arguments)) {
    reply->error(*fault);
    return;
  }
  if (command->changes) {
    control.events().add(EventKind::command, std::string(name),
                         fmt::format("asked by uid {} (pid {}): {}", reply->peer().uid,
                                     reply->peer().pid, to_line(arguments)));
  }
  try {
    command->run(control, arguments, reply);
  } catch (const std::exception& fault) {  // a fault of ours must not take the daemon along
    log_line(LogLevel::error, fmt::format("the command {} failed: {}", name, fault.what()));
    reply->error({.message = fmt::format("the command failed inside the daemon: {}", fault.what()),
                  .code = "internal"});
  }
}

}  // namespace holdfast
