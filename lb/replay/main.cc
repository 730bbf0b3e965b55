// SPDX-License-Identifier: Apache-2.0
// holdfast-replay: the data path over a capture. Without daemon, EAL, ports and root: this file
// puts the capture's reader and writer around Replay, and OfflineControl above it.
#include <fmt/format.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ctrl/reconcile/offline_control.h"
#include "lb/replay/capture_clock.h"
#include "lb/replay/capture_reader.h"
#include "lb/replay/capture_writer.h"
#include "lb/replay/options.h"
#include "lb/replay/replay.h"
#include "lb/replay/report.h"
#include "lib/base/printable.h"
#include "lib/base/standard_output.h"
#include "lib/config/advice.h"
#include "lib/config/read_config.h"
#include "lib/config/seed_file.h"

namespace holdfast {
namespace {

// The exit codes of docs/cli.md.
constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUsage = 2;

/// The other side of a link that had no Ethernet.
constexpr MacAddress kClientSideMac{{0x02, 0, 0, 0, 0x02, 0x01}};

/// Fragments wait for a second; nothing waits for so long.
constexpr std::chrono::seconds kLongestWait{10};

struct Site {
  Config config;
  HashSeed seed;
};

[[nodiscard]] Result<Site> read_site(const std::string& path) {
  auto config = read_config(path);
  if (!config) return tl::unexpected(config.error());
  const auto seed = read_seed(config->dataplane.hash_seed_file);
  if (!seed) return tl::unexpected(with_seed_advice(seed.error(), path));
  return Site{std::move(*config), *seed};
}

/// The files of --apply-at. All are read before the first packet: a fault in one of them is no
/// surprise after an hour.
[[nodiscard]] Result<std::vector<Config>> read_changes(const std::vector<ReplayChange>& changes,
                                                       HashSeed seed) {
  std::vector<Config> configs;
  for (const ReplayChange& change : changes) {
    auto site = read_site(change.config);
    if (!site) return tl::unexpected(site.error());
    if (site->seed.value != seed.value)
      return fail(
          "has another hash seed, with which all flows would be placed anew: that takes a restart, "
          "which --apply-at is not",
          printable_path(change.config));
    configs.push_back(std::move(site->config));
  }
  return configs;
}

/// One run, as far as it has come.
class Run {
 public:
  /// `changes` go with options.changes.
  Run(const ReplayOptions& options, const DataplaneConfig& config, std::vector<Config> changes,
      OfflineControl control, CaptureWriter writer)
      : options_(options),
        changes_(std::move(changes)),
        control_(std::move(control)),
        writer_(std::move(writer)),
        replay_(config, options.workers.value_or(config.workers), OfflineControl::kEarliest,
                [this](std::span<const std::uint8_t> frame) {
                  const std::uint64_t number = writer_.written();
                  writer_.write(clock_.capture_time(), frame);
                  return number;
                }) {}

  [[nodiscard]] Result<void> play(CaptureReader& reader) {
    for (;;) {
      auto frame = reader.next();
      if (!frame) {
        // What could be read is shown all the same: a capture whose recording was cut off ends so.
        end();
        return tl::unexpected(frame.error());
      }
      if (!*frame) break;
      const Instant now = clock_.advance_to((*frame)->time);
      if (auto applied = apply_due_changes(now); !applied) return applied;
      refresh_snapshot(now);
      replay_.handle((*frame)->bytes, *snapshot_, now);
    }
    end();
    return {};
  }

  [[nodiscard]] Result<void> finish_output() { return writer_.finish(); }

  [[nodiscard]] std::string report() const {
    return options_.json
               ? replay_json(replay_.ledger(), replay_.counters(), control_)
               : replay_text(replay_.ledger(), replay_.counters(), control_, options_.output);
  }

  /// Of --apply-at; empty: all took effect.
  [[nodiscard]] std::string missed_changes() const {
    if (applied_ == changes_.size()) return {};
    return fmt::format("note: the capture has {} packets, so --apply-at {} did nothing",
                       replay_.ledger().size(), options_.changes[applied_].index);
  }

 private:
  [[nodiscard]] Result<void> apply_due_changes(Instant now) {
    for (; applied_ < changes_.size(); ++applied_) {
      const ReplayChange& change = options_.changes[applied_];
      if (change.index > replay_.ledger().size()) break;
      if (auto applied = control_.apply(std::move(changes_[applied_]), now); !applied)
        return fail(applied.error().message, printable_path(change.config));
    }
    return {};
  }

  void refresh_snapshot(Instant now) {
    if (control_.is_due(now)) snapshot_ = control_.make_snapshot(now);
  }

  /// Lets time pass until nothing waits any more.
  void end() {
    for (auto waited = kLongestWait; replay_.held() != 0 && waited.count() > 0;
         waited -= std::chrono::seconds(1)) {
      const Instant now = clock_.pass(std::chrono::seconds(1));
      refresh_snapshot(now);
      replay_.pass(*snapshot_, now);
    }
  }

  const ReplayOptions& options_;
  std::vector<Config> changes_;
  std::size_t applied_ = 0;
  OfflineControl control_;
  CaptureWriter writer_;
  CaptureClock clock_{OfflineControl::kEarliest};
  Replay replay_;
  std::unique_ptr<const Snapshot> snapshot_{};
};

[[nodiscard]] Result<void> run(const ReplayOptions& options) {
  auto site = read_site(options.config);
  if (!site) return tl::unexpected(site.error());
  auto control = OfflineControl::start(site->config, site->seed,
                                       {.drained = options.drained, .down = options.down},
                                       OfflineControl::kEarliest);
  if (!control) return tl::unexpected(control.error());
  auto reader = CaptureReader::open(options.input,
                                    {.source = kClientSideMac, .destination = kAssumedPortMac});
  if (!reader) return tl::unexpected(reader.error());
  auto changes = read_changes(options.changes, site->seed);
  if (!changes) return tl::unexpected(changes.error());
  // Last, so that a refusal costs nobody his file.
  auto writer = CaptureWriter::create(options.output, options.input);
  if (!writer) return tl::unexpected(writer.error());

  Run run(options, site->config.dataplane, std::move(*changes), std::move(*control),
          std::move(*writer));
  const auto played = run.play(*reader);
  if (auto finished = run.finish_output(); !finished) return finished;
  if (auto told = write_out(run.report()); !told) return told;
  if (const std::string note = run.missed_changes(); !note.empty())
    write_error(fmt::format("holdfast replay: {}\n", note));
  return played;
}

[[nodiscard]] int report(const Error& error) {
  write_error(fmt::format("holdfast replay: {}\n", error.text()));
  return kRefused;
}

}  // namespace

int replay_main(int argc, char** argv) {
  keep_standard_descriptors();
  try {
    const auto parsed = parse_replay_options(argc, argv);
    if (const auto* notice = std::get_if<ReplayNotice>(&parsed)) {
      if (notice->is_error) {
        write_error(notice->text);
        return kUsage;
      }
      const auto told = write_out(notice->text);
      return told ? kDone : report(told.error());
    }
    const auto result = run(std::get<ReplayOptions>(parsed));
    return result ? kDone : report(result.error());
  } catch (const std::exception& error) {
    return report({error.what()});
  }
}

}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::replay_main(argc, argv); }
