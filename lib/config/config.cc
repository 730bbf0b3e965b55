// SPDX-License-Identifier: Apache-2.0
#include "lib/config/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/printable.h"
#include "lib/config/sections.h"
#include "lib/config/syntax.h"

namespace holdfast {
namespace {

template <class Items>
auto find_by_name(const Items& items, std::string_view name) -> decltype(items.data()) {
  const auto it =
      std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.name == name; });
  return it == items.end() ? nullptr : &*it;
}

}  // namespace

const PoolConfig* Config::pool(std::string_view name) const { return find_by_name(pools, name); }

const CheckConfig* Config::check(std::string_view name) const { return find_by_name(checks, name); }

std::optional<std::uint16_t> Config::check_port(const PoolConfig& pool) const {
  const auto* used = check(pool.check);
  if (used != nullptr && used->port) return used->port;
  for (const auto& service : services) {
    if (service.pool != pool.name) continue;
    return service.ports.is_any() ? std::nullopt : std::optional{service.ports.first};
  }
  return std::nullopt;
}

std::string ConfigFault::text() const {
  const auto path = printable_path(file);
  return line == 0 ? fmt::format("{}: {}", path, message)
                   : fmt::format("{}:{}:{}: {}", path, line, column, message);
}

ConfigResult parse_config(std::string_view text, std::string_view file) {
  config::Faults faults{file};
  const auto tree = config::parse_syntax(text, faults);
  if (!faults.empty()) return {{}, faults.take()};

  const auto slash = file.rfind('/');
  config::Parse parse{
      .folder = std::string{slash == std::string_view::npos ? "" : file.substr(0, slash + 1)},
      .faults = faults};
  config::TableReader root{tree, "the file", faults};
  config::parse_site(root, parse);
  config::parse_dataplane(root, parse);
  config::parse_control(root, parse);
  config::parse_bgp(root, parse);
  config::parse_vips(root, parse);
  config::parse_services(root, parse);
  config::parse_pools(root, parse);
  config::parse_checks(root, parse);
  root.finish();

  config::check_names(parse);
  config::check_addresses(parse);
  config::check_services(parse);
  config::check_pools(parse);
  config::check_bgp(parse);
  return {std::move(parse.config), faults.take()};
}

}  // namespace holdfast
