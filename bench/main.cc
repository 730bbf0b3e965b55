// SPDX-License-Identifier: Apache-2.0
// The benchmark program: takes groups of figures and prints them. bench/run builds and starts it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "bench/groups.h"

using namespace holdfast::bench;

namespace {

struct Group {
  const char* name;
  const char* title;
  void (*run)(Report&, const Options&);
};

constexpr Group kGroups[] = {
    {"pipeline", "Pipeline, parse to encapsulated", run_pipeline},
    {"maglev", "Maglev tables", run_maglev},
    {"fill", "Flow table: fill, sweep, slowest inserts", run_fill},
    {"floods", "Floods over a table full of proven flows", run_floods},
    {"table", "Flow table beside rte_hash and absl::flat_hash_map", run_table},
    {"scale", "Large sites", run_scale},
    {"snapshot", "Publishing snapshots while packets are forwarded", run_snapshot},
};

std::string group_names() {
  std::string names;
  for (const Group& group : kGroups) names += (names.empty() ? "" : ", ") + std::string(group.name);
  return names;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Measures Holdfast's data plane in memory, without devices."};
  Options options;
  bool check = false;
  std::string json;
  std::vector<std::string> only;
  app.add_flag("--quick", options.quick, "smaller and fewer: within 90 s");
  app.add_flag("--check", check, "exit 1 and name each goal that is missed");
  app.add_option("--json", json, "write the rows to this file");
  app.add_option("group", only, "groups to take (default: all): " + group_names())
      ->check([](const std::string& name) {
        const bool known = std::any_of(std::begin(kGroups), std::end(kGroups),
                                       [&](const Group& group) { return group.name == name; });
        return known ? std::string{}
                     : fmt::format("no group is called '{}'; there are {}", name, group_names());
      });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  Report report;
  for (const Group& group : kGroups) {
    if (!only.empty() && std::find(only.begin(), only.end(), group.name) == only.end()) continue;
    group.run(report, options);
    report.print(group.title);
  }
  if (!json.empty()) report.write_json(json);
  if (!check) return 0;
  const std::vector<std::string> missed = report.missed();
  for (const std::string& name : missed) fmt::print(stderr, "goal missed: {}\n", name);
  return missed.empty() ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
