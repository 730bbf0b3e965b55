// SPDX-License-Identifier: Apache-2.0
// What ctrl may ask about flows. About one: where would its packets go now, and why. Values; the
// answer is computed in lb by the code that packets meet (lb/flow/lookup.h), without changing
// anything. About all: lib/model/flow_scan.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/model/drop_reason.h"
#include "lib/model/flow_scan.h"
#include "lib/model/numbers.h"
#include "lib/model/stream_query.h"
#include "lib/net/address.h"
#include "lib/net/headers.h"

namespace holdfast {

/// Requires: protocol is tcp or udp, and both addresses are of one family.
struct FlowQuestion {
  IpProtocol protocol = IpProtocol::tcp;
  IpAddress client{};
  std::uint16_t client_port = 0;
  IpAddress vip{};
  std::uint16_t vip_port = 0;
};

/// Which rule decides about a packet.
enum class FlowRule : std::uint8_t {
  own_table,       // the flow table of the worker that gets it
  other_table,     // another worker's
  slot,            // no table: the effective owner of its slot
  unchecked_base,  // no table: the slot's base owner, which was not checked since the start
  base_in_grace,   // no table: the slot's base owner, which went down within its grace
  stateless,       // no table is asked: the effective owner of its slot
};

struct FlowChoice {
  FlowRule rule = FlowRule::slot;
  BackendNumber backend = kNoBackend;   // also when `dropped`, where one was chosen
  std::optional<DropReason> dropped{};  // the packet is not forwarded

  friend bool operator==(const FlowChoice&, const FlowChoice&) = default;
};

/// An entry of one worker's flow table, as another thread may see it: without the time of its last
/// packet, so an entry that expired in the last seconds and was not swept yet is seen too.
struct FlowSighting {
  enum class State : std::uint8_t { embryonic, established, closing };

  unsigned worker = 0;
  BackendNumber backend = kNoBackend;
  State state = State::embryonic;
  bool proven = false;
  bool stays = false;  // false: its backend keeps it no longer, the next packet is placed anew
};

/// What a worker does with the packet if it is the one that gets it.
struct WorkerChoice {
  FlowChoice next{};  // a packet of the running flow; for UDP any packet
  FlowChoice syn{};   // TCP: a SYN
  /// TCP: the same if the entry's last packet is 60 s old or older.
  FlowChoice syn_after_silence{};

  friend bool operator==(const WorkerChoice&, const WorkerChoice&) = default;
};

struct FlowAnswer {
  bool is_vip = false;                  // false: the packet is for the kernel
  std::optional<DropReason> dropped{};  // before any choice: a source that no client may have, a
                                        // port of no service. What follows is then not filled in
  bool rejected = false;                // dropped is unknown_port, and the VIP rejects that
  ServiceNumber service = kNoService;
  bool stateless = false;  // the service keeps no flows, so no table has this one
  std::uint64_t tag = 0;   // as in FlowRow
  std::uint32_t slot = 0;
  std::uint32_t slots = 0;  // of the pool's table; 0: it has none
  BackendNumber base_owner = kNoBackend;
  BackendNumber effective_owner = kNoBackend;
  std::vector<FlowSighting> tables{};   // every table that has the flow
  std::vector<WorkerChoice> workers{};  // by worker
};

/// Answers by the snapshot that was published last and the workers' flow tables.
class FlowQueries : public FlowScan {
 public:
  [[nodiscard]] virtual FlowAnswer look_up(const FlowQuestion& question) const = 0;
  /// Of all workers; those that are open are for read_flows() to tell. Any thread.
  [[nodiscard]] virtual StreamRecords read_streams(ServiceNumber service) const = 0;
};

}  // namespace holdfast
