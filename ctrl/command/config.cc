// SPDX-License-Identifier: Apache-2.0
#include "ctrl/command/config.h"

#include <fmt/format.h>

#include "ctrl/control_plane.h"
#include "lib/config/write_config.h"
#include "lib/protocol/json.h"

namespace holdfast {
namespace {

/// What differs from the configuration until the daemon ends.
Json run_time_weights(const ControlPlane& control) {
  Json weights = Json::array();
  for (const auto& pool : control.published().pools) {
    for (const auto& backend : pool.backends) {
      if (backend.weight == backend.configured_weight) continue;
      weights.push_back({{"backend", pool.name + "/" + backend.name}, {"weight", backend.weight}});
    }
  }
  return weights;
}

void run(ControlPlane& control, const Json& /*arguments*/, const std::shared_ptr<Reply>& reply) {
  // 50,000 backends take more than 100 ms, and the helper thread may be at a snapshot.
  reply->event(Json::object());
  control.make_aside([config = control.shared_config()] { return write_config(*config); },
                     [&control, reply](std::string toml) {
                       reply->result({{"toml", std::move(toml)},
                                      {"seed_fingerprint", seed_fingerprint(control.seed())},
                                      {"run_time_weights", run_time_weights(control)}});
                     });
}

/// What the file has no key for stands in comments, so that the text is a file.
std::string render(const Json& result) {
  auto text = fmt::format("# hash seed: fingerprint {}\n", text_at(result, "seed_fingerprint"));
  for (const auto& one : list_at(result, "run_time_weights"))
    text += fmt::format("# {} has weight {} until holdfastd restarts\n", text_at(one, "backend"),
                        number_at(one, "weight"));
  return text + text_at(result, "toml");
}

}  // namespace

Command config_show_command() {
  return {.name = "config show",
          .summary = "Show the configuration in force as a file, with all defaults",
          .example = "holdfast config show",
          .run = run,
          .render = render};
}

}  // namespace holdfast
