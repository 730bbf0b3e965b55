// SPDX-License-Identifier: Apache-2.0
#include "lib/config/seed_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"

using namespace holdfast;

TEST_CASE("a seed is 16 hexadecimal digits") {
  const auto seed = parse_seed("  0123456789abcDEF\n");
  REQUIRE(seed);
  CHECK(seed->value == 0x0123456789abcdef);
  for (const auto* text :
       {"", "0123456789abcde", "0123456789abcdef0", "0x23456789abcdef", "0123456789abcdeg",
        "01234567 89abcdef", "-123456789abcdef", "+123456789abcdef"}) {
    INFO(text);
    const auto bad = parse_seed(text);
    REQUIRE(!bad);
    CHECK(bad.error().message == "a hash seed is 16 hexadecimal digits and nothing else");
  }
}

TEST_CASE("a seed that can not be read or is none is named with its file") {
  const auto path =
      std::filesystem::temp_directory_path() / ("holdfast-seed-" + std::to_string(::getpid()));
  const auto missing = read_seed(path.string());
  REQUIRE(!missing);
  CHECK(missing.error().where == path.string());
  CHECK(missing.error().code == "not_found");

  std::ofstream(path) << "0123456789abcdeg\n";
  const auto bad = read_seed(path.string());
  REQUIRE(!bad);
  CHECK(bad.error().text() ==
        path.string() + ": a hash seed is 16 hexadecimal digits and nothing else");
  CHECK(bad.error().code == "refused");

  std::ofstream(path) << "0123456789abcdef\n";
  const auto good = read_seed(path.string());
  std::filesystem::remove(path);
  REQUIRE(good);
  CHECK(good->value == 0x0123456789abcdef);
}
