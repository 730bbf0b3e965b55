// SPDX-License-Identifier: Apache-2.0
// A flow's life as tables: every state meets every packet, every backend state, young and old.
#include "lb/flow/flow_life.h"

#include <array>
#include <string>
#include <string_view>

#include "tests/catch.h"

namespace holdfast {
namespace {

using S = FlowState;
using E = FlowEvent;
using namespace std::chrono_literals;

constexpr std::array kStates{S::embryonic, S::established, S::closing_fin, S::closing_rst,
                             S::closing_embryonic};
constexpr std::array kEvents{E::syn, E::fin, E::rst, E::payload, E::bare, E::datagram};
constexpr std::array kStandings{Standing::eligible, Standing::leaving, Standing::doubtful,
                                Standing::gone};

constexpr FlowTime kNow = 1000s;  // the start of a period of 10 s

LifeStep meet(FlowLife life, FlowEvent event, Standing standing = Standing::eligible,
              FlowTime idle = FlowTime{0}) {
  return live(life, event, standing, kNow, idle);
}

Service tcp_service() { return Service{.present = true, .protocol = IpProtocol::tcp}; }
Service udp_service() { return Service{.present = true, .protocol = IpProtocol::udp}; }

constexpr std::uint8_t kFin = TcpHeader::kFin;
constexpr std::uint8_t kSyn = TcpHeader::kSyn;
constexpr std::uint8_t kRst = TcpHeader::kRst;
constexpr std::uint8_t kAck = TcpHeader::kAck;

}  // namespace

TEST_CASE("a packet is the kind of event that its strongest flag says") {
  const auto tcp = [](unsigned flags, bool payload) {
    return event_of(PacketKind::tcp, static_cast<std::uint8_t>(flags), payload);
  };
  CHECK(tcp(kSyn, false) == E::syn);
  CHECK(tcp(kSyn | kAck, false) == E::syn);
  CHECK(tcp(kSyn, true) == E::syn);  // TCP Fast Open
  CHECK(tcp(kAck, false) == E::bare);
  CHECK(tcp(kAck, true) == E::payload);
  CHECK(tcp(0, false) == E::bare);
  CHECK(tcp(kFin | kAck, true) == E::fin);
  CHECK(tcp(kRst, false) == E::rst);
  CHECK(tcp(kRst | kFin, false) == E::rst);
  CHECK(tcp(kSyn | kFin, false) == E::fin);  // nonsense must never insert
  CHECK(tcp(kSyn | kRst, false) == E::rst);
  CHECK(event_of(PacketKind::udp, kSyn, true) == E::datagram);
}

TEST_CASE("the short way for flows that go on never decides otherwise than the whole table") {
  for (const PacketKind kind : {PacketKind::tcp, PacketKind::udp}) {
    for (unsigned flags = 0; flags < 256; ++flags) {
      for (const bool payload : {false, true}) {
        const auto tcp_flags = static_cast<std::uint8_t>(kind == PacketKind::udp ? 0 : flags);
        if (!only_continues(kind, tcp_flags)) continue;
        const FlowEvent event = event_of(kind, tcp_flags, payload);
        CHECK((event == E::payload || event == E::bare || event == E::datagram));
        for (const S state : kStates)
          for (const std::uint8_t proven : {std::uint8_t{0}, std::uint8_t{1}, FlowLife::kProven})
            for (const FlowTime idle : {FlowTime{0}, FlowTime{39}, FlowTime{40}, FlowTime{41}}) {
              const FlowLife life{state, proven};
              if (!stays_established(life, kNow, idle)) continue;
              CHECK(live(life, event, Standing::eligible, kNow, idle) == LifeStep{.next = life});
            }
      }
    }
  }
}

TEST_CASE("what a packet makes of an entry whose backend keeps it") {
  struct Row {
    FlowState state;
    FlowEvent event;
    FlowState next;
  };
  constexpr std::array kRows{
      Row{S::embryonic, E::syn, S::embryonic},  // a retransmit
      Row{S::embryonic, E::fin, S::closing_fin},
      Row{S::embryonic, E::rst, S::closing_embryonic},
      Row{S::embryonic, E::payload, S::established},
      Row{S::embryonic, E::bare, S::established},
      Row{S::embryonic, E::datagram, S::established},
      Row{S::established, E::syn, S::established},
      Row{S::established, E::fin, S::closing_fin},
      Row{S::established, E::rst, S::closing_rst},
      Row{S::established, E::payload, S::established},
      Row{S::established, E::bare, S::established},
      Row{S::established, E::datagram, S::established},
      Row{S::closing_fin, E::syn, S::closing_embryonic},  // the port is used again
      Row{S::closing_fin, E::fin, S::closing_fin},
      Row{S::closing_fin, E::rst, S::closing_fin},
      Row{S::closing_fin, E::payload, S::established},
      Row{S::closing_fin, E::bare, S::closing_fin},  // a half-closed client's ACK
      Row{S::closing_fin, E::datagram, S::established},
      Row{S::closing_rst, E::syn, S::closing_embryonic},
      Row{S::closing_rst, E::fin, S::closing_fin},
      Row{S::closing_rst, E::rst, S::closing_rst},
      Row{S::closing_rst, E::payload, S::established},
      Row{S::closing_rst, E::bare, S::established},
      Row{S::closing_rst, E::datagram, S::established},
      Row{S::closing_embryonic, E::syn, S::closing_embryonic},
      Row{S::closing_embryonic, E::fin, S::closing_fin},
      Row{S::closing_embryonic, E::rst, S::closing_embryonic},
      Row{S::closing_embryonic, E::payload, S::established},
      Row{S::closing_embryonic, E::bare, S::established},
      Row{S::closing_embryonic, E::datagram, S::established},
  };
  static_assert(kRows.size() == kStates.size() * kEvents.size());
  for (const Row& row : kRows) {
    CAPTURE(int(row.state), int(row.event));
    const LifeStep step = meet({row.state, 0}, row.event);
    CHECK_FALSE(step.anew);
    CHECK(step.next.state == row.next);
    CHECK(step.refresh);
  }
}

TEST_CASE("a packet that is no SYN is placed anew exactly when its backend no longer keeps it") {
  for (const S state : kStates)
    for (const E event : kEvents)
      for (const Standing standing : kStandings)
        for (const FlowTime idle : {FlowTime{0}, FlowTime{2h}}) {
          if (event == E::syn) continue;
          CAPTURE(int(state), int(event), int(standing), idle.count());
          CHECK(meet({state, 0}, event, standing, idle).anew == (standing == Standing::gone));
        }
}

TEST_CASE("a SYN meets an entry: same backend or anew") {
  struct Row {
    FlowState state;
    Standing standing;
    bool anew_when_recent;
    bool anew_when_silent;  // no packet for 60 s
  };
  constexpr std::array kRows{
      Row{S::embryonic, Standing::eligible, false, false},
      Row{S::embryonic, Standing::leaving, false, false},
      Row{S::embryonic, Standing::doubtful, true, true},
      Row{S::embryonic, Standing::gone, true, true},
      Row{S::established, Standing::eligible, false, false},
      Row{S::established, Standing::leaving, false, true},
      Row{S::established, Standing::doubtful, false, true},
      Row{S::established, Standing::gone, true, true},
      Row{S::closing_fin, Standing::eligible, false, false},
      Row{S::closing_fin, Standing::leaving, true, true},
      Row{S::closing_fin, Standing::doubtful, true, true},
      Row{S::closing_fin, Standing::gone, true, true},
      Row{S::closing_rst, Standing::eligible, false, false},
      Row{S::closing_rst, Standing::leaving, true, true},
      Row{S::closing_rst, Standing::doubtful, true, true},
      Row{S::closing_rst, Standing::gone, true, true},
      Row{S::closing_embryonic, Standing::eligible, false, false},
      Row{S::closing_embryonic, Standing::leaving, true, true},
      Row{S::closing_embryonic, Standing::doubtful, true, true},
      Row{S::closing_embryonic, Standing::gone, true, true},
  };
  static_assert(kRows.size() == kStates.size() * kStandings.size());
  for (const Row& row : kRows) {
    CAPTURE(int(row.state), int(row.standing));
    CHECK(meet({row.state, 0}, E::syn, row.standing, FlowTime{59s}).anew == row.anew_when_recent);
    CHECK(meet({row.state, 0}, E::syn, row.standing, FlowTime{60s}).anew == row.anew_when_silent);
  }
}

TEST_CASE("a SYN that stays never lowers an entry's rank") {
  const Service service = tcp_service();
  for (const S state : kStates)
    for (std::uint8_t proven = 0; proven <= FlowLife::kProven; ++proven)
      for (const Standing standing : kStandings) {
        const FlowLife life{state, proven};
        const LifeStep step = meet(life, E::syn, standing);
        if (step.anew) continue;
        CAPTURE(int(state), int(proven), int(standing));
        CHECK(rank_of(step.next, FlowTime{0}, service) >= rank_of(life, FlowTime{0}, service));
      }
}

TEST_CASE("a SYN on an established flow whose backend takes no new flows is no activity") {
  CHECK(meet({S::established, 2}, E::syn, Standing::eligible).refresh);
  CHECK_FALSE(meet({S::established, 2}, E::syn, Standing::leaving).refresh);
  CHECK_FALSE(meet({S::established, 2}, E::syn, Standing::doubtful).refresh);
}

TEST_CASE("a SYN on a closing flow begins a new connection, nothing else does") {
  for (const S state : kStates)
    for (const E event : kEvents) {
      CAPTURE(int(state), int(event));
      const bool closing = FlowLife{state, 0}.closing();
      CHECK(meet({state, 0}, event).restart == (closing && event == E::syn));
    }
}

TEST_CASE("a spoofed RST or FIN is taken back by the next packet that only a live client sends") {
  const FlowLife proven{S::established, FlowLife::kProven};
  SECTION("RST, then an ACK") {
    const FlowLife closing = meet(proven, E::rst).next;
    CHECK(closing == FlowLife{S::closing_rst, FlowLife::kProven});
    CHECK(meet(closing, E::bare).next == proven);
  }
  SECTION("FIN, then a payload") {
    const FlowLife closing = meet(proven, E::fin).next;
    CHECK(closing == FlowLife{S::closing_fin, FlowLife::kProven});
    CHECK(meet(closing, E::payload).next == proven);
  }
  SECTION("RST, then SYN, then an ACK") {
    const FlowLife closing = meet(meet(proven, E::rst).next, E::syn).next;
    CHECK(meet(closing, E::bare).next == proven);
  }
}

TEST_CASE("a flow is proven by activity in two further periods of 10 s") {
  FlowLife life{S::embryonic, 0};
  FlowTime last{};
  const auto packet = [&](FlowTime at) {
    life = live(life, E::payload, Standing::eligible, at, at - last).next;
    last = at;
    return life.proven;
  };
  last = 100s;
  CHECK(packet(101s) == 0);  // established
  CHECK(life.state == S::established);
  CHECK(packet(109s) == 0);
  CHECK(packet(110s) == 1);
  CHECK(packet(119s) == 1);
  CHECK(packet(120s) == 2);
  CHECK(packet(200s) == 2);
}

TEST_CASE("UDP: the second packet makes a flow established, later periods prove it") {
  const LifeStep second = meet({S::embryonic, 0}, E::datagram);
  CHECK(second.next == FlowLife{S::established, 0});
  CHECK(meet(second.next, E::datagram, Standing::eligible, 10s).next.proven == 1);
}

TEST_CASE("lifetimes are the service's, and UDP has one for all states") {
  Service tcp = tcp_service();
  CHECK(lifetime(S::embryonic, tcp) == 20s);
  CHECK(lifetime(S::established, tcp) == 2h + 5min);
  CHECK(lifetime(S::closing_fin, tcp) == 60s);
  CHECK(lifetime(S::closing_rst, tcp) == 60s);
  CHECK(lifetime(S::closing_embryonic, tcp) == 60s);
  for (const S state : kStates) CHECK(lifetime(state, udp_service()) == 120s);

  tcp.timeouts.established = 120h;
  CHECK_FALSE(is_expired(S::established, FlowTime{120h} - FlowTime{1}, tcp));
  CHECK(is_expired(S::established, FlowTime{120h}, tcp));
}

TEST_CASE("ranks: expired < embryonic < stale < closing < established < proven") {
  const Service service = tcp_service();
  const auto rank = [&](S state, std::uint8_t proven, FlowTime idle) {
    return rank_of({state, proven}, idle, service);
  };
  CHECK(rank(S::embryonic, 0, 20s) == FlowRank::expired);
  CHECK(rank(S::embryonic, 0, 19s) == FlowRank::embryonic);
  CHECK(rank(S::established, 0, 60s) == FlowRank::stale);
  CHECK(rank(S::established, 1, 60s) == FlowRank::stale);
  CHECK(rank(S::established, 1, 59s) == FlowRank::established);
  CHECK(rank(S::closing_fin, 2, 0s) == FlowRank::closing);
  CHECK(rank(S::closing_rst, 0, 59s) == FlowRank::closing);
  CHECK(rank(S::closing_embryonic, 2, 0s) == FlowRank::closing);
  CHECK(rank(S::closing_rst, 0, 60s) == FlowRank::expired);
  CHECK(rank(S::established, 2, 2h) == FlowRank::proven);
  CHECK(rank(S::established, 2, 2h + 5min) == FlowRank::expired);
  CHECK(FlowRank::expired < FlowRank::embryonic);
  CHECK(FlowRank::embryonic < FlowRank::stale);
  CHECK(FlowRank::stale < FlowRank::closing);
  CHECK(FlowRank::closing < FlowRank::established);
  CHECK(FlowRank::established < FlowRank::proven);
}

TEST_CASE("what each backend state means for a placed flow") {
  using B = BackendState;
  struct Row {
    BackendState state;
    Standing if_kept;
  };
  constexpr std::array kRows{
      Row{B::weight_zero, Standing::leaving},    Row{B::draining, Standing::leaving},
      Row{B::down, Standing::doubtful},          Row{B::neigh_unresolved, Standing::doubtful},
      Row{B::next_hop_lost, Standing::doubtful}, Row{B::path_too_small, Standing::doubtful},
      Row{B::unchecked, Standing::doubtful},
  };
  for (const Row& row : kRows) {
    CAPTURE(name_of(row.state));
    const Backend keeps_tcp{.state = row.state, .present = true, .keeps_tcp = true};
    CHECK(standing_of(&keeps_tcp, tcp_service()) == row.if_kept);
    CHECK(standing_of(&keeps_tcp, udp_service()) == Standing::gone);
    const Backend keeps_udp{.state = row.state, .present = true, .keeps_udp = true};
    CHECK(standing_of(&keeps_udp, tcp_service()) == Standing::gone);
    CHECK(standing_of(&keeps_udp, udp_service()) == row.if_kept);
  }
  CHECK(standing_of(nullptr, tcp_service()) == Standing::gone);
  const Backend eligible{.state = B::eligible, .present = true};
  CHECK(standing_of(&eligible, tcp_service()) == Standing::eligible);
}

TEST_CASE("a backend outside the service's present pool keeps its flows and gets no new ones") {
  Service service = tcp_service();
  service.pool = PoolNumber{1};
  const Backend eligible{.pool = PoolNumber{0}, .state = BackendState::eligible, .present = true};
  CHECK(standing_of(&eligible, service) == Standing::leaving);
}

TEST_CASE("udp_on_drain = repick moves UDP flows from a draining backend only") {
  Service service = udp_service();
  service.udp_repick_on_drain = true;
  Backend backend{.state = BackendState::draining, .present = true, .keeps_udp = true};
  CHECK(standing_of(&backend, service) == Standing::gone);
  backend.state = BackendState::weight_zero;
  CHECK(standing_of(&backend, service) == Standing::leaving);
}

}  // namespace holdfast
