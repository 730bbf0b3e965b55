// SPDX-License-Identifier: Apache-2.0
// How Holdfast measures: contenders take turns in short slices within one process, so that what
// disturbs the machine disturbs them all, and what is reported is the ratio of two contenders in
// the same round. Absolute times drift by half within minutes on shared machines; ratios do not.
// For the programs under bench/ only; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::bench {

/// Median and extremes of some samples; zeros when there are none.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;

  [[nodiscard]] static Spread of(std::vector<double> samples);
};

struct Goal {
  enum class Sense : std::uint8_t { at_most, at_least };

  Sense sense = Sense::at_most;
  double bound = 0;

  [[nodiscard]] bool met_by(double value) const {
    return sense == Sense::at_most ? value <= bound : value >= bound;
  }
};
[[nodiscard]] constexpr Goal at_most(double bound) { return {Goal::Sense::at_most, bound}; }
[[nodiscard]] constexpr Goal at_least(double bound) { return {Goal::Sense::at_least, bound}; }

/// One figure of the report. `name` is a path, such as "pipeline/hit/1M/ratio to bare".
struct Row {
  std::string name;
  Spread value{};
  std::string unit;            // "ns", "ratio", "share", "bytes", "ms", ...
  std::optional<Goal> goal{};  // judged by the median
};

/// Collects rows, prints each group as it is complete, writes JSON at the end.
class Report {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }
  void add(std::string name, double value, std::string unit, std::optional<Goal> goal = {}) {
    add({std::move(name), {value, value, value}, std::move(unit), goal});
  }
  /// Prints what was added since the last call, under `title`.
  void print(const std::string& title);
  /// Names of the rows whose goal is missed.
  [[nodiscard]] std::vector<std::string> missed() const;
  /// JSON: {"rows": [{name, median, min, max, unit, goal, met}]}; goal and met are null without a
  /// goal. Throws std::runtime_error when the file can not be written.
  void write_json(const std::string& file) const;

 private:
  std::vector<Row> rows_;
  std::size_t printed_ = 0;
};

/// Who takes part in a race. A slice runs some milliseconds and returns how many operations it did.
struct Contender {
  std::string name;
  std::function<std::uint64_t()> slice;
};

/// Nanoseconds an operation, one sample a round that counts; the same rounds for all contenders.
struct Timing {
  std::string name;
  std::vector<double> cpu;
  std::vector<double> wall;
};

struct RaceOptions {
  unsigned rounds = 9;  // that count; at least 7 for a published figure
  unsigned warm_up = 1;
};

/// All contenders in turn, forwards and backwards alternately. A round in which one of them had
/// less than 95 % of a CPU does not count and is run again, up to four times as many rounds as were
/// asked for; after that the best of those that did not count fill up.
[[nodiscard]] std::vector<Timing> race(const std::vector<Contender>& contenders,
                                       const RaceOptions& options);

/// CPU time of `one` over that of `other`, round by round.
[[nodiscard]] std::vector<double> ratios(const Timing& one, const Timing& other);

/// Adds "<prefix>/<name>" in nanoseconds of CPU and of wall time for each.
void add_times(Report& report, const std::string& prefix, const std::vector<Timing>& timings);

/// Keeps a result alive: the compiler may not leave out what led to it.
void keep(std::uint64_t value);

}  // namespace holdfast::bench
