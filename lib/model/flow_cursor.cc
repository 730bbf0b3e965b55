// SPDX-License-Identifier: Apache-2.0
#include "lib/model/flow_cursor.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "lib/base/digits.h"

namespace holdfast {
namespace {

// Hexadecimal digits of its parts: worker, place, check.
constexpr std::size_t kWorkerDigits = 4;
constexpr std::size_t kPlaceDigits = 12;
constexpr std::size_t kCheckDigits = 8;

std::string position_text(FlowPosition position) {
  return fmt::format("{:04x}{:012x}", position.worker, position.place);
}

std::string check_of(std::string_view position, std::string_view list) {
  const auto seed = XXH3_64bits(list.data(), list.size());
  const auto hash = XXH3_64bits_withSeed(position.data(), position.size(), seed);
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash));
}

}  // namespace

std::string write_flow_cursor(FlowPosition position, std::string_view list) {
  const auto text = position_text(position);
  return text + check_of(text, list);
}

std::optional<FlowPosition> read_flow_cursor(std::string_view text, std::string_view list) {
  if (text.size() != kWorkerDigits + kPlaceDigits + kCheckDigits) return std::nullopt;
  const auto position = text.substr(0, kWorkerDigits + kPlaceDigits);
  if (text.substr(position.size()) != check_of(position, list)) return std::nullopt;
  const auto worker = parse_hex<unsigned>(position.substr(0, kWorkerDigits));
  const auto place = parse_hex<std::uint64_t>(position.substr(kWorkerDigits));
  if (!worker || !place) return std::nullopt;
  return FlowPosition{.worker = *worker, .place = *place};
}

}  // namespace holdfast
