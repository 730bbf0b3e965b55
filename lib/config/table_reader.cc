// SPDX-License-Identifier: Apache-2.0
#include "lib/config/table_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/config/values.h"

namespace holdfast::config {

Place place_of(const toml::node& node) {
  const auto& begin = node.source().begin;
  return {begin.line, begin.column};
}

std::string_view type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::none:
      return "nothing";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
  }
  return "?";
}

TableReader::TableReader(const toml::table& table, std::string what, Faults& faults)
    : table_(table), what_(std::move(what)), faults_(faults) {}

const toml::node* TableReader::find(std::string_view key) {
  known_.push_back(key);
  return table_.get(key);
}

Place TableReader::place(std::string_view key) const {
  const auto* node = table_.get(key);
  return node == nullptr ? Place{} : place_of(*node);
}

bool TableReader::is_empty_list(std::string_view key) const {
  const auto* array = table_[key].as_array();
  return array != nullptr && array->empty();
}

void TableReader::fault(std::string_view key, std::string message) {
  const auto* node = table_.get(key);
  faults_.add(node == nullptr ? place() : place_of(*node), std::move(message));
}

void TableReader::wrong_type(std::string_view key, std::string_view wanted) {
  fault(key, fmt::format("\"{}\" must be {}, not {}", key, wanted, type_of(*table_.get(key))));
}

void TableReader::not_among(std::string_view key, const std::string& value,
                            const std::vector<std::string_view>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += in_quotes(words[i]);
  }
  fault(key, fmt::format("\"{}\" must be {}, not {}", key, list, in_quotes(value)));
}

std::optional<std::string> TableReader::text(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_string();
  if (value == nullptr)
    wrong_type(key, "a string");
  else if (has_no_control(*node, key, value->get()))
    return value->get();
  return std::nullopt;
}

bool TableReader::has_no_control(const toml::node& node, std::string_view key,
                                 std::string_view text) {
  const auto control = find_control(text);
  if (control.empty()) return true;
  faults_.add(place_of(node), fmt::format("\"{}\" has the control character {} in it: {}", key,
                                          printable(control), in_quotes(text)));
  return false;
}

std::optional<std::int64_t> TableReader::integer(std::string_view key, std::int64_t min,
                                                 std::int64_t max) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_integer();
  if (value == nullptr) {
    wrong_type(key, "a whole number");
  } else if (value->get() < min || value->get() > max) {
    fault(key, fmt::format("\"{}\" must be {} to {}, not {}", key, min, max, value->get()));
  } else {
    return value->get();
  }
  return std::nullopt;
}

std::optional<std::int64_t> TableReader::integer_or(std::string_view word, std::string_view key,
                                                    std::int64_t min, std::int64_t max) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* text = node->as_string();
  if (text != nullptr && text->get() == word) return std::nullopt;
  const auto* value = node->as_integer();
  if (value != nullptr && value->get() >= min && value->get() <= max) return value->get();
  fault(key, fmt::format("\"{}\" must be {} or {} to {}, not {}", key, in_quotes(word), min, max,
                         value != nullptr  ? fmt::format("{}", value->get())
                         : text != nullptr ? in_quotes(text->get())
                                           : std::string(type_of(*node))));
  return std::nullopt;
}

std::optional<bool> TableReader::boolean(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_boolean()) return value->get();
  wrong_type(key, "true or false");
  return std::nullopt;
}

std::optional<double> TableReader::share(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_number()) {
    wrong_type(key, "a number above 0 and at most 1");
    return std::nullopt;
  }
  const double value = node->value<double>().value_or(0);
  if (value > 0 && value <= 1) return value;  // false for nan, too
  fault(key, fmt::format("\"{}\" must be above 0 and at most 1, not {}", key, value));
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> TableReader::duration(std::string_view key,
                                                               std::chrono::milliseconds min,
                                                               std::chrono::milliseconds max) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_string();
  if (value == nullptr) {
    wrong_type(key, "a duration in quotes such as \"10s\"");
    return std::nullopt;
  }
  const auto duration = parse_duration(value->get());
  if (!duration) {
    fault(key, fmt::format("\"{}\" must be a duration such as \"250ms\", \"10s\", \"15m\" or "
                           "\"2h\", not {}",
                           key, in_quotes(value->get())));
    return std::nullopt;
  }
  if (*duration >= min && *duration <= max) return duration;
  fault(key, fmt::format("\"{}\" must be {} to {}, not {}", key, duration_text(min),
                         duration_text(max), in_quotes(value->get())));
  return std::nullopt;
}

std::optional<std::string> TableReader::name(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_string();
  if (value == nullptr) {
    wrong_type(key, "a string");
    return std::nullopt;
  }
  if (!is_name(value->get()))
    fault(key, fmt::format("the name {} must be 1 to 64 letters, digits, '.', '_', '-' or ':'",
                           in_quotes(value->get())));
  return value->get();
}

Place TableReader::own_name(std::string_view kind, std::string& own) {
  require("name");
  auto read = name("name");
  if (!read) return {};
  rename(fmt::format("{} {}", kind, in_quotes(*read)));
  own = *std::move(read);
  return place("name");
}

std::optional<IpAddress> read_address(const std::string& value, Place place, Faults& faults) {
  const auto address = IpAddress::parse(value);
  if (!address) {
    faults.add(place, fmt::format("{} is not an IPv4 or IPv6 address", in_quotes(value)));
    return std::nullopt;
  }
  const auto why = why_not_unicast(*address);
  if (why.empty()) return address;
  faults.add(place, fmt::format("{} is {}", in_quotes(value), why));
  return std::nullopt;
}

std::optional<IpAddress> TableReader::address(std::string_view key) {
  const auto value = text(key);
  return value ? read_address(*value, place(key), faults_) : std::nullopt;
}

std::optional<IpAddress> TableReader::address(std::string_view key, Family family) {
  const auto value = address(key);
  if (!value || value->family() == family) return value;
  fault(key, fmt::format("\"{}\" must be an IPv{} address, not {}", key,
                         family == Family::ipv4 ? 4 : 6, in_quotes(value->text())));
  return std::nullopt;
}

const toml::table* TableReader::table(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) wrong_type(key, "a table");
  return node->as_table();
}

std::vector<const toml::table*> TableReader::tables(std::string_view key,
                                                    std::string_view written_as) {
  std::vector<const toml::table*> result;
  const auto* node = find(key);
  if (node == nullptr) return result;
  const auto* array = node->as_array();
  if (array == nullptr) {
    wrong_type(key, fmt::format("a list of tables: {}", written_as));
    // One table where several may stand is read all the same, so that nothing else seems to be
    // missing.
    if (const auto* table = node->as_table()) result.push_back(table);
    return result;
  }
  for (const auto& element : *array) {
    if (const auto* table = element.as_table())
      result.push_back(table);
    else
      faults_.add(place_of(element),
                  fmt::format("\"{}\" must be a list of tables: {}, not {} in it", key, written_as,
                              type_of(element)));
  }
  return result;
}

std::vector<std::pair<std::string, Place>> TableReader::texts(std::string_view key) {
  std::vector<std::pair<std::string, Place>> result;
  const auto* node = find(key);
  if (node == nullptr) return result;
  const auto* array = node->as_array();
  if (array == nullptr) {
    wrong_type(key, "a list of strings");
    return result;
  }
  for (const auto& element : *array) {
    const auto* value = element.as_string();
    if (value == nullptr)
      faults_.add(place_of(element), fmt::format("\"{}\" must be a list of strings, not {} in it",
                                                 key, type_of(element)));
    else if (has_no_control(element, key, value->get()))
      result.emplace_back(value->get(), place_of(element));
  }
  return result;
}

void TableReader::require(std::string_view key, std::string_view hint) {
  if (has(key)) return;
  faults_.add(place(),
              fmt::format("{} needs \"{}\"{}{}", what_, key, hint.empty() ? "" : ": ", hint));
}

void TableReader::finish() {
  for (const auto& [key, value] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    const auto& begin = key.source().begin;
    faults_.add({begin.line, begin.column},
                fmt::format("unknown key {} in {}{}", in_quotes(key.str()), what_,
                            suggestion(key.str(), known_)));
  }
}

}  // namespace holdfast::config
