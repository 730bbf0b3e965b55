// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace holdfast {
namespace {

/// Characters, not bytes: names may be any UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not a continuation byte
  }));
}

void pad(std::string& line, std::size_t count) { line.append(count, ' '); }

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    auto width = width_of(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto put = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_at(i);
      const auto missing = widths[i] - width_of(cell);
      if (i > 0) pad(line, 2);
      if (columns_[i].number) pad(line, missing);
      line += cell;
      if (!columns_[i].number) pad(line, missing);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  put([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) put([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string named_values(const std::vector<NamedValue>& values) {
  std::size_t width = 0;
  for (const auto& item : values) width = std::max(width, width_of(item.name));
  std::string text;
  for (const auto& item : values) {
    text += item.name;
    pad(text, width + 2 - width_of(item.name));
    text += item.value + '\n';
  }
  return text;
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds < 60) return fmt::format("{:.1f} s", std::floor(seconds * 10) / 10);
  const auto whole = static_cast<std::uint64_t>(std::min(seconds, 1e15));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string percent_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

}  // namespace holdfast
