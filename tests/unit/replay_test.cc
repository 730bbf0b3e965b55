// SPDX-License-Identifier: Apache-2.0
// What is around the data path in a replay: frames of all links, the clock, and a control plane
// that asks nobody. The program is tested in tests/replay/.
#include <pcap/dlt.h>

#include "ctrl/reconcile/offline_control.h"
#include "lb/replay/capture_clock.h"
#include "lb/replay/link_layer.h"
#include "tests/catch.h"
#include "tests/unit/config_text.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr Instant kStart = OfflineControl::kEarliest;
const IpAddress kB1 = *IpAddress::parse("192.0.2.21");

Config good() { return parse_config(config_text::kGood, "h.toml").config; }

OfflineControl start(const OfflineControl::Assumptions& assumptions, Config config = good()) {
  auto control = OfflineControl::start(std::move(config), HashSeed{7}, assumptions, kStart);
  REQUIRE(control);
  return std::move(*control);
}

const Backend& find(const Snapshot& snapshot, const IpAddress& address) {
  for (const Backend& backend : snapshot.backends)
    if (backend.present && backend.address == address) return backend;
  FAIL("no backend " << address.text());
  std::abort();
}

}  // namespace

TEST_CASE("a record that is cut inside its link header becomes a frame that is cut, too") {
  const FrameEnds ends{.source = *MacAddress::parse("02:00:00:00:02:01"),
                       .destination = *MacAddress::parse("02:00:00:00:00:01")};
  std::vector<std::uint8_t> record(40, 0xff);
  record[0] = 0;
  for (const int dlt :
       {DLT_EN10MB, DLT_RAW, DLT_IPV6, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_NULL, DLT_PPP}) {
    const LinkType type = link_type_of(dlt).value();
    std::vector<std::uint8_t> frame;
    for (std::size_t size = 0; size <= record.size(); ++size) {
      make_frame(type, std::span(record).first(size), ends, frame);
      CHECK(frame.size() <= size + 14);
      CHECK((frame.size() < 14 || type == LinkType::ethernet || frame.size() - 14 <= size));
    }
  }
  CHECK_FALSE(link_type_of(DLT_IEEE802_11));
}

TEST_CASE("a cooked record to all is a broadcast frame, so that nobody answers it") {
  std::vector<std::uint8_t> record(20);
  record[0] = 0x08;  // IPv4
  record[10] = 1;    // LINUX_SLL_BROADCAST
  std::vector<std::uint8_t> frame;
  make_frame(LinkType::linux_cooked_2, record, {}, frame);
  CHECK(std::vector<std::uint8_t>(frame.begin(), frame.begin() + 6) ==
        std::vector<std::uint8_t>(6, 0xff));
}

TEST_CASE("the capture's clock never goes back, and starts with its first packet") {
  CaptureClock clock(kStart);
  CHECK(clock.advance_to(1000s) == kStart);
  CHECK(clock.advance_to(1002s) == kStart + 2s);
  CHECK(clock.advance_to(3s) == kStart + 2s);
  CHECK(clock.capture_time() == 1002s);
  CHECK(clock.pass(1s) == kStart + 3s);
  CHECK(clock.advance_to(1004s) == kStart + 4s);
}

TEST_CASE("all backends of an offline control are eligible, with checks and without next hops") {
  OfflineControl control = start({});
  REQUIRE(control.is_due(kStart));
  const auto snapshot = control.make_snapshot(kStart);
  CHECK_FALSE(control.is_due(kStart + 1h));
  const Backend& backend = find(*snapshot, kB1);
  CHECK(backend.eligible());
  REQUIRE(backend.next_hop_count == 1);
  const NextHop& hop = snapshot->next_hops[backend.first_next_hop];
  CHECK(hop.mtu == 1520);
  CHECK(hop.source == kAssumedPortMac);
  CHECK(hop.destination == kAssumedRouterMac);
  CHECK(backend.tunnel_source == IpAddress::parse(kAssumedSourceV4));
}

TEST_CASE("who is down has been for longer than its grace, and stays so through an apply") {
  OfflineControl control = start({.down = {"proxies/b1"}});
  CHECK(find(*control.make_snapshot(kStart), kB1).state == BackendState::down);
  CHECK_FALSE(find(*control.make_snapshot(kStart), kB1).keeps_tcp);
  Config unchecked = good();
  unchecked.pools[0].check.clear();
  REQUIRE(control.apply(unchecked, kStart + 1s));
  REQUIRE(control.is_due(kStart + 1s));
  const auto snapshot = control.make_snapshot(kStart + 1s);
  CHECK(find(*snapshot, kB1).state == BackendState::down);
  CHECK_FALSE(find(*snapshot, kB1).keeps_tcp);
}

TEST_CASE("a drain lets UDP go after its limit, when the snapshot is due again") {
  OfflineControl control = start({.drained = {"b1"}});
  CHECK(find(*control.make_snapshot(kStart), kB1).state == BackendState::draining);
  CHECK(find(*control.make_snapshot(kStart), kB1).keeps_udp);
  const Instant over = kStart + Drain::kUdpLimit;
  REQUIRE(control.is_due(over));
  CHECK_FALSE(find(*control.make_snapshot(over), kB1).keeps_udp);
}

TEST_CASE("an assumption about a backend that is not there is refused") {
  const auto control =
      OfflineControl::start(good(), HashSeed{7}, {.drained = {"proxies/b9"}}, kStart);
  REQUIRE_FALSE(control);
  CHECK(control.error().message.find("there is 2001:db8:1::22, b1") != std::string::npos);
}
