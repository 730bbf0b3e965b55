// SPDX-License-Identifier: Apache-2.0
// Reads the keys of one TOML table by type and range, and reports what is wrong: a missing key, a
// wrong type, a value out of range, and at the end every key that nobody asked for. Internal to
// lib/config; lives while its table is read.
#pragma once

#include <toml++/toml.h>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/config/faults.h"

namespace holdfast::config {

[[nodiscard]] Place place_of(const toml::node& node);

/// "a string", "a whole number", ...: for messages.
[[nodiscard]] std::string_view type_of(const toml::node& node);

class TableReader {
 public:
  /// `what` names the table to the operator: `[dataplane]`, `pool "web"`.
  TableReader(const toml::table& table, std::string what, Faults& faults);

  /// Each reads one key. Empty: absent or faulty, and then `fault` has been called. No text may
  /// have control characters: texts become paths, devices and lines of logs, and a NUL would end
  /// them early.
  std::optional<std::string> text(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max);
  /// A whole number, or a word in its place. Empty also for the word.
  std::optional<std::int64_t> integer_or(std::string_view word, std::string_view key,
                                         std::int64_t min, std::int64_t max);
  std::optional<bool> boolean(std::string_view key);
  /// A part of one: above 0, at most 1.
  std::optional<double> share(std::string_view key);
  std::optional<std::chrono::milliseconds> duration(std::string_view key,
                                                    std::chrono::milliseconds min,
                                                    std::chrono::milliseconds max);
  /// A name for lists and command lines. Returned even when it is faulty, so that what refers to it
  /// is not reported too.
  std::optional<std::string> name(std::string_view key);
  std::optional<IpAddress> address(std::string_view key);
  std::optional<IpAddress> address(std::string_view key, Family family);
  const toml::table* table(std::string_view key);
  /// A list of tables; empty when absent. `written_as` says how the operator writes it.
  std::vector<const toml::table*> tables(std::string_view key, std::string_view written_as);
  std::vector<std::pair<std::string, Place>> texts(std::string_view key);

  /// One word out of a few; the pairs are (word, value).
  template <class Value>
  std::optional<Value> choice(std::string_view key,
                              const std::vector<std::pair<std::string_view, Value>>& words);

  /// Reads into `own` the table's own name, which must be there, and calls the table `kind` and
  /// that name from then on: `pool "web"`. The name's place; unknown: there is none to use.
  Place own_name(std::string_view kind, std::string& own);

  /// Reports `key` if it is absent; `hint` says what belongs there.
  void require(std::string_view key, std::string_view hint = {});
  /// Reports the keys that were never read.
  void finish();

  /// A fault at the value of `key`, or at the table when the key is absent.
  void fault(std::string_view key, std::string message);
  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  [[nodiscard]] Place place() const { return place_of(table_); }
  [[nodiscard]] bool is_empty_list(std::string_view key) const;
  /// Of the key's value; unknown when it is absent.
  [[nodiscard]] Place place(std::string_view key) const;
  [[nodiscard]] const std::string& what() const { return what_; }
  void rename(std::string what) { what_ = std::move(what); }

 private:
  const toml::node* find(std::string_view key);
  /// Of a text without control characters; else reports them at `node`.
  bool has_no_control(const toml::node& node, std::string_view key, std::string_view text);
  void wrong_type(std::string_view key, std::string_view wanted);
  void not_among(std::string_view key, const std::string& value,
                 const std::vector<std::string_view>& words);

  const toml::table& table_;
  std::string what_;
  Faults& faults_;
  std::vector<std::string_view> known_;  // every key that was asked for
};

template <class Value>
std::optional<Value> TableReader::choice(
    std::string_view key, const std::vector<std::pair<std::string_view, Value>>& words) {
  const auto value = text(key);
  if (!value) return std::nullopt;
  std::vector<std::string_view> all;
  for (const auto& [word, meaning] : words) {
    if (*value == word) return meaning;
    all.push_back(word);
  }
  not_among(key, *value, all);
  return std::nullopt;
}

/// Parses `value` as an address that a host can have, or adds why not at `place`.
std::optional<IpAddress> read_address(const std::string& value, Place place, Faults& faults);

}  // namespace holdfast::config
