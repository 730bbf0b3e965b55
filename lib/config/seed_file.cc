// SPDX-License-Identifier: Apache-2.0
#include "lib/config/seed_file.h"

#include <algorithm>
#include <cstdint>

#include "lib/base/digits.h"
#include "lib/base/printable.h"
#include "lib/base/read_file.h"

namespace holdfast {
namespace {

std::string_view without_space_around(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

}  // namespace

Result<HashSeed> parse_seed(std::string_view text) {
  text = without_space_around(text);
  const auto value = parse_hex<std::uint64_t>(text);
  // The text is a secret: the message never repeats it.
  if (text.size() != 16 || !value)
    return fail("a hash seed is 16 hexadecimal digits and nothing else");
  return HashSeed{*value};
}

Result<HashSeed> read_seed(const std::string& path) {
  const auto text = read_file(path, kSeedFile);
  if (!text) return tl::unexpected(text.error());
  auto seed = parse_seed(*text);
  if (!seed) seed.error().where = printable_path(path);
  return seed;
}

}  // namespace holdfast
