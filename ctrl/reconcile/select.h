// SPDX-License-Identifier: Apache-2.0
// How operators name things: SERVICE, POOL, POOL/BACKEND for one membership, BACKEND alone (name or
// address) for all pools that have it. A name that is not there is answered with those that are.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctrl/reconcile/reconcile.h"
#include "lib/base/result.h"
#include "lib/config/config.h"

namespace holdfast {

[[nodiscard]] Result<const ServiceConfig*> select_service(
    const std::vector<ServiceConfig>& services, std::string_view name);

[[nodiscard]] Result<const PoolReport*> select_pool(const std::vector<PoolReport>& pools,
                                                    std::string_view name);

struct SelectedBackend {
  const PoolReport* pool = nullptr;
  const BackendReport* backend = nullptr;

  [[nodiscard]] std::string label() const { return pool->name + "/" + backend->name; }
  [[nodiscard]] MembershipKey key() const { return {pool->name, backend->address}; }
};

/// At least one on success; the pointers point into `pools`.
[[nodiscard]] Result<std::vector<SelectedBackend>> select_backends(
    const std::vector<PoolReport>& pools, std::string_view name);

}  // namespace holdfast
