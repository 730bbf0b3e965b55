// SPDX-License-Identifier: Apache-2.0
#include "lib/config/advice.h"

#include "tests/catch.h"

namespace holdfast {
namespace {

bool says(const Error& error, std::string_view what) {
  return error.text().find(what) != std::string::npos;
}

TEST_CASE("a seed that can not be used names its key and says what to do") {
  for (const std::string code : {"permission", "not_found", "refused"}) {
    CAPTURE(code);
    const auto error =
        with_seed_advice({"can not be read: somehow", "/s/seed", code}, "/etc/holdfast.toml");
    CHECK(error.code == code);
    CHECK(says(error,
               "/s/seed: can not be read: somehow; [dataplane] hash_seed_file of "
               "/etc/holdfast.toml names this file: "));
    CHECK(says(error, "another user that may read it") == (code == "permission"));
    CHECK(says(error, "openssl rand -hex 8") == (code != "permission"));
  }
}

TEST_CASE("a configuration that can not be read says what to do") {
  const auto text = [](const std::string& code) {
    return with_config_advice({"can not be read: somehow", "/h.toml", code}).text();
  };
  CHECK(text("permission").find("another user that may read it") != std::string::npos);
  CHECK(text("not_found").find("docs/configuration.md") != std::string::npos);
  CHECK(text("refused") == "/h.toml: can not be read: somehow");
}

}  // namespace
}  // namespace holdfast
