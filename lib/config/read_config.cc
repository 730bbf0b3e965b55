// SPDX-License-Identifier: Apache-2.0
#include "lib/config/read_config.h"

#include <utility>

#include "lib/base/read_file.h"
#include "lib/config/advice.h"

namespace holdfast {

Result<Config> read_config(const std::string& path) {
  const auto text = read_file(path, kConfigFile);
  if (!text) return tl::unexpected(with_config_advice(text.error()));
  ConfigResult result = parse_config(*text, path);
  if (result.ok()) return std::move(result.config);
  std::string faults;
  for (const ConfigFault& fault : result.faults)
    faults += (faults.empty() ? "" : "\n") + fault.text();
  return fail(faults);
}

}  // namespace holdfast
