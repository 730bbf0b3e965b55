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

void show(const Options& options, const Json& body, std::string (*render)(const Json&),
          std::FILE* text_to = stdout) {
  if (options.json || render == nullptr) {
    fmt::print("{}\n", to_line(body));
  } else {
    fmt::print(text_to, "{}", render(body));
  }
  std::fflush(stdout);
}

/// How the argument is named on the command line.
std::string word_of(const Argument& argument) {
  if (argument.kind == Argument::Kind::positional) return std::string(argument.value);
  return "--" + std::string(argument.name);
}

Json arguments_of(const Bound& bound) {
  Json arguments = Json::object();
  for (const auto& argument : bound.command->arguments) {
    const std::string name(argument.name);
    if (argument.kind == Argument::Kind::flag) {
      if (bound.flags.at(name)) arguments[name] = true;
    } else if (bound.app->count(word_of(argument)) > 0) {
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
    const auto local = command.run_here(arguments);
    show(options, local.result, command.render, local.exit == ExitCode::done ? stdout : stderr);
    return static_cast<int>(local.exit);
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
        bound.app->add_option(word_of(argument), bound.texts[name], help)
            ->required()
            ->type_name("");
        break;
      case Argument::Kind::text:
      case Argument::Kind::duration:
        bound.app->add_option(word_of(argument), bound.texts[name], help)
            ->type_name(std::string(argument.value));
        break;
      case Argument::Kind::flag:
        bound.app->add_flag(word_of(argument), bound.flags[name], help);
        break;
    }
  }
}

/// One line for what was wrong on the command line, and where help is.
std::string usage_message(const CLI::App* app, const CLI::Error& fault) {
  std::string what = fault.what();
  // Of a word that is no command CLI11 says only that one is missing.
  const auto unknown = app->remaining(true);
  if (fault.get_name() == "RequiredError" && !unknown.empty()) {
    what = fmt::format("there is no command \"{}\" here", unknown.front());
  }
  if (const auto end = what.find('\n'); end != std::string::npos) what.resize(end);
  return fmt::format("holdfast: {} (--help shows what there is)\n", what);
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
  app.failure_message(usage_message);
  app.footer(
      "Exit codes: 0 done, 1 refused, 2 usage, 3 no daemon, 4 no permission, 5 wait not "
      "fulfilled.");

  std::vector<std::unique_ptr<Bound>> all;
  std::map<std::string, CLI::App*> groups;  // "pool" of "pool show"
  for (const auto& command : all_commands()) {
    auto& bound = *all.emplace_back(std::make_unique<Bound>(Bound{&command, nullptr, {}, {}}));
    const std::string name(command.name);
    const auto space = name.find(' ');
    CLI::App* parent = &app;
    if (space != std::string::npos) {
      auto& group = groups[name.substr(0, space)];
      if (group == nullptr) {
        group = app.add_subcommand(name.substr(0, space));
        group->require_subcommand(1);
        group->fallthrough();
      }
      const auto listed = group->get_description();
      group->description((listed.empty() ? "Commands: " : listed + ", ") + name.substr(space + 1));
      parent = group;
    }
    bound.app = parent->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1),
                                       std::string(command.summary));
    bound.app->fallthrough();
    bound.app->footer("--json and --socket PATH go with every command.\nExample: " +
                      std::string(command.example));
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
