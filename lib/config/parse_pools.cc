// SPDX-License-Identifier: Apache-2.0
// [[pool]] with its backends, and [[check]].
#include <fmt/format.h>

#include "lib/config/sections.h"
#include "lib/config/values.h"
#include "lib/maglev/maglev.h"

namespace holdfast::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// A table of 10 million slots takes 20 MB and a second to build; the paper's largest has 655373.
constexpr std::uint32_t kMaxTableSize = 10'000'000;

void parse_next_hop(TableReader& backend, BackendConfig& config, BackendPlaces& places,
                    Faults& faults) {
  const auto* table = backend.table("next_hop");
  places.next_hop = backend.place("next_hop");
  if (table == nullptr) return;
  const auto faults_before = faults.count();
  TableReader reader{*table, fmt::format("the next hop of {}", backend.what()), faults};
  StaticNextHop hop;
  reader.require("port", "the name of a port of [dataplane]");
  if (auto port = reader.text("port")) {
    hop.port = *std::move(port);
    places.next_hop_port = reader.place("port");
  }
  reader.require("mac");
  if (const auto text = reader.text("mac")) {
    const auto mac = MacAddress::parse(*text);
    if (!mac)
      reader.fault("mac", fmt::format("{} is not a MAC address such as \"02:00:5e:10:00:01\"",
                                      in_quotes(*text)));
    else if (mac->is_zero() || (mac->bytes[0] & 1) != 0)
      reader.fault("mac", fmt::format("{} can not be one host's MAC address", in_quotes(*text)));
    else
      hop.mac = *mac;
  }
  if (const auto vlan = reader.integer("vlan", 0, 4094))
    hop.vlan = static_cast<std::uint16_t>(*vlan);
  // 576: what every IPv4 host can receive (RFC 791).
  if (const auto mtu = reader.integer("mtu", 576, 65535))
    hop.mtu = static_cast<std::uint16_t>(*mtu);
  reader.finish();
  places.next_hop_good = faults.count() == faults_before;
  config.next_hop = std::move(hop);
}

void parse_backend(const toml::table& table, const std::string& pool_what, PoolConfig& pool,
                   PoolPlaces& pool_places, Faults& faults) {
  TableReader reader{table, fmt::format("a backend of {}", pool_what), faults};
  BackendConfig backend;
  BackendPlaces places{.self = reader.place()};
  if (auto name = reader.name("name")) {
    backend.name = *std::move(name);
    places.name = reader.place("name");
    reader.rename(fmt::format("backend {} of {}", in_quotes(backend.name), pool_what));
  }
  reader.require("address");
  if (const auto address = reader.address("address")) {
    backend.address = *address;
    places.address = reader.place("address");
    if (!places.name.known()) {
      backend.name = address->text();
      reader.rename(fmt::format("backend {} of {}", backend.name, pool_what));
    }
  }
  if (const auto weight = reader.integer("weight", 0, kMaxWeight))
    backend.weight = static_cast<std::uint32_t>(*weight);
  parse_next_hop(reader, backend, places, faults);
  reader.finish();
  pool.backends.push_back(std::move(backend));
  pool_places.backends.push_back(places);
}

void parse_table_size(TableReader& reader, PoolConfig& pool, PoolPlaces& places) {
  const auto size = reader.integer("table_size", 2, kMaxTableSize);
  if (!size) return;
  pool.table_size = static_cast<std::uint32_t>(*size);
  places.table_size = reader.place("table_size");
  if (is_prime(pool.table_size)) return;
  // The next prime above, if it is not too large itself, else the largest.
  auto prime = pool.table_size;
  while (prime <= kMaxTableSize && !is_prime(prime)) ++prime;
  const bool above = prime <= kMaxTableSize;
  while (!is_prime(prime)) --prime;
  reader.fault("table_size", fmt::format("\"table_size\" must be a prime number, which {} is not; "
                                         "the {} one is {}",
                                         pool.table_size, above ? "next" : "largest", prime));
}

void parse_encapsulation(TableReader& reader, PoolConfig& pool) {
  using enum Encapsulation;
  const auto encapsulation = reader.choice<Encapsulation>(
      "encapsulation",
      {{name_of(ipip), ipip}, {name_of(gre), gre}, {name_of(gue), gue}, {name_of(gue0), gue0}});
  if (encapsulation) pool.encapsulation = *encapsulation;
  if (const auto dscp = reader.integer_or("copy", "dscp", 0, 63))
    pool.dscp = static_cast<std::uint8_t>(*dscp);
  const auto checksum = reader.boolean("udp6_checksum");
  if (!checksum) return;
  pool.udp6_checksum = *checksum;
  const bool faulty = reader.has("encapsulation") && !encapsulation;
  if (!faulty && !uses_udp(pool.encapsulation))
    reader.fault("udp6_checksum",
                 fmt::format("\"udp6_checksum\" is for pools with encapsulation = \"gue\" or "
                             "\"gue0\"; {} has \"{}\"",
                             reader.what(), name_of(pool.encapsulation)));
}

void parse_pool(const toml::table& table, Parse& parse) {
  TableReader reader{table, "a pool", parse.faults};
  PoolConfig pool;
  PoolPlaces places{.self = reader.place()};
  places.name = reader.own_name("pool", pool.name);
  parse_table_size(reader, pool, places);
  parse_encapsulation(reader, pool);
  if (auto check = reader.text("check")) {
    pool.check = *std::move(check);
    if (!pool.check.empty())
      places.check = reader.place("check");
    else
      reader.fault("check",
                   fmt::format("\"check\" must name a [[check]]; leave it out if {} is not "
                               "to be checked",
                               reader.what()));
  }
  if (const auto grace = reader.duration("down_grace", milliseconds{0}, hours{24}))
    pool.down_grace = *grace;
  reader.require("backends", "a list such as [{ address = \"192.0.2.21\" }]");
  for (const auto* backend : reader.tables("backends", "backends = [{ address = \"...\" }]"))
    parse_backend(*backend, reader.what(), pool, places, parse.faults);
  reader.finish();
  parse.config.pools.push_back(std::move(pool));
  parse.places.pools.push_back(std::move(places));
}

}  // namespace

void parse_pools(TableReader& root, Parse& parse) {
  for (const auto* table : root.tables("pool", "write [[pool]]")) parse_pool(*table, parse);
}

void parse_checks(TableReader& root, Parse& parse) {
  for (const auto* table : root.tables("check", "write [[check]]")) {
    TableReader reader{*table, "a check", parse.faults};
    CheckConfig check;
    const Place place = reader.own_name("check", check.name);
    if (const auto kind = reader.choice<CheckKind>("kind", {{"tcp", CheckKind::tcp}}))
      check.kind = *kind;
    if (const auto port = reader.integer("port", 1, 65535))
      check.port = static_cast<std::uint16_t>(*port);
    if (const auto interval = reader.duration("interval", milliseconds{10}, hours{1}))
      check.interval = *interval;
    if (const auto timeout = reader.duration("timeout", milliseconds{1}, hours{1}))
      check.timeout = *timeout;
    if (const auto rise = reader.integer("rise", 1, 1000))
      check.rise = static_cast<std::uint32_t>(*rise);
    if (const auto fall = reader.integer("fall", 1, 1000))
      check.fall = static_cast<std::uint32_t>(*fall);
    reader.finish();
    parse.config.checks.push_back(std::move(check));
    parse.places.checks.push_back(place);
  }
}

}  // namespace holdfast::config
