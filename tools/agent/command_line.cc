// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "lib/base/printable.h"

namespace holdfast::agent {
namespace {

struct Words {
  std::string interface;
  std::vector<std::string> vips, lbs, locals;
  std::string mode = "auto";
  std::string pin_dir = PinFolder::kDefault;
  bool json = false;
  bool verbose = false;
};

/// An option that may be given again and takes one word each time, so that it never swallows the
/// interface.
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<std::string>& list,
                      const std::string& description) {
  return command.add_option(name, list, description)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void add_pin_dir(CLI::App& command, Words& words) {
  command.add_option("--pin-dir", words.pin_dir, "folder on a bpffs that keeps the attachments")
      ->type_name("DIR")
      ->capture_default_str();
}

CLI::App* add_attach(CLI::App& app, Words& words) {
  auto* const command = app.add_subcommand(
      "attach",
      "Take the tunnel off packets that load balancers send to this interface. Given again, it "
      "replaces the settings in one step: no packet is missed, the counters go on.");
  command->add_option("interface", words.interface, "the interface that receives from the fabric")
      ->type_name("IF")
      ->required();
  add_list(*command, "--vip", words.vips, "a virtual address this backend serves (repeat)")
      ->type_name("ADDRESS")
      ->required();
  add_list(*command, "--lb", words.lbs, "a load balancer, or all of a prefix (repeat)")
      ->type_name("ADDRESS[/LENGTH]")
      ->required();
  add_list(*command, "--local", words.locals,
           "an address of this backend that load balancers send to (repeat; default: the addresses "
           "that the interface has now)")
      ->type_name("ADDRESS");
  command
      ->add_option(
          "--mode", words.mode,
          "native (in the driver), generic (any driver, slower), auto (native if possible)")
      ->type_name("auto|native|generic")
      ->capture_default_str();
  add_pin_dir(*command, words);
  command->add_flag("--verbose", words.verbose, "show what libbpf and the kernel say");
  command->footer(
      "Example:\n  holdfast-agent attach eth0 --vip 203.0.113.10 --vip 2001:db8:f::10 --lb "
      "192.0.2.0/24\n");
  return command;
}

CLI::App* add_status(CLI::App& app, Words& words) {
  auto* const command =
      app.add_subcommand("status", "Show what is attached, with its settings and counters.");
  command->add_option("interface", words.interface, "only this interface")->type_name("IF");
  command->add_flag("--json", words.json, "for programs");
  add_pin_dir(*command, words);
  command->footer("Example:\n  holdfast-agent status eth0 --json\n");
  return command;
}

CLI::App* add_detach(CLI::App& app, Words& words) {
  auto* const command = app.add_subcommand(
      "detach", "End decapsulation on an interface: tunnel packets go to the kernel again.");
  command->add_option("interface", words.interface, "the interface")->type_name("IF")->required();
  add_pin_dir(*command, words);
  command->footer("Example:\n  holdfast-agent detach eth0\n");
  return command;
}

tl::unexpected<Error> usage(std::string_view message) {
  return fail(printable(message, kMaxSentence) + " (holdfast-agent --help shows the commands)", {},
              "usage");
}

/// `--pin-dir ""` and the like come from a variable of a script that is not set.
std::string empty_word(const CLI::App& app, const Words& words) {
  const auto& chosen = *app.get_subcommands().front();
  if (chosen.count("interface") > 0 && words.interface.empty())
    return "the interface's name IF is empty";
  if (words.pin_dir.empty()) return "--pin-dir is empty: it must name a folder";
  return {};
}

Result<Command> to_attach_command(const Words& words) {
  auto settings = read_settings(words.vips, words.lbs, words.locals);
  if (!settings) return tl::unexpected(settings.error());
  AttachCommand command{
      .interface = words.interface, .settings = std::move(*settings), .pin_dir = words.pin_dir};
  command.verbose = words.verbose;
  if (words.mode == "native")
    command.mode = WantedMode::native;
  else if (words.mode == "generic")
    command.mode = WantedMode::generic;
  else if (words.mode != "auto")
    return usage("--mode " + printable(words.mode) + ": not auto, native or generic");
  return command;
}

}  // namespace

Result<Command> read_command_line(std::vector<std::string> words_in_order) {
  Words words;
  CLI::App app("Decapsulation on a backend of Holdfast, in XDP.", "holdfast-agent");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 refused, 2 usage, 4 no permission.\n"
      "Example:\n  holdfast-agent attach eth0 --vip 203.0.113.10 --lb 192.0.2.0/24\n");
  const auto* const attach = add_attach(app, words);
  const auto* const status = add_status(app, words);
  const auto* const detach = add_detach(app, words);
  try {
    // CLI11 takes the words from the back.
    std::ranges::reverse(words_in_order);
    app.parse(std::move(words_in_order));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    return HelpCommand{chosen.empty() ? app.help() : chosen.front()->help("holdfast-agent")};
  } catch (const CLI::RequiredError& error) {
    if (!app.get_subcommands().empty()) return usage(error.what());
    const std::string what = app.remaining().empty()
                                 ? "a command is required"
                                 : "there is no command " + printable(app.remaining().front());
    return usage(what + ": attach, status, detach");
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }
  if (const auto fault = empty_word(app, words); !fault.empty()) return usage(fault);
  if (attach->parsed()) return to_attach_command(words);
  if (status->parsed()) return StatusCommand{words.interface, words.pin_dir, words.json};
  if (detach->parsed()) return DetachCommand{words.interface, words.pin_dir};
  return usage("a command is required");
}

}  // namespace holdfast::agent
