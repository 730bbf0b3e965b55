// SPDX-License-Identifier: Apache-2.0
#include "lib/base/printable.h"

#include "tests/catch.h"

using namespace holdfast;
using namespace std::string_literals;

TEST_CASE("what steers a terminal is escaped, other text is left as it is") {
  CHECK(printable("web/b1") == "web/b1");
  CHECK(printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x80") ==
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x80");
  CHECK(printable("a\0b\r\n\t\x1b[2J\x7f"s) == "a\\x00b\\x0d\\x0a\\x09\\x1b[2J\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");             // CSI in one character
  CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // right-to-left override
  CHECK(printable("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");  // line separator
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");             // a space that does not break: no control
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one") {
  for (const auto* bytes : {"\x80", "\xff", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                            "\xf5\x80\x80\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const std::string text = bytes;
    CHECK(printable("a" + text + "b").size() == 2 + 4 * text.size());
  }
}

TEST_CASE("a long text is cut where a character starts") {
  CHECK(printable(std::string(64, 'x')) == std::string(64, 'x'));
  CHECK(printable(std::string(70'000, 'x')) == std::string(64, 'x') + "...");
  CHECK(in_quotes(std::string(65, 'x')) == '"' + std::string(64, 'x') + "...\"");
  CHECK(printable(std::string(63, 'x') + "\xe2\x82\xac" + "y") ==
        std::string(63, 'x') + "\xe2\x82\xac...");
}

TEST_CASE("escaping what is escaped changes nothing") {
  const auto once = printable("a\x1b\xff\xc2\x9b\n");
  CHECK(printable(once) == once);
}

TEST_CASE("a path is whole, unless the kernel would refuse it too") {
  CHECK(printable_path("/" + std::string(4094, 'x')).size() == 4095);
  CHECK(printable_path("/" + std::string(70'000, 'x')).size() == 67);
  CHECK(printable_path("/tmp/a\nb") == "/tmp/a\\x0ab");
}

TEST_CASE("the first control character is found, whatever is around it") {
  CHECK(find_control("/run/holdfast.sock").empty());
  CHECK(find_control("\xff\xe2\x80\xae").empty());
  CHECK(find_control("a\0b"s) == "\0"s);
  CHECK(find_control("a\tb\n") == "\t");
  CHECK(find_control("\x7f") == "\x7f");
  CHECK(find_control("\xff\xc2\x85") == "\xc2\x85");
}
