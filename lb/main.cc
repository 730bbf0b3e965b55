// SPDX-License-Identifier: Apache-2.0
// holdfastd: the load balancer's daemon. This file builds every part by hand, in order; it is the
// map of the program. A fault on the way ends it with one sentence.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#include "ctrl/announce/gobgp_speaker.h"
#include "ctrl/control_plane.h"
#include "lb/data_plane.h"
#include "lib/base/printable.h"
#include "lib/base/standard_output.h"
#include "lib/base/unique_fd.h"
#include "lib/config/advice.h"
#include "lib/config/config.h"
#include "lib/config/read_config.h"
#include "lib/config/seed_file.h"

namespace holdfast {
namespace {

// The exit codes of docs/cli.md.
constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUsage = 2;
constexpr int kNoPermission = 4;

struct Options {
  std::string config;
  std::string log_level = "info";
  bool check = false;
};

void set_up_log(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("holdfastd"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  spdlog::set_level(spdlog::level::from_str(level));
}

/// SIGTERM and SIGINT as a descriptor. Call it before the first thread starts: all of them inherit
/// that these signals are blocked.
[[nodiscard]] UniqueFd take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.valid())
    throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
  return descriptor;
}

[[nodiscard]] Result<void> run(const Options& options) {
  const auto config = read_config(options.config);
  if (!config) return tl::unexpected(config.error());
  const auto seed = read_seed(config->dataplane.hash_seed_file);
  if (!seed) return tl::unexpected(with_seed_advice(seed.error(), options.config));
  if (options.check) return write_out(fmt::format("{}: good\n", printable_path(options.config)));

  const UniqueFd signals = take_signals();
  auto plane = DataPlane::open(*config);
  if (!plane) return tl::unexpected(plane.error());
  // Publishes the first snapshot, so that no worker ever sees none.
  auto control = ControlPlane::start(*config, *seed, **plane, **plane, **plane, (*plane)->ports(),
                                     make_gobgp_speaker);
  if (!control) return tl::unexpected(control.error());
  (*control)->loop().watch(signals.get(), EPOLLIN, "signals", [&](std::uint32_t) {
    signalfd_siginfo signal{};
    while (::read(signals.get(), &signal, sizeof signal) == sizeof signal)
      (*control)->stop_in_order();
  });
  if (const auto started = (*plane)->start(); !started) return started;
  spdlog::info("running: {} worker(s), {} port(s), {} VIP(s)", config->dataplane.workers,
               config->dataplane.ports.size(), config->vips.size());
  (*control)->run();
  (*plane)->stop();
  return {};
}

[[nodiscard]] int report(const Error& error) {
  write_error(fmt::format("holdfastd: {}\n", error.text()));
  return error.code == "permission" ? kNoPermission : kRefused;
}

}  // namespace

int daemon_main(int argc, char** argv) {
  keep_standard_descriptors();
  Options options;
  CLI::App app(
      "Holdfast's daemon: takes packets for the VIPs of FILE and tunnels them to backends.",
      "holdfastd");
  app.add_option("--config", options.config, "configuration file (TOML)")
      ->required()
      ->type_name("FILE");
  app.add_option("--log-level", options.log_level, "how much goes to standard error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_flag("--check", options.check, "only check the file and its hash seed, start nothing");
  app.set_version_flag("--version", HOLDFAST_VERSION, "show the version");
  app.footer("Example: holdfastd --config /etc/holdfast/holdfast.toml");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("holdfastd: {} (--help shows what there is)\n",
                       printable(error.what(), kMaxSentence));
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream errors;
    // Help and version are "errors" with code 0 in CLI11.
    const bool asked_for = app.exit(error, out, errors) == 0;
    write_error(errors.str());
    if (!asked_for) return kUsage;
    const auto told = write_out(out.str());
    return told ? kDone : report(told.error());
  }
  try {
    set_up_log(options.log_level);
    const auto result = run(options);
    return result ? kDone : report(result.error());
  } catch (const std::exception& error) {
    return report({error.what()});
  }
}

}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::daemon_main(argc, argv); }
