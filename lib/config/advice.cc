// SPDX-License-Identifier: Apache-2.0
#include "lib/config/advice.h"

#include <fmt/format.h>

#include <string_view>

#include "lib/base/printable.h"

namespace holdfast {
namespace {

constexpr std::string_view kAsAReader = "run this as root or as another user that may read it";

}  // namespace

Error with_config_advice(Error error) {
  if (error.code == "permission") {
    error.message += fmt::format(": {}", kAsAReader);
  } else if (error.code == "not_found") {
    error.message +=
        ": name the configuration file that you have, or write one (docs/configuration.md has an "
        "example)";
  }
  return error;
}

Error with_seed_advice(Error error, const std::string& config_path) {
  error.message += fmt::format("; [dataplane] hash_seed_file of {} names this file: ",
                               printable_path(config_path));
  if (error.code == "permission") {
    error.message += kAsAReader;
  } else if (error.code == "not_found") {
    error.message +=
        "make it with `openssl rand -hex 8`, or copy it from another load balancer of the site, "
        "which needs the same";
  } else {
    error.message += "let it name one made with `openssl rand -hex 8`";
  }
  return error;
}

}  // namespace holdfast
