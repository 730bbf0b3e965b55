// SPDX-License-Identifier: Apache-2.0
// holdfast-agent: decapsulation on a backend. Reads the command line, does one thing, ends; what it
// attached stays. docs/agent.md is for operators.
#include <fmt/format.h>

#include <exception>
#include <variant>

#include "lib/base/printable.h"
#include "lib/base/standard_output.h"
#include "tools/agent/attachment.h"
#include "tools/agent/bpffs.h"
#include "tools/agent/command_line.h"
#include "tools/agent/report.h"
#include "tools/agent/system.h"

namespace holdfast::agent {
namespace {

/// The program's exit status (architecture: CLI).
int exit_status(const Error& error) {
  if (error.code == "usage") return 2;
  if (error.code == "permission") return 4;
  return 1;
}

Result<void> run(const HelpCommand& command) { return write_out(command.text); }

Result<void> run(const AttachCommand& command) {
  if (auto allowed = require_privileges(); !allowed) return allowed;
  auto interface = find_interface(command.interface);
  if (!interface) return tl::unexpected(interface.error());
  auto settings = command.settings;
  if (settings.locals.empty()) settings.locals = interface->addresses;
  if (settings.locals.empty())
    return fail(
        fmt::format("{} has no address: give it one first, or name with --local the "
                    "addresses that load balancers send to",
                    interface->name));
  const auto folder = PinFolder::make(command.pin_dir);
  if (!folder) return tl::unexpected(folder.error());
  const auto attached = attach(*folder, {*interface, settings, command.mode, command.verbose});
  if (!attached) return tl::unexpected(attached.error());
  if (const auto warning = warning_of(command.settings); !warning.empty())
    write_error(fmt::format("holdfast-agent: warning: {}\n", warning));
  auto text = fmt::format(
      "{}: {} in {} mode; {} VIPs, {} load balancer prefixes, {} local addresses\n",
      interface->name,
      attached->replaced ? "replaced without a gap, counters kept," : "decapsulating",
      name_of(attached->mode), settings.vips.size(), settings.lbs.size(), settings.locals.size());
  if (!attached->native_refusal.empty())
    text +=
        fmt::format("{}: generic mode is slower; {}\n", interface->name, attached->native_refusal);
  return write_out(text);
}

Result<void> run(const StatusCommand& command) {
  if (auto allowed = require_privileges(); !allowed) return allowed;
  const auto folder = PinFolder::open(command.pin_dir);
  if (!folder) return tl::unexpected(folder.error());
  auto attachments = list_attachments(*folder);
  if (!attachments) return tl::unexpected(attachments.error());
  if (!command.interface.empty())
    std::erase_if(*attachments, [&](const Attachment& attachment) {
      return attachment.interface != command.interface;
    });
  if (attachments->empty())
    return fail(fmt::format(
        "nothing is attached{}{} by way of {}: what was attached with another --pin-dir "
        "needs it here, too",
        command.interface.empty() ? "" : " to ", printable(command.interface),
        folder->path().string()));
  return write_out(command.json ? json_report(*attachments) : text_report(*attachments));
}

Result<void> run(const DetachCommand& command) {
  if (auto allowed = require_privileges(); !allowed) return allowed;
  const auto folder = PinFolder::open(command.pin_dir);
  if (!folder) return tl::unexpected(folder.error());
  if (auto done = detach(*folder, command.interface); !done) return done;
  return write_out(fmt::format("{}: detached\n", command.interface));
}

int run(std::vector<std::string> words) {
  const auto command = read_command_line(std::move(words));
  const auto done = command ? std::visit([](const auto& chosen) { return run(chosen); }, *command)
                            : tl::unexpected(command.error());
  if (done) return 0;
  const auto text = done.error().text();
  write_error(fmt::format("holdfast-agent: {}\n", printable(text, text.size())));
  return exit_status(done.error());
}

}  // namespace
}  // namespace holdfast::agent

int main(int argc, char** argv) {
  holdfast::keep_standard_descriptors();
  try {
    return holdfast::agent::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    holdfast::write_error(fmt::format("holdfast-agent: {}\n", error.what()));
    return 1;
  }
}
