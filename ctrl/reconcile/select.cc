// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/printable.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostNames = 20;

std::string list_of(std::vector<std::string> names) {
  if (names.empty()) return "there is none";
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text = "there is ";
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostNames) text += fmt::format(" and {} more", names.size() - kMostNames);
  return text;
}

bool matches(const BackendReport& backend, std::string_view name,
             const std::optional<IpAddress>& address) {
  return backend.name == name || (address && backend.address == *address);
}

void collect(const PoolReport& pool, std::string_view name, std::vector<SelectedBackend>& found) {
  const auto address = IpAddress::parse(name);
  for (const auto& backend : pool.backends) {
    if (matches(backend, name, address)) found.push_back({&pool, &backend});
  }
}

std::vector<std::string> backend_names(const PoolReport& pool) {
  std::vector<std::string> names;
  for (const auto& backend : pool.backends) names.push_back(backend.name);
  return names;
}

}  // namespace

Result<const ServiceConfig*> select_service(const std::vector<ServiceConfig>& services,
                                            std::string_view name) {
  std::vector<std::string> names;
  for (const auto& service : services) {
    if (service.name == name) return &service;
    names.push_back(service.name);
  }
  return fail(fmt::format("no service {}: {}", in_quotes(name), list_of(std::move(names))), {},
              "not_found");
}

Result<const PoolReport*> select_pool(const std::vector<PoolReport>& pools, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& pool : pools) {
    if (pool.name == name) return &pool;
    names.push_back(pool.name);
  }
  return fail(fmt::format("no pool {}: {}", in_quotes(name), list_of(std::move(names))), {},
              "not_found");
}

Result<std::vector<SelectedBackend>> select_backends(const std::vector<PoolReport>& pools,
                                                     std::string_view name) {
  std::vector<SelectedBackend> found;
  if (const auto slash = name.find('/'); slash != std::string_view::npos) {
    const auto pool = select_pool(pools, name.substr(0, slash));
    if (!pool) return tl::unexpected<Error>(pool.error());
    collect(**pool, name.substr(slash + 1), found);
    if (!found.empty()) return found;
    return fail(fmt::format("no backend {} in pool {}: {}", in_quotes(name.substr(slash + 1)),
                            (*pool)->name, list_of(backend_names(**pool))),
                {}, "not_found");
  }
  std::vector<std::string> names;
  for (const auto& pool : pools) {
    collect(pool, name, found);
    const auto more = backend_names(pool);
    names.insert(names.end(), more.begin(), more.end());
  }
  if (!found.empty()) return found;
  return fail(
      fmt::format("no backend {} in any pool: {}", in_quotes(name), list_of(std::move(names))), {},
      "not_found");
}

}  // namespace holdfast
