// SPDX-License-Identifier: Apache-2.0
// One parser a section, and what they hand on to the checks between sections: the values, and the
// place of each value that something else refers to. Internal to lib/config.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/config/faults.h"
#include "lib/config/table_reader.h"

namespace holdfast::config {

// Where the values of Config stand, index by index. A place is unknown when the value is absent or
// already reported as faulty.

struct PortPlaces {
  Place name{}, interface {
  }, vdev{}, pci{}, queues{};
  bool queues_faulty = false;  // reported already, and PortConfig::queues is not what was written
};

struct ServicePlaces {
  Place self{}, name{}, pool{}, ports{};
  std::vector<Place> vips{};  // of ServiceConfig::vips
};

struct BackendPlaces {
  Place self{}, name{}, address{}, next_hop{}, next_hop_port{};
  bool next_hop_good = false;  // there, and no fault in it
};

struct PoolPlaces {
  Place self{}, name{}, table_size{}, check{};
  std::vector<BackendPlaces> backends{};
};

struct Places {
  std::vector<PortPlaces> ports;
  Place workers, tunnel_source_v4, tunnel_source_v6, ipip_spread_v4, ipip_spread_v6;
  Place bgp, next_hop, next_hop_v6;
  std::vector<Place> vips;
  std::vector<ServicePlaces> services;
  std::vector<PoolPlaces> pools;
  std::vector<Place> checks;  // of their names
};

struct Parse {
  std::string folder;  // of the config file, with a trailing '/' or empty
  Config config{};
  Places places{};
  Faults& faults;

  /// Relative paths start at the config file's folder.
  [[nodiscard]] std::string resolve(const std::string& path) const;
};

/// Whether the path can only be a folder's, where a file or socket is meant.
[[nodiscard]] bool names_a_folder(std::string_view path);

/// A Unix socket's address holds 108 bytes, the last of them a zero.
inline constexpr std::size_t kMaxSocketPath = 107;

void parse_site(TableReader& root, Parse& parse);
void parse_dataplane(TableReader& root, Parse& parse);
void parse_control(TableReader& root, Parse& parse);
void parse_bgp(TableReader& root, Parse& parse);
void parse_vips(TableReader& root, Parse& parse);
void parse_services(TableReader& root, Parse& parse);
void parse_pools(TableReader& root, Parse& parse);
void parse_checks(TableReader& root, Parse& parse);

/// What no section can see alone: names and addresses that appear twice, references, overlaps.
void check_names(Parse& parse);
void check_addresses(Parse& parse);
void check_services(Parse& parse);
void check_pools(Parse& parse);
void check_bgp(Parse& parse);

}  // namespace holdfast::config
