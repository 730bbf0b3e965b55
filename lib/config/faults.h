// SPDX-License-Identifier: Apache-2.0
// Where a config file is wrong: places, and the list that every section's parser adds to. Internal
// to lib/config; one object per parse, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/printable.h"
#include "lib/config/config.h"

namespace holdfast::config {

/// Line and column from 1. Line 0: no place, because the value is absent or was faulty already (so
/// that checks between sections leave it alone).
struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  [[nodiscard]] bool known() const { return line != 0; }
};

class Faults {
 public:
  explicit Faults(std::string_view file) : file_(file) {}

  void add(Place place, std::string message);
  [[nodiscard]] bool empty() const { return faults_.empty(); }
  [[nodiscard]] std::size_t count() const { return faults_.size() + left_out_; }
  /// All of them sorted by position, those without a place first; of a hopeless file the first
  /// thousand and how many more.
  [[nodiscard]] std::vector<ConfigFault> take();

 private:
  std::string file_;
  std::vector<ConfigFault> faults_;
  std::size_t left_out_ = 0;
};

/// The candidate that `text` is most likely a misspelling of, or empty.
[[nodiscard]] std::string_view nearest(std::string_view text,
                                       const std::vector<std::string_view>& candidates);

/// `; did you mean "X"?`, or nothing when no candidate is close.
[[nodiscard]] std::string suggestion(std::string_view text,
                                     const std::vector<std::string_view>& candidates);

}  // namespace holdfast::config
