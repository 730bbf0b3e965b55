// SPDX-License-Identifier: Apache-2.0
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

/// Whether brackets outside of strings nest deeper than allowed. Cheaper than letting the parser
/// build such a value first.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  if (too_deep(text)) return fail("JSON nested too deeply", {}, "bad_request");
  Json value = Json::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_discarded()) return fail("not valid JSON", {}, "bad_request");
  return value;
}

std::string to_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_at(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::uint64_t number_at(const Json& object, std::string_view key, std::uint64_t otherwise) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>() : otherwise;
}

double real_at(const Json& object, std::string_view key, double otherwise) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_number() ? value->get<double>() : otherwise;
}

bool flag_at(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

const Json& list_at(const Json& object, std::string_view key) {
  static const Json kEmpty = Json::array();
  const Json* value = find(object, key);
  return value != nullptr && value->is_structured() ? *value : kEmpty;
}

}  // namespace holdfast
