// SPDX-License-Identifier: Apache-2.0
// Fragments at one worker: all of a datagram go where its flow goes, in whatever order they come.
#include <algorithm>
#include <array>

#include "tests/pipeline/fragments.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

Client any_family() { return {.family = GENERATE(Family::ipv4, Family::ipv6)}; }

/// The n-th fragment of a datagram that could be endless: 80 bytes each.
Packet nth(const Client& client, unsigned n, bool more = true) {
  const auto offset = static_cast<std::uint16_t>(10 * n);
  const Packet bytes = n == 0 ? Udp{.sport = client.port} / payload(72) : Packet(payload(80));
  if (client.family == Family::ipv4)
    return Eth{} /
           Ip4{.id = 7,
               .df = false,
               .more_fragments = more,
               .fragment_offset = offset,
               .protocol = 17} /
           bytes;
  return Eth{} / Ip6{} / Fragment6{.offset = offset, .more = more, .id = 7, .next_header = 17} /
         bytes;
}

}  // namespace

TEST_CASE("the fragments of a datagram go where its client's whole packets go") {
  LbUnderTest lb(both_services(), {});
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (std::uint16_t port = 1000; port < 1030; ++port) {
      const Client client{family, port};
      const Ip backend = goes_to(lb, client.whole(100));
      for (const Packet& piece : client.pieces())
        CHECK(lb.handle(piece) == sent(tunnelled(piece, backend)));
    }
  }
}

TEST_CASE("fragments come in any order, and none is lost") {
  const Client client = any_family();
  const auto pieces = client.pieces(3000);
  REQUIRE(pieces.size() == 4);
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  std::uint16_t port = 1000;
  do {
    LbUnderTest lb(both_services(), {});
    const Ip backend = goes_to(lb, client.whole(100));
    bool first_came = false;
    std::vector<Handled> sent_ones;
    for (const std::size_t i : order) {
      first_came |= i == 0;
      const Handled handled = lb.handle(pieces[i]);
      CHECK(handled.kind == (first_came ? Handled::Kind::sent : Handled::Kind::held));
      if (first_came) sent_ones.push_back(handled);
      // Held ones follow their first one at once.
      for (Handled& released : lb.take_released()) sent_ones.push_back(std::move(released));
      CHECK(lb.counters().held_now == (first_came ? 0 : lb.counters().received - 1));
    }
    REQUIRE(sent_ones.size() == 4);
    check_all_went_to(backend, sent_ones);
    for (const Packet& piece : pieces)
      CHECK(std::ranges::count(sent_ones, tunnelled(piece, backend).bytes(), &Handled::frame) == 1);
    CHECK(lb.counters().received == 5);
    ++port;
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("a first fragment teaches those that came before it in the same burst") {
  LbUnderTest lb(both_services(), {});
  const Client client = any_family();
  auto pieces = client.pieces();
  std::ranges::reverse(pieces);
  const auto all = lb.handle_all(pieces);
  check_all_went_to(goes_to(lb, client.whole(100)), all);
  CHECK(lb.counters().held_now == 0);
}

TEST_CASE("held fragments leave behind their first one, in the order in which they came") {
  LbUnderTest lb(both_services(), {});
  const Client client = any_family();
  const auto pieces = client.pieces(3000);
  CHECK(lb.handle(pieces[2]) == held());
  CHECK(lb.handle(pieces[3]) == held());
  CHECK(lb.handle(pieces[1]) == held());
  const Handled first = lb.handle(pieces[0]);
  const Ip backend = destination(first);
  const auto released = lb.take_released();
  REQUIRE(released.size() == 3);
  CHECK(released[0] == sent(tunnelled(pieces[2], backend)));
  CHECK(released[1] == sent(tunnelled(pieces[3], backend)));
  CHECK(released[2] == sent(tunnelled(pieces[1], backend)));
}

TEST_CASE("datagrams of many clients, interleaved and shuffled, stay whole") {
  LbUnderTest lb(both_services(), {});
  std::vector<Packet> shuffled;
  std::vector<Ip> homes;
  for (std::uint16_t i = 0; i < 60; ++i) {
    const Client client{i % 2 == 0 ? Family::ipv4 : Family::ipv6,
                        static_cast<std::uint16_t>(1000 + i)};
    const Ip home = goes_to(lb, client.whole(100));
    for (const Packet& piece : client.pieces(2000, static_cast<std::uint16_t>(i))) {
      shuffled.push_back(piece);
      homes.push_back(home);
    }
  }
  // Each third one, from some place on, round and round: no datagram stays together.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shuffled.size(); ++i) order.push_back(i * 77 % shuffled.size());
  std::vector<Packet> packets;
  packets.reserve(order.size());
  for (const std::size_t i : order) packets.push_back(shuffled[i]);
  const auto all = lb.handle_all(packets);
  for (std::size_t k = 0; k < all.size(); ++k)
    CHECK(all[k] == sent(tunnelled(packets[k], homes[order[k]])));
  CHECK(lb.counters().held_now == 0);
}

TEST_CASE("a fragment whose first one does not come within a second is dropped") {
  LbUnderTest lb(both_services(), {});
  const Client client = any_family();
  CHECK(lb.handle(client.pieces()[1]) == held());
  lb.pass(999ms);
  lb.idle();
  CHECK(lb.take_released().empty());
  lb.pass(1ms);
  lb.idle();
  CHECK(lb.take_released() == std::vector{dropped(reasons_of(client).no_first)});
  CHECK(lb.counters().held_now == 0);
  CHECK(lb.counters().received == 1);
}

TEST_CASE("fragments follow a flow that only the flow table knows") {
  LbUnderTest lb(both_services(), {});
  Client client = any_family();
  while (goes_to(lb, client.whole(100)) != kB2) ++client.port;
  static_cast<void>(lb.handle(client.whole(100)));
  lb.service(1).backends[1].state = BackendState::draining;
  lb.publish();
  check_all_went_to(kB2, lb.handle_all(client.pieces()));
}

TEST_CASE("the fragments of a new flow follow each other though it is not recorded") {
  auto services = both_services();
  services[1].settings.max_share = 0;
  LbUnderTest lb(services, {});
  for (std::uint16_t port = 1000; port < 1020; ++port) {
    const Client client{Family::ipv4, port};
    const Ip backend = goes_to(lb, client.whole(100));
    check_all_went_to(backend, lb.handle_all(client.pieces()));
  }
  CHECK(lb.flows.table_counters().inserted == 0);
}

TEST_CASE("a later fragment keeps no flow alive and records none") {
  LbUnderTest lb(both_services(), {});
  const auto pieces = Client{}.pieces();
  CHECK(lb.handle(pieces[0]).kind == Handled::Kind::sent);
  const auto before = lb.flows.table_counters();
  CHECK(lb.handle(pieces[1]).kind == Handled::Kind::sent);
  CHECK(lb.handle(pieces[2]).kind == Handled::Kind::sent);
  const auto after = lb.flows.table_counters();
  CHECK(after.inserted == before.inserted);
  CHECK(after.embryonic == 1);  // two packets of the flow would have made it established
  CHECK(after.hits == before.hits);
}

TEST_CASE("fragments of TCP go on, too") {
  LbUnderTest lb(both_services(), {});
  for (const bool v4 : {true, false}) {
    const Packet segment = Tcp{.flags = Ack | Psh} / payload(2000);
    const Packet whole = v4 ? Eth{} / Ip4{.df = false} / segment : Eth{} / Ip6{} / segment;
    const auto all = lb.handle_all(fragments_of(whole, 800));
    check_all_went_to(destination(all[0]), all);
  }
}

TEST_CASE("fragments with tags, options and extension headers go on as they are") {
  LbUnderTest lb(both_services(), {});
  const Packet rest = payload(800);
  const Packet fragments[] = {
      Eth{} / Vlan{.id = 5} / Ip4{.id = 3, .df = false, .more_fragments = true} / Udp{} /
          payload(72),
      Eth{} /
          Ip4{.id = 3,
              .df = false,
              .fragment_offset = 10,
              .options = {7, 3, 4, 0},
              .protocol = 17} /
          rest,
      Eth{} / Ip6{} / HopByHop{} / Fragment6{.more = true, .id = 9} / DestinationOptions{} / Udp{} /
          payload(64),
      (Eth{} / Ip6{} / HopByHop{} / Fragment6{.offset = 10, .id = 9, .next_header = 60} /
       Packet(payload(1)))
          .padded_to(80),
  };
  for (int i = 0; i < 2; ++i) {
    const Ip backend = destination(lb.handle(fragments[2 * i]));
    const Handled later = lb.handle(fragments[2 * i + 1]);
    CHECK(destination(later) == backend);
  }
}

TEST_CASE("datagrams that differ in number, source or protocol are different ones") {
  LbUnderTest lb(both_services(), {});
  const auto later = [](Ip4 ip) {
    ip.df = false;
    ip.fragment_offset = 100;
    return Eth{} / ip / payload(100);
  };
  CHECK(lb.handle(Client{}.pieces()[0]).kind == Handled::Kind::sent);
  CHECK(lb.handle(later({.id = 8, .protocol = 17})) == held());
  CHECK(lb.handle(later({.src = "198.51.100.8", .id = 7, .protocol = 17})) == held());
  CHECK(lb.handle(later({.id = 7, .protocol = 6})) == held());
  CHECK(lb.handle(later({.id = 7, .protocol = 17})).kind == Handled::Kind::sent);

  // IPv6 has one number for all protocols (RFC 8200 4.5): the first one's next header counts.
  CHECK(lb.handle(Client{Family::ipv6}.pieces()[0]).kind == Handled::Kind::sent);
  CHECK(lb.handle(Eth{} / Ip6{} / Fragment6{.offset = 100, .id = 7, .next_header = 6} / payload(8))
            .kind == Handled::Kind::sent);
  CHECK(lb.handle(Eth{} / Ip6{} / Fragment6{.offset = 200, .id = 0x10007, .next_header = 17} /
                  payload(8)) == held());
}

TEST_CASE("overlapping fragments are dropped, and all else of their datagram") {
  LbUnderTest lb(both_services(), {});
  const Client client = any_family();
  const auto overlap = dropped(reasons_of(client).overlap);
  CHECK(lb.handle(nth(client, 2)) == held());
  CHECK(lb.handle(nth(client, 0)).kind == Handled::Kind::sent);
  CHECK(lb.take_released().size() == 1);
  auto layers = nth(client, 1).layers();
  layers.back() = payload(88);  // eight bytes of the next one
  CHECK(lb.handle(Packet(layers)) == overlap);
  CHECK(lb.handle(nth(client, 1)) == overlap);
  CHECK(lb.handle(nth(client, 3, false)) == overlap);
  lb.pass(1s);
  CHECK(lb.handle(nth(client, 0)).kind == Handled::Kind::sent);
}

TEST_CASE("an overlapping fragment of TCP flags (RFC 3128) does not reach the backend") {
  LbUnderTest lb(both_services(), {});
  const Packet first =
      Eth{} / Ip4{.id = 7, .df = false, .more_fragments = true} / Tcp{.flags = Ack} / payload(4);
  const Packet second =
      Eth{} / Ip4{.id = 7, .df = false, .fragment_offset = 1, .protocol = 6} / payload(16);
  CHECK(lb.handle(first).kind == Handled::Kind::sent);
  CHECK(lb.handle(second) == dropped(DropReason::ipv4_fragment_tiny));
}

TEST_CASE("the others of a tiny first fragment share its fate (RFC 1858)") {
  LbUnderTest lb(both_services(), {});
  for (const bool v4 : {true, false}) {
    const auto tiny = dropped(v4 ? DropReason::ipv4_fragment_tiny : DropReason::ipv6_fragment_tiny);
    const Packet segment = Tcp{.flags = Syn} / payload(100);
    const Packet whole = v4 ? Eth{} / Ip4{.df = false} / segment : Eth{} / Ip6{} / segment;
    const auto pieces = fragments_of(whole, 16);
    CHECK(lb.handle(pieces[3]) == held());
    CHECK(lb.handle(pieces[0]) == tiny);
    CHECK(lb.take_released() == std::vector{tiny});
    CHECK(lb.handle(pieces[2]) == tiny);
  }
}

TEST_CASE("the others of a first fragment without all its headers share its fate (RFC 7112)") {
  LbUnderTest lb(both_services(), {});
  // Its destination options would be 16 bytes long.
  const Packet cut = Eth{} / Ip6{} / Fragment6{.more = true, .id = 7, .next_header = 60} /
                     Raw{{17, 1, 1, 4, 0, 0, 0, 0}};
  CHECK(lb.handle(cut) == dropped(DropReason::ipv6_fragment_tiny));
  const auto pieces = Client{Family::ipv6}.pieces();
  CHECK(lb.handle(pieces[1]) == dropped(DropReason::ipv6_fragment_tiny));
  CHECK(lb.counters().held_now == 0);
}

TEST_CASE("a fragment in several buffers, which would count as one, is not held") {
  LbUnderTest lb(both_services(), {});
  const Client client{GENERATE(Family::ipv4, Family::ipv6)};
  const auto pieces = fragments_of(client.whole(9000), 4800, 7);
  const MbufShape two_buffers{.first_segment = 2000};
  CHECK(lb.handle(pieces[1], two_buffers) == dropped(reasons_of(client).no_room));
  CHECK(lb.counters().held_now == 0);
}

TEST_CASE("a fragment that the network delivers twice is dropped once, and the rest arrives") {
  LbUnderTest lb(both_services(), {});
  const Client client = any_family();
  std::vector<Packet> twice;
  for (const Packet& piece : client.pieces()) twice.insert(twice.end(), {piece, piece});
  const auto all = lb.handle_all(twice);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    CHECK(all[i].kind == Handled::Kind::sent);
    CHECK(all[i + 1] == dropped(reasons_of(client).overlap));
  }
}

TEST_CASE("a datagram of more than 16 fragments is dropped") {
  LbUnderTest lb(both_services(), {});
  const Client client = any_family();
  for (unsigned n = 0; n < 16; ++n) CHECK(lb.handle(nth(client, n)).kind == Handled::Kind::sent);
  CHECK(lb.handle(nth(client, 16)) == dropped(reasons_of(client).too_many));
  CHECK(lb.handle(nth(client, 17, false)) == dropped(reasons_of(client).too_many));
}

TEST_CASE("no more fragments are held than the worker may hold") {
  LbUnderTest lb(both_services(), {.flows = {.capacity = 1000, .most_held = 10}});
  const Client client = any_family();
  for (unsigned n = 1; n <= 10; ++n) CHECK(lb.handle(nth(client, n)) == held());
  CHECK(lb.handle(nth(client, 11)) == dropped(reasons_of(client).no_room));
  CHECK(lb.counters().held_now == 10);
  CHECK(lb.handle(nth(client, 0)).kind == Handled::Kind::sent);
  CHECK(lb.take_released().size() == 10);
}

TEST_CASE("many that are released at once go over several polls") {
  LbUnderTest lb(both_services(), {});
  for (std::uint16_t i = 0; i < 300; ++i)
    CHECK(lb.handle(Client{Family::ipv4, i}.pieces(2000, i)[1]) == held());
  lb.pass(1s);
  std::size_t released = 0;
  for (int polls = 0; polls < 20; ++polls) {
    lb.idle();
    const auto some = lb.take_released().size();
    CHECK(some <= Worker::kReleasedBursts * Burst::kCapacity);
    released += some;
  }
  CHECK(released == 300);
}

TEST_CASE("a fragmented ping is dropped whole") {
  LbUnderTest lb(both_services(), {});
  for (const bool v4 : {true, false}) {
    const Packet whole = v4 ? Eth{} / Ip4{.df = false} / Icmp{.type = 8} / payload(2000)
                            : Eth{} / Ip6{} / Icmp6{.type = 128} / payload(2000);
    auto pieces = fragments_of(whole, 800);
    for (const std::size_t i : {2u, 0u, 1u})
      CHECK(lb.handle(pieces.at(i)) == dropped(DropReason::icmp_not_routed));
  }
}

TEST_CASE("fragments to a port without a service are dropped like whole packets") {
  LbUnderTest lb(both_services(), {});
  const Packet whole = Eth{} / Ip4{.df = false} / Udp{.dport = 444} / payload(2000);
  for (const Handled& handled : lb.handle_all(fragments_of(whole, 800)))
    CHECK(handled == dropped(DropReason::unknown_port));
}

TEST_CASE("fragments that are for no VIP are given to the kernel and not held") {
  LbUnderTest lb(both_services(), {});
  for (const Packet& whole :
       {Eth{} / Ip4{.dst = "203.0.113.99", .df = false} / Udp{} / payload(2000),
        Eth{} / Ip6{.dst = "2001:db8::99"} / Udp{} / payload(2000)}) {
    auto pieces = fragments_of(whole, 800);
    std::ranges::reverse(pieces);
    for (const Packet& piece : pieces) CHECK(lb.handle(piece) == to_kernel(piece));
  }
}

TEST_CASE("fragments that are held when their VIP goes away are dropped in time") {
  LbUnderTest lb(both_services(), {});
  const auto pieces = Client{}.pieces();
  CHECK(lb.handle(pieces[1]) == held());
  for (std::size_t i = 0; i < 2; ++i) lb.service(i).vips = {Ip("203.0.113.11")};
  lb.publish();
  CHECK(lb.handle(pieces[0]) == to_kernel(pieces[0]));
  lb.pass(1s);
  lb.idle();
  CHECK(lb.take_released() == std::vector{dropped(DropReason::ipv4_fragment_no_first)});
}

TEST_CASE("fragments that a full port refuses are dropped for it") {
  LbUnderTest lb(both_services(), {});
  const auto pieces = Client{}.pieces();
  CHECK(lb.handle(pieces[1]) == held());
  lb.io.transmit_room[PortNumber{0}] = 1;
  CHECK(lb.handle(pieces[0]).kind == Handled::Kind::sent);
  CHECK(lb.take_released() == std::vector{dropped(DropReason::tx_full)});
}
