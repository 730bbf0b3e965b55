// SPDX-License-Identifier: Apache-2.0
// `holdfast`: the command line client. Everything it knows about a command comes from the list in
// ctrl/command/list.cc; here are only the shell's words, the socket and the screen.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "ctrl/cli/client.h"
#include "ctrl/command/command.h"
#include "lib/config/config.h"
#include "lib/protocol/message.h"

namespace holdfast {
namespace {

struct Options {
  std::string socket = ControlConfig{}.socket;
  bool json = false;
};

/// One command as CLI11 sees it, with the places that its arguments are read into.
struct Bound {
  const Command* command;
  CLI::App* app;
  std::map<std::string, std::string> texts;
  std::map<std::string, bool> flags;
};

void show_error(const Options& options, const Error& error) {
  if (options.json) {
    fmt::print("{}\n",
               to_line(Json{
                   {"error",
                    {{"code", error.code}, {"message", error.message}, {"where", error.where}}}}));
    return;
  }
  std::fflush(stdout);
  fmt::print(stderr, "holdfast: {}\n", error.text());
}

void show(const Options& options, const Json& body, std::string (*render)(const Json&)) {
  if (options.json || render == nullptr) {
    fmt::print("{}\n", to_line(body));
  } else {
    fmt::print("{}", render(body));
  }
  std::fflush(stdout);
}

Json arguments_of(const Bound& bound) {
  Json arguments = Json::object();
  for (const auto& argument : bound.command->arguments) {
    const std::string name(argument.name);
    if (argument.kind == Argument::Kind::flag) {
      if (bound.flags.at(name)) arguments[name] = true;
    } else if (bound.app->count((argument.kind == Argument::Kind::positional ? "" : "--") + name)) {
      arguments[name] = bound.texts.at(name);
    }
  }
  return arguments;
}

int run(const Options& options, const Bound& bound) {
  const Command& command = *bound.command;
  const Json arguments = arguments_of(bound);
  if (const auto fault = check_arguments(command, arguments)) {
    show_error(options, *fault);
    return static_cast<int>(ExitCode::usage);
  }
  if (command.run_here != nullptr) {
    const auto result = command.run_here(arguments);
    if (!result) {
      show_error(options, result.error());
      return static_cast<int>(ExitCode::refused);
    }
    show(options, *result, command.render);
    return static_cast<int>(ExitCode::done);
  }
  const auto outcome =
      ask(options.socket, {.id = 1, .command = std::string(command.name), .arguments = arguments},
          [&](const Json& event) { show(options, event, command.render_event); });
  if (outcome.exit == ExitCode::done) {
    show(options, outcome.result, command.render);
  } else {
    show_error(options, outcome.error);
  }
  return static_cast<int>(outcome.exit);
}

void add_arguments(Bound& bound) {
  for (const auto& argument : bound.command->arguments) {
    const std::string name(argument.name);
    const std::string help(argument.help);
    switch (argument.kind) {
      case Argument::Kind::positional:
        bound.app->add_option(name, bound.texts[name], help)
            ->required()
            ->type_name("")
            ->option_text(std::string(argument.value));
        break;
      case Argument::Kind::text:
      case Argument::Kind::duration:
        bound.app->add_option("--" + name, bound.texts[name], help)
            ->type_name(std::string(argument.value));
        break;
      case Argument::Kind::flag:
        bound.app->add_flag("--" + name, bound.flags[name], help);
        break;
    }
  }
}

/// The group that "pool show" belongs to, made when its first command comes.
CLI::App* group_of(CLI::App& top, const std::string& name) {
  if (auto* found = top.get_subcommand_no_throw(name)) return found;
  auto* group = top.add_subcommand(name);
  group->require_subcommand(1);
  return group;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  using namespace holdfast;
  CLI::App app{"holdfast: ask and steer the Holdfast load balancer of this host", "holdfast"};
  Options options;
  app.add_option("--socket", options.socket, "The daemon's socket")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_flag("--json", options.json, "One JSON object a line instead of text");
  app.set_version_flag("--version", HOLDFAST_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(
      "Exit codes: 0 done, 1 refused, 2 usage, 3 no daemon, 4 no permission, 5 wait not "
      "fulfilled.");

  std::vector<std::unique_ptr<Bound>> all;
  std::map<std::string, std::string> summaries;
  for (const auto& command : all_commands()) {
    auto& bound = *all.emplace_back(std::make_unique<Bound>(Bound{&command, nullptr, {}, {}}));
    const std::string name(command.name);
    const auto space = name.find(' ');
    CLI::App* parent = &app;
    if (space != std::string::npos) {
      parent = group_of(app, name.substr(0, space));
      auto& summary = summaries[name.substr(0, space)];
      summary += (summary.empty() ? "" : ", ") + name.substr(space + 1);
      parent->description("Commands: " + summary);
      parent->fallthrough();
    }
    bound.app = parent->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1),
                                       std::string(command.summary));
    bound.app->fallthrough();
    bound.app->footer("Example: " + std::string(command.example));
    add_arguments(bound);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& fault) {
    // Help and version are "errors" with code 0 in CLI11.
    return app.exit(fault) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  for (const auto& bound : all) {
    if (bound->app->parsed()) return run(options, *bound);
  }
  return static_cast<int>(ExitCode::usage);
}
