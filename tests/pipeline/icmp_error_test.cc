// SPDX-License-Identifier: Apache-2.0
// ICMP errors about what a backend sent follow the flow that they quote, so that path MTU discovery
// and unreachables work behind the VIP (field reports: katran#159, glb-director#47, calico#13667).
#include <array>

#include "tests/dsl/expect.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr std::uint16_t kClientPort = 40000;
const Ip client4 = "198.51.100.7";
const Ip client6 = "2001:db8:51::7";
const Ip vip4 = "203.0.113.10";
const Ip vip6 = "2001:db8::10";
const Ip router4 = "198.51.100.254";
const Ip router6 = "2001:db8:51::fe";

ServiceSpec web() {
  return service({vip4, vip6}, tcp(80))
      .to("192.0.2.21")
      .to("192.0.2.22")
      .to("192.0.2.23")
      .to("192.0.2.24")
      .to("192.0.2.25");
}
ServiceSpec quic() { return service({vip4, vip6}, udp(443)).to("192.0.2.31").to("192.0.2.32"); }

/// What a backend answered a client with: the quoted packet.
Packet answer4(std::uint16_t client_port = kClientPort) {
  return Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 80, .dport = client_port} / payload(1400);
}
Packet answer6(std::uint16_t client_port = kClientPort) {
  return Ip6{.src = vip6, .dst = client6} / Tcp{.sport = 80, .dport = client_port} / payload(1400);
}

/// A router on the way tells the VIP that the packet did not get through.
Packet error4(const Packet& quoted, Icmp icmp = {.type = 3, .code = 4, .rest = 1400}) {
  return Ip4{.src = router4, .dst = vip4} / icmp / quoted;
}
Packet error6(const Packet& quoted, Icmp6 icmp = {.type = 2, .rest = 1400}) {
  return Ip6{.src = router6, .dst = vip6} / icmp / quoted;
}

Ip backend_of(const Handled& handled) {
  INFO(describe(handled));
  REQUIRE(handled.kind == Handled::Kind::sent);
  return layer<Ip4>(handled).dst;
}

Packet tunnelled(const Ip& backend, const Packet& inner) {
  return from_lb / Ip4{.src = "192.0.2.1", .dst = backend} / inner;
}

/// Where the client's own packets go.
Ip backend_of_client4(LbUnderTest& lb, std::uint16_t port = kClientPort) {
  return backend_of(lb.handle(Eth{} / Ip4{} / Tcp{.sport = port, .flags = Syn}));
}
Ip backend_of_client6(LbUnderTest& lb, std::uint16_t port = kClientPort) {
  return backend_of(lb.handle(Eth{} / Ip6{} / Tcp{.sport = port, .flags = Syn}));
}

}  // namespace

TEST_CASE("a fragmentation-needed goes to the backend of the flow that it quotes") {
  LbUnderTest lb{web()};
  for (std::uint16_t port = 1000; port < 1050; ++port) {
    const auto error = error4(quote(answer4(port), 548));
    const Ip backend = backend_of_client4(lb, port);
    CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
  }
}

TEST_CASE("a Packet Too Big goes to the backend of the flow that it quotes") {
  LbUnderTest lb{web()};
  for (std::uint16_t port = 1000; port < 1050; ++port) {
    const auto error = error6(quote(answer6(port), 1232));
    const Ip backend = backend_of_client6(lb, port);
    CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
  }
}

TEST_CASE("an ICMP error reaches the same backend on a load balancer that never saw the flow") {
  LbUnderTest has_seen_it{web()};
  for (std::uint16_t port = 1000; port < 1050; ++port) {
    LbUnderTest has_not{web()};
    const Ip backend = backend_of_client4(has_seen_it, port);
    const auto error = error4(quote(answer4(port), 28));
    CHECK(has_not.handle(Eth{} / error) == sent(tunnelled(backend, error)));
  }
}

TEST_CASE("an ICMP error follows a flow that lives only in the flow table") {
  // glb-director#47: the flow's backend drains, so the Maglev table names another one.
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client4(lb);
  REQUIRE(backend_of(lb.handle(Eth{} / Ip4{} / Tcp{.sport = kClientPort})) == backend);
  lb.backend(backend).state = BackendState::draining;
  lb.publish();
  const auto error = error4(quote(answer4(), 28));
  CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
  const auto other_flow = error4(quote(answer4(kClientPort + 1), 28));
  lb.backend(backend).state = BackendState::eligible;
  lb.publish();
  CHECK(lb.handle(Eth{} / other_flow).kind == Handled::Kind::sent);
}

TEST_CASE("a Packet Too Big follows a flow that lives only in the flow table") {
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client6(lb);
  REQUIRE(backend_of(lb.handle(Eth{} / Ip6{} / Tcp{.sport = kClientPort})) == backend);
  lb.backend(backend).state = BackendState::draining;
  lb.publish();
  REQUIRE(backend_of_client6(lb, kClientPort + 1) != backend);
  const auto error = error6(quote(answer6(), 1232));
  CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
}

TEST_CASE("an ICMP error about UDP follows its flow") {
  LbUnderTest lb{quic()};
  const Ip backend4 = backend_of(lb.handle(Eth{} / Ip4{} / Udp{.dport = 443} / payload(9)));
  const Ip backend6 = backend_of(lb.handle(Eth{} / Ip6{} / Udp{.dport = 443} / payload(9)));
  const auto error_v4 =
      error4(quote(Ip4{.src = vip4, .dst = client4} / Udp{.sport = 443, .dport = kClientPort}));
  const auto error_v6 =
      error6(quote(Ip6{.src = vip6, .dst = client6} / Udp{.sport = 443, .dport = kClientPort}));
  CHECK(lb.handle(Eth{} / error_v4) == sent(tunnelled(backend4, error_v4)));
  CHECK(lb.handle(Eth{} / error_v6) == sent(tunnelled(backend6, error_v6)));
}

TEST_CASE("all kinds of ICMP errors are relayed, and nothing else of ICMP") {
  LbUnderTest lb{web().without_echo()};
  for (unsigned type = 0; type < 256; ++type) {
    CAPTURE(type);
    const auto kind = static_cast<std::uint8_t>(type);
    // Unreachable, time exceeded, parameter problem: yes. Source quench (4, RFC 6633), redirect
    // (5), echo (8, 0) and all others: no; echo requests are the VIP's own.
    const auto v4 = error4(quote(answer4(), 28), {.type = kind});
    const bool relayed4 = type == 3 || type == 11 || type == 12;
    if (relayed4)
      CHECK(lb.handle(Eth{} / v4) == sent(tunnelled(backend_of_client4(lb), v4)));
    else
      CHECK(lb.handle(Eth{} / v4) ==
            dropped(type == 8 ? DropReason::echo_off : DropReason::icmp_not_routed));
    // Unreachable, too big, time exceeded, parameter problem. Echo (128, 129), neighbour discovery
    // and redirect (133..137): no.
    const auto v6 = error6(quote(answer6(), 48), {.type = kind});
    const bool relayed6 = type >= 1 && type <= 4;
    if (relayed6)
      CHECK(lb.handle(Eth{} / v6) == sent(tunnelled(backend_of_client6(lb), v6)));
    else
      CHECK(lb.handle(Eth{} / v6) ==
            dropped(type == 128 ? DropReason::echo_off : DropReason::icmp_not_routed));
  }
}

TEST_CASE("all codes of an unreachable are relayed") {
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client4(lb);
  for (std::uint8_t code = 0; code < 16; ++code) {
    const auto error = error4(quote(answer4(), 28), {.type = 3, .code = code});
    CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
  }
}

TEST_CASE("eight quoted bytes behind the IP header are enough, and so are the four of the ports") {
  LbUnderTest lb{web()};
  const Ip backend4 = backend_of_client4(lb);
  const Ip backend6 = backend_of_client6(lb);
  for (const std::size_t transport : {std::size_t{8}, std::size_t{4}}) {
    const auto v4 = error4(quote(answer4(), 20 + transport));
    const auto v6 = error6(quote(answer6(), 40 + transport));
    CHECK(lb.handle(Eth{} / v4) == sent(tunnelled(backend4, v4)));
    CHECK(lb.handle(Eth{} / v6) == sent(tunnelled(backend6, v6)));
  }
}

TEST_CASE("a quote that ends before its ports is dropped, wherever it ends") {
  LbUnderTest lb{web()};
  for (std::size_t size = 0; size < 24; ++size)
    CHECK(lb.handle(Eth{} / error4(quote(answer4(), size))) == dropped(DropReason::icmp_bad_quote));
  for (std::size_t size = 0; size < 44; ++size)
    CHECK(lb.handle(Eth{} / error6(quote(answer6(), size))) == dropped(DropReason::icmp_bad_quote));
}

TEST_CASE("the padding of RFC 4884 behind a quote and extensions behind that do no harm") {
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client4(lb);
  Bytes padded = quote(answer4(), 28).bytes;
  padded.resize(128);
  const auto error = error4(Raw{padded} / Raw{{0x20, 0, 0, 0, 0, 8, 1, 1, 0, 0, 0, 0}});
  CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
}

TEST_CASE("a quoted packet with IPv4 options is found by its ports") {
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client4(lb);
  const Packet quoted = Ip4{.src = vip4, .dst = client4, .options = Bytes(40, 1)} /
                        Tcp{.sport = 80, .dport = kClientPort};
  const auto error = error4(quote(quoted, 68));
  CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
  for (std::size_t size = 0; size < 64; ++size)
    CHECK(lb.handle(Eth{} / error4(quote(quoted, size))) == dropped(DropReason::icmp_bad_quote));
}

TEST_CASE("a quoted packet with IPv6 extension headers is found by its ports") {
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client6(lb);
  for (const Packet& extensions : {Packet(HopByHop{}), Packet(DestinationOptions{}),
                                   Packet(Routing{}), Packet(Authentication{}), Packet(Fragment6{}),
                                   HopByHop{} / DestinationOptions{} / Fragment6{}}) {
    const Packet head = Ip6{.src = vip6, .dst = client6} / extensions;
    const Packet quoted = head / Tcp{.sport = 80, .dport = kClientPort};
    const auto error = error6(quote(quoted, head.size() + 8));
    CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
    for (std::size_t size = 0; size < head.size() + 4; ++size)
      CHECK(lb.handle(Eth{} / error6(quote(quoted, size))) == dropped(DropReason::icmp_bad_quote));
  }
}

TEST_CASE("the error itself may come with options, extension headers and tags") {
  LbUnderTest lb{web()};
  const Ip backend4 = backend_of_client4(lb);
  const Ip backend6 = backend_of_client6(lb);
  const auto v4 = Ip4{.src = router4, .dst = vip4, .options = {1, 1, 1, 0}} / Icmp{.type = 11} /
                  quote(answer4(), 28);
  const auto v6 = Ip6{.src = router6, .dst = vip6} / DestinationOptions{} / Icmp6{.type = 3} /
                  quote(answer6(), 48);
  CHECK(lb.handle(Eth{} / Vlan{} / v4) == sent(tunnelled(backend4, v4)));
  CHECK(lb.handle(Eth{} / v6) == sent(tunnelled(backend6, v6)));
}

TEST_CASE("the client itself may be the one who complains") {
  LbUnderTest lb{web()};
  const Ip backend = backend_of_client4(lb);
  const auto error =
      Ip4{.src = client4, .dst = vip4} / Icmp{.type = 3, .code = 3} / quote(answer4(), 28);
  CHECK(lb.handle(Eth{} / error) == sent(tunnelled(backend, error)));
}

TEST_CASE("a quoted first fragment has the ports and is used, a later one has none") {
  LbUnderTest lb{web()};
  const Ip backend4 = backend_of_client4(lb);
  const Ip backend6 = backend_of_client6(lb);
  const Tcp from_service{.sport = 80, .dport = kClientPort};
  const auto first4 = error4(quote(
      Ip4{.src = vip4, .dst = client4, .df = false, .more_fragments = true} / from_service, 28));
  CHECK(lb.handle(Eth{} / first4) == sent(tunnelled(backend4, first4)));
  const auto first6 =
      error6(quote(Ip6{.src = vip6, .dst = client6} / Fragment6{.more = true} / from_service, 56));
  CHECK(lb.handle(Eth{} / first6) == sent(tunnelled(backend6, first6)));

  const auto later4 = error4(quote(
      Ip4{.src = vip4, .dst = client4, .df = false, .fragment_offset = 185} / from_service, 28));
  CHECK(lb.handle(Eth{} / later4) == dropped(DropReason::icmp_bad_quote));
  const auto later6 =
      error6(quote(Ip6{.src = vip6, .dst = client6} / Fragment6{.offset = 185} / from_service, 56));
  CHECK(lb.handle(Eth{} / later6) == dropped(DropReason::icmp_bad_quote));
}

TEST_CASE("a quote that the VIP did not send is dropped") {
  LbUnderTest lb{web()};
  const auto by_another4 =
      error4(quote(Ip4{.src = "203.0.113.11", .dst = client4} / Tcp{.sport = 80}));
  const auto by_another6 =
      error6(quote(Ip6{.src = "2001:db8::11", .dst = client6} / Tcp{.sport = 80}));
  CHECK(lb.handle(Eth{} / by_another4) == dropped(DropReason::icmp_bad_quote));
  CHECK(lb.handle(Eth{} / by_another6) == dropped(DropReason::icmp_bad_quote));
  // Turned around it would be a client's packet, which no router between VIP and client quotes.
  const auto not_turned = error4(quote(Ip4{} / Tcp{.sport = kClientPort, .dport = 80}));
  CHECK(lb.handle(Eth{} / not_turned) == dropped(DropReason::icmp_bad_quote));
}

TEST_CASE("a quote of the other family, of ICMP or of a tunnel names no flow") {
  LbUnderTest lb{web()};
  CHECK(lb.handle(Eth{} / error4(answer6())) == dropped(DropReason::icmp_bad_quote));
  CHECK(lb.handle(Eth{} / error6(answer4())) == dropped(DropReason::icmp_bad_quote));
  const auto pong = Ip4{.src = vip4, .dst = client4} / Icmp{.type = 0};
  CHECK(lb.handle(Eth{} / error4(pong)) == dropped(DropReason::icmp_bad_quote));
  const auto tunnel = Ip4{.src = vip4, .dst = client4} / answer4();
  CHECK(lb.handle(Eth{} / error4(tunnel)) == dropped(DropReason::icmp_bad_quote));
  const auto encrypted = Ip6{.src = vip6, .dst = client6, .next_header = 50} / payload(40);
  CHECK(lb.handle(Eth{} / error6(encrypted)) == dropped(DropReason::icmp_bad_quote));
}

TEST_CASE("a quote about a port that is no service of ours is dropped under its own reason") {
  LbUnderTest lb{web()};
  const auto other_port = error4(quote(Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 81}, 28));
  CHECK(lb.handle(Eth{} / other_port) == dropped(DropReason::icmp_unknown_service));
  const auto other_protocol =
      error4(quote(Ip4{.src = vip4, .dst = client4} / Udp{.sport = 80}, 28));
  CHECK(lb.handle(Eth{} / other_protocol) == dropped(DropReason::icmp_unknown_service));
}

TEST_CASE("an ICMPv6 message inside IPv4 is no ICMP, and the other way round") {
  LbUnderTest lb{web()};
  const auto v6_in_v4 = Ip4{.src = router4, .dst = vip4} / Icmp6{.type = 2} / answer6();
  const auto v4_in_v6 = Ip6{.src = router6, .dst = vip6} / Icmp{.type = 3} / answer4();
  CHECK(lb.handle(Eth{} / v6_in_v4) == dropped(DropReason::unknown_protocol));
  CHECK(lb.handle(Eth{} / v4_in_v6) == dropped(DropReason::unknown_protocol));
}

TEST_CASE("relayed ICMP errors are limited to their rate, with a burst of one second") {
  LbUnderTest lb({web()}, {.icmp_relay_rate = 100});
  const auto error = Eth{} / error4(quote(answer4(), 28));
  const auto relayed = [&](int sent_in) {
    int count = 0;
    for (int i = 0; i < sent_in; ++i) {
      const Handled handled = lb.handle(error);
      if (handled.kind == Handled::Kind::sent)
        ++count;
      else
        REQUIRE(handled == dropped(DropReason::icmp_rate_limited));
    }
    return count;
  };
  CHECK(relayed(300) == 100);
  lb.pass(std::chrono::milliseconds(100));
  CHECK(relayed(300) == 10);
  lb.pass(std::chrono::hours(10));
  CHECK(relayed(300) == 100);
}

TEST_CASE(
    "a flood of ICMP errors that would not be relayed anyway leaves the rate to the real ones") {
  LbUnderTest lb({web()}, {.icmp_relay_rate = 10});
  for (int i = 0; i < 1000; ++i) {
    CHECK(lb.handle(Eth{} / error4(quote(answer4(), 20))).kind == Handled::Kind::dropped);
    CHECK(lb.handle(Eth{} / error4(quote(Ip4{.src = vip4, .dst = client4} / Tcp{.sport = 81})))
              .kind == Handled::Kind::dropped);
  }
  CHECK(lb.handle(Eth{} / error4(quote(answer4(), 28))).kind == Handled::Kind::sent);
}

TEST_CASE("an ICMP error does not become an entry of the flow table") {
  LbUnderTest lb{web()};
  for (std::uint16_t port = 1; port < 100; ++port)
    CHECK(lb.handle(Eth{} / error4(quote(answer4(port), 28))).kind == Handled::Kind::sent);
  CHECK(lb.flows.table_counters().inserted == 0);
}
