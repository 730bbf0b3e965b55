// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/check.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "lib/config/config.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxConfigBytes = 16 * 1024 * 1024;

Result<std::string> read_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) { return fail(why, path); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) {
    return refuse(fmt::format("can not be read: {}", std::generic_category().message(errno)));
  }
  std::string text;
  char piece[65536];
  while (const auto got = std::fread(piece, 1, sizeof piece, file.get())) {
    text.append(piece, got);
    if (text.size() > kMaxConfigBytes) return refuse("is larger than 16 MiB: not a configuration");
  }
  if (std::ferror(file.get())) {
    return refuse(fmt::format("can not be read: {}", std::generic_category().message(errno)));
  }
  return text;
}

Json fault(const std::string& file, std::uint32_t line, std::uint32_t column,
           const std::string& message, const std::string& text) {
  return {{"file", file}, {"line", line}, {"column", column}, {"message", message}, {"text", text}};
}

/// The seed is a secret in a file of its own, which may be readable only on the load balancer.
void look_at_seed(const Config& config, Json& faults, Json& notes) {
  const auto& path = config.dataplane.hash_seed_file;
  const auto text = read_file(path);
  if (!text) {
    notes.push_back(fmt::format("hash_seed_file was not checked: {}", text.error().text()));
    return;
  }
  if (const auto seed = parse_seed(*text); !seed) {
    faults.push_back(
        fault(path, 0, 0, seed.error().message, fmt::format("{}: {}", path, seed.error().message)));
  }
}

LocalResult run(const Json& arguments) {
  const auto path = text_at(arguments, "file");
  Json faults = Json::array();
  Json notes = Json::array();
  Json result{{"file", path}, {"ok", false}};
  const auto text = read_file(path);
  if (!text) {
    faults.push_back(fault(path, 0, 0, text.error().message, text.error().text()));
  } else {
    const auto parsed = parse_config(*text, path);
    for (const auto& one : parsed.faults) {
      faults.push_back(fault(one.file, one.line, one.column, one.message, one.text()));
    }
    if (parsed.ok()) {
      look_at_seed(parsed.config, faults, notes);
      std::size_t backends = 0;
      for (const auto& pool : parsed.config.pools) backends += pool.backends.size();
      result["vips"] = parsed.config.vips.size();
      result["services"] = parsed.config.services.size();
      result["pools"] = parsed.config.pools.size();
      result["backends"] = backends;
    }
  }
  const bool ok = faults.empty();
  result["ok"] = ok;
  result["faults"] = std::move(faults);
  result["notes"] = std::move(notes);
  return {ok ? ExitCode::done : ExitCode::refused, std::move(result)};
}

std::string render(const Json& result) {
  std::string text;
  const auto& faults = list_at(result, "faults");
  for (const auto& one : faults) text += text_at(one, "text") + "\n";
  if (!flag_at(result, "ok")) {
    return text + fmt::format("{}: {} {}, this configuration would be refused\n",
                              text_at(result, "file"), faults.size(),
                              faults.size() == 1 ? "fault" : "faults");
  }
  for (const auto& note : list_at(result, "notes")) {
    if (note.is_string()) text += "note: " + note.get<std::string>() + "\n";
  }
  return text + fmt::format("{}: good: VIPs {}, services {}, pools {}, backends {}\n",
                            text_at(result, "file"), number_at(result, "vips"),
                            number_at(result, "services"), number_at(result, "pools"),
                            number_at(result, "backends"));
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .summary = "Check a configuration file: every fault with its place; needs no daemon",
          .example = "holdfast check /etc/holdfast/holdfast.toml",
          .arguments = {{.kind = Argument::Kind::positional,
                         .name = "file",
                         .value = "FILE",
                         .help = "The TOML file"}},
          .run_here = run,
          .render = render};
}

}  // namespace holdfast
