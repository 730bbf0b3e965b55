// SPDX-License-Identifier: Apache-2.0
// Aligned text for operators: tables with titled columns, and lists of names and values. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

struct Column {
  std::string title;
  bool number = false;  // aligned to the right
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Requires: as many cells as columns.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Title line and rows, two spaces between columns, no space at a line's end.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "name   value" lines, values aligned.
struct NamedValue {
  std::string name;
  std::string value;
};
[[nodiscard]] std::string named_values(const std::vector<NamedValue>& values);

/// Seconds as people say them: "0.4 s", "12.3 s", "2 min 5 s", "3 h 12 min", "4 d 7 h".
[[nodiscard]] std::string duration_text(double seconds);

/// A part of a whole: "33.3 %"; "-" of nothing.
[[nodiscard]] std::string percent_text(double part, double whole);

}  // namespace holdfast
