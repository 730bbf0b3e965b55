// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.h"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace holdfast::bench {
namespace {

constexpr double kWholeCpu = 0.95;  // less than this of a CPU: the slice was disturbed
constexpr unsigned kMostTries = 4;

double nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Sample {
  double cpu = 0;   // nanoseconds an operation
  double wall = 0;  // the same
};

struct Round {
  std::vector<Sample> samples;  // by contender
  double worst_share = 1;       // of a CPU, that any of them had
};

Sample run_slice(const Contender& contender) {
  const double wall = nanoseconds(CLOCK_MONOTONIC);
  const double cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  const auto operations = static_cast<double>(contender.slice());
  const double cpu_spent = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
  const double wall_spent = nanoseconds(CLOCK_MONOTONIC) - wall;
  return {.cpu = cpu_spent / operations, .wall = wall_spent / operations};
}

Round run_round(const std::vector<Contender>& contenders, bool backwards) {
  Round round;
  round.samples.resize(contenders.size());
  for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
    const std::size_t i = backwards ? contenders.size() - 1 - turn : turn;
    const Sample sample = run_slice(contenders[i]);
    round.samples[i] = sample;
    round.worst_share = std::min(round.worst_share, sample.cpu / sample.wall);
  }
  return round;
}

std::string goal_text(const std::optional<Goal>& goal) {
  if (!goal) return "";
  return fmt::format("{} {:g}", goal->sense == Goal::Sense::at_most ? "<=" : ">=", goal->bound);
}

/// Four significant digits, without an exponent where a person would not use one.
std::string number(double value) {
  if (value != 0 && (value < 0.001 || value >= 1e7)) return fmt::format("{:.2e}", value);
  if (value == static_cast<double>(static_cast<std::int64_t>(value)))
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return value < 10 ? fmt::format("{:.3f}", value) : fmt::format("{:.1f}", value);
}

}  // namespace

Spread Spread::of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {.median = median, .min = samples.front(), .max = samples.back()};
}

void Report::print(const std::string& title) {
  std::size_t width = 0;
  for (std::size_t i = printed_; i < rows_.size(); ++i)
    width = std::max(width, rows_[i].name.size());
  fmt::print("\n{}\n{:<{}}  {:>9} {:>9} {:>9}  {:<6} {}\n", title, "", width, "median", "min",
             "max", "unit", "goal");
  for (; printed_ < rows_.size(); ++printed_) {
    const Row& row = rows_[printed_];
    const char* verdict = !row.goal ? "" : row.goal->met_by(row.value.median) ? "met" : "MISSED";
    fmt::print("{:<{}}  {:>9} {:>9} {:>9}  {:<6} {:<8} {}\n", row.name, width,
               number(row.value.median), number(row.value.min), number(row.value.max), row.unit,
               goal_text(row.goal), verdict);
  }
  std::fflush(stdout);
}

std::vector<std::string> Report::missed() const {
  std::vector<std::string> names;
  for (const Row& row : rows_)
    if (row.goal && !row.goal->met_by(row.value.median)) names.push_back(row.name);
  return names;
}

void Report::write_json(const std::string& file) const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : rows_) {
    nlohmann::ordered_json entry{{"name", row.name},     {"median", row.value.median},
                                 {"min", row.value.min}, {"max", row.value.max},
                                 {"unit", row.unit},     {"goal", nullptr},
                                 {"met", nullptr}};
    if (row.goal) {
      entry["goal"] = goal_text(row.goal);
      entry["met"] = row.goal->met_by(row.value.median);
    }
    rows.push_back(std::move(entry));
  }
  std::ofstream out(file);
  out << nlohmann::ordered_json{{"rows", std::move(rows)}}.dump(1) << '\n';
  out.flush();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}", file));
}

std::vector<Timing> race(const std::vector<Contender>& contenders, const RaceOptions& options) {
  for (unsigned i = 0; i < options.warm_up; ++i) static_cast<void>(run_round(contenders, false));

  std::vector<Round> good;
  std::vector<Round> disturbed;
  for (unsigned i = 0; i < options.rounds * kMostTries && good.size() < options.rounds; ++i) {
    Round round = run_round(contenders, i % 2 == 1);
    (round.worst_share >= kWholeCpu ? good : disturbed).push_back(std::move(round));
  }
  std::sort(disturbed.begin(), disturbed.end(),
            [](const Round& a, const Round& b) { return a.worst_share > b.worst_share; });
  for (std::size_t i = 0; good.size() < options.rounds && i < disturbed.size(); ++i)
    good.push_back(std::move(disturbed[i]));

  std::vector<Timing> timings(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    timings[i].name = contenders[i].name;
    for (const Round& round : good) {
      timings[i].cpu.push_back(round.samples[i].cpu);
      timings[i].wall.push_back(round.samples[i].wall);
    }
  }
  return timings;
}

std::vector<double> ratios(const Timing& one, const Timing& other) {
  std::vector<double> result;
  for (std::size_t round = 0; round < one.cpu.size(); ++round)
    result.push_back(one.cpu[round] / other.cpu[round]);
  return result;
}

void add_times(Report& report, const std::string& prefix, const std::vector<Timing>& timings) {
  for (const Timing& timing : timings) {
    report.add({prefix + "/" + timing.name, Spread::of(timing.cpu), "ns cpu"});
    report.add({prefix + "/" + timing.name + "/wall", Spread::of(timing.wall), "ns"});
  }
}

void keep(std::uint64_t value) {
  static std::atomic<std::uint64_t> kept{0};
  kept.fetch_xor(value, std::memory_order_relaxed);
}

}  // namespace holdfast::bench
