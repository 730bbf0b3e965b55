// SPDX-License-Identifier: Apache-2.0
// `holdfast`: the command line client. Everything it knows about a command comes from the list in
// ctrl/command/list.cc; here are only the shell's words, the socket and the screen.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ctrl/cli/client.h"
#include "ctrl/cli/replay.h"
#include "ctrl/command/command.h"
#include "ctrl/command/local_result.h"
#include "lib/base/printable.h"
#include "lib/base/standard_output.h"
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

int show_error(const Options& options, ExitCode exit, const Error& error) {
  const Json body{
      {"error", {{"code", error.code}, {"message", error.message}, {"where", error.where}}}};
  // Where JSON can not be written, the reason must be seen all the same.
  if (!options.json || !write_out(to_line(body) + '\n')) {
    const auto text = error.text();
    write_error(fmt::format("holdfast: {}\n", printable(text, text.size())));
  }
  return static_cast<int>(exit);
}

Result<void> show(const Options& options, const Json& body, std::string (*render)(const Json&)) {
  return write_out(options.json || render == nullptr ? to_line(body) + '\n' : render(body));
}

/// The program's exit code, if all else went well.
int told(const Result<void>& shown) {
  if (shown) return static_cast<int>(ExitCode::done);
  return show_error({}, ExitCode::refused, shown.error());
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
    return show_error(options, ExitCode::usage, *fault);
  }
  if (command.run_here != nullptr) {
    const auto local = command.run_here(arguments);
    if (local.exit != ExitCode::done && !options.json) {
      write_error(command.render(local.result));
      return static_cast<int>(local.exit);
    }
    const int exit = told(show(options, local.result, command.render));
    return local.exit == ExitCode::done ? exit : static_cast<int>(local.exit);
  }
  const auto outcome =
      ask(options.socket, {.id = 1, .command = std::string(command.name), .arguments = arguments},
          [&](const Json& event) { return show(options, event, command.render_event); });
  if (outcome.exit != ExitCode::done) return show_error(options, outcome.exit, outcome.error);
  return told(show(options, outcome.result, command.render));
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

/// Whether the words ask for JSON: after a usage error nothing of them has been taken yet.
bool wants_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](const char* word) { return std::string_view(word) == "--json"; });
}

/// "status, service, pool, ...": the commands of `app`.
std::string commands_of(const CLI::App& app) {
  std::string names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

/// One line for what was wrong on the command line, what there is instead, and where help is.
std::string usage_message(const CLI::App* app, const CLI::Error& fault) {
  std::string what = fault.what();
  const CLI::App* here = app;  // the innermost command that was understood
  while (!here->get_subcommands().empty()) here = here->get_subcommands().front();
  const auto known = commands_of(*here);
  if (fault.get_name() == "RequiredError" && !known.empty()) {
    // Of a word that is no command CLI11 says only that one is missing.
    const auto unknown = app->remaining(true);
    what = unknown.empty() ? "a command is required"
                           : fmt::format("there is no command {} here", in_quotes(unknown.front()));
    what += here == app ? fmt::format(": {}", known)
                        : fmt::format("; {} has: {}", here->get_name(), known);
  }
  return fmt::format("{} (--help shows more)", printable(what, kMaxSentence));
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  using namespace holdfast;
  keep_standard_descriptors();
  if (const auto exit = become_replay(argc, argv)) return *exit;
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

  // Only for --help: where it is asked for, become_replay() has taken over.
  app.add_subcommand("replay", "Send a capture through the data path; needs no daemon");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& fault) {
    std::ostringstream out;
    std::ostringstream errors;
    // Help and version are "errors" with code 0 in CLI11.
    const bool asked_for = app.exit(fault, out, errors) == 0;
    if (asked_for) return told(write_out(out.str()));
    options.json = wants_json(argc, argv);
    return show_error(options, ExitCode::usage, {.message = errors.str(), .code = "usage"});
  }
  for (const auto& bound : all) {
    if (bound->app->parsed()) return run(options, *bound);
  }
  return static_cast<int>(ExitCode::usage);
}
