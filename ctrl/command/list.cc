// SPDX-License-Identifier: Apache-2.0
// The list of all commands: a new one is a line here and a function in the file of its family.
#include "ctrl/command/backend.h"
#include "ctrl/command/bgp.h"
#include "ctrl/command/check.h"
#include "ctrl/command/command.h"
#include "ctrl/command/config.h"
#include "ctrl/command/drops.h"
#include "ctrl/command/events.h"
#include "ctrl/command/flow_durations.h"
#include "ctrl/command/flows.h"
#include "ctrl/command/lookup.h"
#include "ctrl/command/pool.h"
#include "ctrl/command/stats.h"
#include "ctrl/command/status.h"

namespace holdfast {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> kAll{
      status_command(),         vip_list_command(),        service_list_command(),
      pool_show_command(),      backend_drain_command(),   backend_enable_command(),
      backend_weight_command(), lookup_command(),          flows_list_command(),
      flows_count_command(),    flows_durations_command(), bgp_command(),
      events_command(),         stats_command(),           drops_command(),
      config_show_command(),    check_command(),
  };
  return kAll;
}

}  // namespace holdfast
