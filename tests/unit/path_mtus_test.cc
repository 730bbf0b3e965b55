// SPDX-License-Identifier: Apache-2.0
// What routers said about the way to backends: believed for ten minutes, and only if the quoted
// packet is ours.
#include "ctrl/path_mtu/path_mtus.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ctrl/path_mtu/path_mtu_watch.h"
#include "ctrl/path_mtu/tunnels.h"
#include "tests/catch.h"
#include "tests/dsl/packet.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

IpAddress ip(std::string_view text) { return *IpAddress::parse(text); }

const IpAddress kAddressA = ip("192.0.2.21");
const IpAddress kAddressB = ip("2001:db8:100::21");
const MembershipKey kA{"web", kAddressA};
const MembershipKey kB{"web", kAddressB};
const IpAddress kRouter = ip("198.51.100.1");
const IpAddress kOther = ip("198.51.100.2");
constexpr Instant kStart = 100s;

std::uint16_t mtu_at(const PathMtus& mtus, const MembershipKey& backend, Instant now) {
  const LearnedMtu* const learned = mtus.find(backend, now);
  return learned == nullptr ? std::uint16_t{0} : learned->mtu;
}

/// Pool "web" with A over IPv4 and B over IPv6, as reconcile reports them.
struct Site {
  Config config{};
  std::vector<PoolReport> reports{};

  Site() {
    add_pool("web");
    add(kAddressA, ip("192.0.2.1"));
    add(kAddressB, ip("2001:db8:100::1"));
  }
  void add_pool(const std::string& name) {
    config.pools.emplace_back().name = name;
    reports.emplace_back().name = name;
  }
  /// To the last pool.
  void add(const IpAddress& backend, const IpAddress& source) {
    BackendReport report;
    report.address = backend;
    report.tunnel_source = source;
    reports.back().backends.push_back(report);
  }
  /// The pools whose tunnels a quote is about, sorted.
  [[nodiscard]] std::vector<std::string> pools_of(const OuterQuote& quote) const {
    const Tunnels tunnels(config, reports);
    std::vector<std::string> pools;
    for (const auto* tunnel : tunnels.of(quote)) pools.push_back(tunnel->pool);
    std::sort(pools.begin(), pools.end());
    return pools;
  }
  [[nodiscard]] bool sends(const OuterQuote& quote) const { return !pools_of(quote).empty(); }
};

const OuterQuote kQuote{
    .source = ip("192.0.2.1"), .destination = kAddressA, .protocol = IpProtocol::ipv4, .mtu = 1400};

}  // namespace

TEST_CASE("a path MTU is learned for ten minutes, for its backend alone") {
  PathMtus mtus;
  CHECK(mtu_at(mtus, kA, kStart) == 0);
  CHECK(mtus.learn(kA, 1400, kRouter, kStart));
  CHECK(mtu_at(mtus, kA, kStart) == 1400);
  CHECK(mtu_at(mtus, kA, kStart + 10min - 1ns) == 1400);
  CHECK(mtu_at(mtus, kA, kStart + 10min) == 0);
  CHECK(mtu_at(mtus, kB, kStart) == 0);
  CHECK(mtus.find(kA, kStart)->router == kRouter);
  CHECK(mtus.find(kA, kStart)->until == kStart + 10min);
}

TEST_CASE("what is learned again counts for ten minutes more, and is no news") {
  PathMtus mtus;
  static_cast<void>(mtus.learn(kA, 1400, kRouter, kStart));
  CHECK_FALSE(mtus.learn(kA, 1400, kOther, kStart + 9min));
  CHECK(mtu_at(mtus, kA, kStart + 18min) == 1400);
  CHECK(mtus.find(kA, kStart + 18min)->router == kOther);
  CHECK(mtu_at(mtus, kA, kStart + 19min) == 0);
}

TEST_CASE("a path MTU is lowered, never raised") {
  PathMtus mtus;
  static_cast<void>(mtus.learn(kA, 1400, kRouter, kStart));
  CHECK_FALSE(mtus.learn(kA, 1450, kOther, kStart + 1min));
  CHECK(mtu_at(mtus, kA, kStart + 1min) == 1400);
  CHECK(mtu_at(mtus, kA, kStart + 10min) == 0);  // nor kept for longer by that
  static_cast<void>(mtus.learn(kA, 1400, kRouter, kStart));
  CHECK(mtus.learn(kA, 1300, kOther, kStart + 1min));
  CHECK(mtu_at(mtus, kA, kStart + 1min) == 1300);
}

TEST_CASE("when ten minutes are over it is learned anew, a larger one too, and is news") {
  PathMtus mtus;
  static_cast<void>(mtus.learn(kA, 1400, kRouter, kStart));
  CHECK(mtus.learn(kA, 1450, kRouter, kStart + 10min));
  CHECK(mtu_at(mtus, kA, kStart + 10min) == 1450);
  CHECK(mtus.learn(kA, 1450, kRouter, kStart + 20min));
}

TEST_CASE("a quote is ours if source, backend and protocol are those of a tunnel") {
  const Site site;
  CHECK(site.sends(kQuote));
  OuterQuote inner6 = kQuote;
  inner6.protocol = IpProtocol::ipv6;
  CHECK(site.sends(inner6));
  CHECK(site.sends({.source = ip("2001:db8:100::1"),
                    .destination = kAddressB,
                    .protocol = IpProtocol::ipv4,
                    .mtu = 1400}));

  OuterQuote other = kQuote;
  other.source = ip("192.0.2.2");
  CHECK_FALSE(site.sends(other));
  other = kQuote;
  other.destination = ip("192.0.2.22");
  CHECK_FALSE(site.sends(other));
  for (const auto protocol : {IpProtocol::tcp, IpProtocol::udp, IpProtocol::icmp}) {
    other = kQuote;
    other.protocol = protocol;
    CHECK_FALSE(site.sends(other));
  }
}

TEST_CASE("the quoted protocol is that of the pool's encapsulation, GUE by its port") {
  Site site;
  const auto with = [](IpProtocol protocol, std::uint16_t port = 0) {
    OuterQuote quote = kQuote;
    quote.protocol = protocol;
    quote.destination_port = Be16::from_host(port);
    return quote;
  };
  site.config.pools[0].encapsulation = Encapsulation::gre;
  CHECK(site.sends(with(IpProtocol::gre)));
  CHECK_FALSE(site.sends(kQuote));
  for (const auto gue : {Encapsulation::gue, Encapsulation::gue0}) {
    site.config.pools[0].encapsulation = gue;
    CHECK(site.sends(with(IpProtocol::udp, 6080)));
    CHECK_FALSE(site.sends(with(IpProtocol::udp, 6081)));
    CHECK_FALSE(site.sends(with(IpProtocol::gre)));
    CHECK_FALSE(site.sends(kQuote));
  }
}

TEST_CASE("with ipip_source_spread any source of the prefix is ours, with IP in IP alone") {
  Site site;
  site.config.dataplane.ipip_spread_v4 = Prefix::parse("10.9.0.0/16");
  OuterQuote quote = kQuote;
  CHECK_FALSE(site.sends(quote));
  quote.source = ip("10.9.255.1");
  CHECK(site.sends(quote));
  quote.source = ip("10.10.0.1");
  CHECK_FALSE(site.sends(quote));
  site.config.pools[0].encapsulation = Encapsulation::gre;
  quote.protocol = IpProtocol::gre;
  quote.source = ip("10.9.255.1");
  CHECK_FALSE(site.sends(quote));
  quote.source = kQuote.source;
  CHECK(site.sends(quote));
}

TEST_CASE("to a backend without a tunnel source nothing was sent") {
  Site site;
  site.reports[0].backends[0].tunnel_source = {};
  CHECK_FALSE(site.sends(kQuote));
  OuterQuote nowhere = kQuote;
  nowhere.source = {};
  CHECK_FALSE(site.sends(nowhere));
}

TEST_CASE("a quote is about the tunnels of all pools that have the backend") {
  Site site;
  site.add_pool("old");
  site.add(kAddressA, ip("192.0.2.9"));  // another source, but the same way
  site.add_pool("other");
  site.add(ip("192.0.2.22"), ip("192.0.2.1"));
  CHECK(site.pools_of(kQuote) == std::vector<std::string>{"old", "web"});
}

TEST_CASE("a doubt is told once in ten minutes for a backend") {
  PathMtus mtus;
  CHECK(mtus.doubt(kAddressA, kStart));
  CHECK_FALSE(mtus.doubt(kAddressA, kStart + 10min - 1ns));
  CHECK(mtus.doubt(kAddressB, kStart + 1min));
  CHECK(mtus.doubt(kAddressA, kStart + 10min));
}

TEST_CASE("each message is counted under what became of it") {
  using dsl::Icmp;
  using dsl::Ip4;
  using dsl::Tcp;
  using Taken = PathMtuWatch::Taken;
  Loop loop;
  Taken next = Taken::learned;
  std::vector<OuterQuote> quotes;
  // As the real one: what is not ours takes no token.
  PathMtuWatch watch(
      loop, [&](const OuterQuote& quote, const IpAddress& router, TokenBucket& rate) {
        CHECK(router == kRouter);
        quotes.push_back(quote);
        return next == Taken::not_ours || rate.take(kStart) ? next : Taken::rate_limited;
      });
  const auto message = [](std::uint32_t mtu) {
    return (Ip4{.src = "198.51.100.1", .dst = "192.0.2.1"} /
            Icmp{.type = 3, .code = 4, .rest = mtu} /
            quote(Ip4{.src = "192.0.2.1", .dst = "192.0.2.21"} / Ip4{} / Tcp{} / dsl::payload(1460),
                  28))
        .bytes();
  };
  const auto hear = [&](std::uint32_t mtu) {
    watch.on_message(Family::ipv4, message(mtu), kRouter);
  };
  hear(1400);
  next = Taken::known;
  hear(1400);
  next = Taken::not_ours;
  hear(1400);
  REQUIRE(quotes.size() == 3);
  CHECK(quotes[0].destination == kAddressA);
  next = Taken::not_believed;
  hear(1400);
  quotes.pop_back();
  next = Taken::not_ours;
  hear(500);
  hear(1520);
  CHECK(quotes.size() == 3);
  CHECK(watch.counters().learned == 1);
  CHECK(watch.counters().known == 1);
  CHECK(watch.counters().not_ours == 1);
  CHECK(watch.counters().not_believed == 2);
  CHECK(watch.counters().malformed == 1);

  SECTION("and what is ours and comes above the rate is not taken") {
    next = Taken::known;
    const std::uint32_t taken_before = 3;  // learned, known, not believed by the taker
    for (std::uint32_t i = 0; i < 2 * PathMtuWatch::kRate; ++i) hear(1400);
    CHECK(watch.counters().known == 1 + PathMtuWatch::kRate - taken_before);
    CHECK(watch.counters().rate_limited == PathMtuWatch::kRate + taken_before);
  }
  SECTION("and a flood of what is not ours leaves the rate to what is") {
    next = Taken::not_ours;
    for (std::uint32_t i = 0; i < 2 * PathMtuWatch::kRate; ++i) {
      hear(1400);
      hear(500);
      hear(1520);
    }
    next = Taken::learned;
    hear(1400);
    CHECK(watch.counters().learned == 2);
    CHECK(watch.counters().rate_limited == 0);
  }
}
