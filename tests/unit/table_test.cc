// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/table.h"

#include <limits>

#include "tests/catch.h"

namespace holdfast {
namespace {

TEST_CASE("a table aligns words to the left and numbers to the right, without trailing spaces") {
  Table table({{"NAME"}, {"FLOWS", true}, {"REASON"}});
  table.add({"b1", "7", "check passed"});
  table.add({"backend-2", "123456", ""});
  CHECK(table.text() ==
        "NAME        FLOWS  REASON\n"
        "b1              7  check passed\n"
        "backend-2  123456\n");
}

TEST_CASE("letters of several bytes take one column") {
  Table table({{"NAME"}, {"N", true}});
  table.add({"größe", "1"});
  table.add({"abcde", "2"});
  CHECK(table.text() == "NAME   N\ngröße  1\nabcde  2\n");
}

TEST_CASE("named values are aligned") {
  CHECK(named_values({{"a", "1"}, {"long name", "2"}}) == "a          1\nlong name  2\n");
}

TEST_CASE("durations are said as people say them") {
  CHECK(duration_text(0) == "0.0 s");
  CHECK(duration_text(12.39) == "12.3 s");
  CHECK(duration_text(59.99) == "59.9 s");  // never "60.0 s"
  CHECK(duration_text(60) == "1 min 0 s");
  CHECK(duration_text(3599.9) == "59 min 59 s");
  CHECK(duration_text(3600) == "1 h 0 min");
  CHECK(duration_text(86400 * 3 + 3600 * 7) == "3 d 7 h");
  CHECK(duration_text(-1) == "-");
  CHECK(duration_text(std::numeric_limits<double>::quiet_NaN()) == "-");
}

TEST_CASE("a part of nothing has no percentage") {
  CHECK(percent_text(1, 3) == "33.3 %");
  CHECK(percent_text(0, 0) == "-");
}

}  // namespace
}  // namespace holdfast
