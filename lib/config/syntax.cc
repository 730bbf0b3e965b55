// SPDX-License-Identifier: Apache-2.0
#include "lib/config/syntax.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::config {
namespace {

// The longest text that a request of the CLI protocol may carry.
constexpr std::size_t kMaxBytes = 16 * 1024 * 1024;

// toml++ bounds how deep arrays and inline tables nest, but a key "a.a.a..." makes a table for each
// dot, and the tree is destroyed by recursion: without a bound such a key overflows the stack.
// No key of ours has more than a few parts.
constexpr std::uint32_t kMaxDots = 64;

/// The place of the first run of more than kMaxDots dots that nothing which ends a key interrupts.
/// Neighbouring dots count once, so that rulers in comments pass. Quotes are not looked at: what is
/// inside a string can be counted too, so a string can not hide a key.
Place find_endless_key(std::string_view text) {
  Place place{1, 1};
  std::uint32_t dots = 0;
  char last = '\n';
  for (const char c : text) {
    if (c == '.' && last != '.' && ++dots > kMaxDots) return place;
    if (c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}' || c == '\n') dots = 0;
    last = c;
    if (c == '\n')
      place = {place.line + 1, 1};
    else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
      ++place.column;
  }
  return {};
}

/// toml++ words its errors over two lines ("Error while parsing X: Y; saw ..."); make them one.
std::string one_line(std::string_view text) {
  std::string result{text};
  std::replace_if(
      result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; },
      ' ');
  return printable(result, kMaxSentence);
}

}  // namespace

toml::table parse_syntax(std::string_view text, Faults& faults) {
  if (text.size() > kMaxBytes) {
    faults.add({},
               fmt::format("the file has {} bytes; at most {} are read", text.size(), kMaxBytes));
    return {};
  }
  if (const auto place = find_endless_key(text); place.known()) {
    faults.add(place, fmt::format("a key with more than {} parts", kMaxDots));
    return {};
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    faults.add({begin.line, begin.column}, one_line(error.description()));
    return {};
  }
}

}  // namespace holdfast::config
