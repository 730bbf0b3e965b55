// SPDX-License-Identifier: Apache-2.0
// What a SYN, a FIN or a RST does to a flow that is known: the rows of "SYN meets", and strangers
// who forge packets of other people's flows.
#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

/// An LB with one client's flow on kB2, which then stops taking new flows. kB1 takes them all.
struct OnDraining {
  LbUnderTest lb{web({kB1, kB2})};
  std::uint16_t client = open_flows_on(lb, kB2, 1).front();

  explicit OnDraining(BackendState state = BackendState::draining) { set_state(lb, kB2, state); }
};

}  // namespace

TEST_CASE("a SYN that nobody knows is placed and recorded") {
  LbUnderTest lb{web({kB1, kB2})};
  const Ip backend = goes_to(lb, syn(1000));
  CHECK(lb.flows.table_counters().embryonic == 1);
  CHECK(lb.counters_of_backend(backend).embryonic == 1);
  CHECK(lb.counters_of_service(0).new_flows == 1);
  CHECK(goes_to(lb, syn(1000)) == backend);  // sent again: no further new flow
  CHECK(lb.counters_of_service(0).new_flows == 1);
  CHECK(goes_to(lb, ack(1000)) == backend);
  CHECK(lb.counters_of_backend(backend).embryonic == 0);
  CHECK(lb.counters_of_backend(backend).active == 1);
}

TEST_CASE("a SYN that is sent again stays while its backend drains") {
  LbUnderTest lb{web({kB1, kB2})};
  std::uint16_t client = 1000;
  while (goes_to(lb, syn(client)) != kB2) ++client;
  const auto before = new_flows(lb, kB2);
  set_state(lb, kB2, BackendState::draining);
  CHECK(goes_to(lb, syn(client)) == kB2);
  CHECK(new_flows(lb, kB2) == before);
}

TEST_CASE("a SYN that is sent again goes elsewhere when its backend is down") {
  LbUnderTest lb{web({kB1, kB2})};
  std::uint16_t client = 1000;
  while (goes_to(lb, syn(client)) != kB2) ++client;
  set_state(lb, kB2, BackendState::down);
  CHECK(goes_to(lb, syn(client)) == kB1);
}

TEST_CASE("a SYN on a closing flow stays with an eligible backend and is a new flow") {
  LbUnderTest lb{web({kB1, kB2})};
  const Ip backend = open_flow(lb, 1000);
  CHECK(goes_to(lb, fin(1000)) == backend);
  const auto before = new_flows(lb, backend);
  CHECK(goes_to(lb, syn(1000)) == backend);
  CHECK(new_flows(lb, backend) == before + 1);
  CHECK(goes_to(lb, ack(1000)) == backend);
  CHECK(lb.counters_of_backend(backend).active == 1);
}

TEST_CASE("a SYN on a closing flow whose backend drains is placed anew") {
  OnDraining at;
  CHECK(goes_to(at.lb, fin(at.client)) == kB2);
  const auto before = new_flows(at.lb, kB2);
  CHECK(goes_to(at.lb, syn(at.client)) == kB1);
  CHECK(goes_to(at.lb, ack(at.client)) == kB1);
  CHECK(new_flows(at.lb, kB2) == before);
}

TEST_CASE("a SYN on an established flow stays with an eligible backend, however long it was idle") {
  LbUnderTest lb{web({kB1, kB2})};
  const Ip backend = open_flow(lb, 1000);
  lb.pass(2h);
  CHECK(goes_to(lb, syn(1000)) == backend);
}

TEST_CASE("one forged SYN does not move a live stream off a backend that takes no new flows") {
  for (const BackendState state :
       {BackendState::draining, BackendState::weight_zero, BackendState::down}) {
    CAPTURE(name_of(state));
    OnDraining at(state);
    at.lb.pass(59s);
    CHECK(goes_to(at.lb, syn(at.client)) == kB2);
    CHECK(goes_to(at.lb, data(at.client)) == kB2);
  }
}

TEST_CASE("a client that uses its port again leaves a backend that takes no new flows") {
  for (const BackendState state :
       {BackendState::draining, BackendState::weight_zero, BackendState::down}) {
    CAPTURE(name_of(state));
    OnDraining at(state);
    const auto before = new_flows(at.lb, kB2);
    at.lb.pass(60s);
    CHECK(goes_to(at.lb, syn(at.client)) == kB1);
    CHECK(goes_to(at.lb, ack(at.client)) == kB1);
    CHECK(new_flows(at.lb, kB2) == before);
  }
}

TEST_CASE("a client that only repeats its SYN is not held on a draining backend for ever") {
  OnDraining at;
  for (int second = 0; second < 60; ++second) {
    CHECK(goes_to(at.lb, syn(at.client)) == kB2);
    at.lb.pass(1s);
  }
  CHECK(goes_to(at.lb, syn(at.client)) == kB1);
}

TEST_CASE("a SYN on a flow whose backend is down past its grace, or removed, is placed anew") {
  OnDraining at(BackendState::down);
  SECTION("past its grace") { at.lb.backend(kB2).keeps_tcp = false; }
  SECTION("removed") { at.lb.backend(kB2).removed = true; }
  at.lb.publish();
  CHECK(goes_to(at.lb, syn(at.client)) == kB1);
}

TEST_CASE("a forged RST or FIN costs a live stream nothing") {
  OnDraining at;
  SECTION("RST, then the stream's next ACK") {
    CHECK(goes_to(at.lb, rst(at.client)) == kB2);
    CHECK(at.lb.counters_of_backend(kB2).closing == 1);
    CHECK(goes_to(at.lb, ack(at.client)) == kB2);
  }
  SECTION("FIN, then the stream's next request") {
    CHECK(goes_to(at.lb, fin(at.client)) == kB2);
    CHECK(goes_to(at.lb, data(at.client)) == kB2);
  }
  SECTION("a storm of both, with SYNs") {
    for (int i = 0; i < 100; ++i)
      for (const Packet& forged : {rst(at.client), fin(at.client), rst(at.client)})
        CHECK(goes_to(at.lb, forged) == kB2);
    CHECK(goes_to(at.lb, data(at.client)) == kB2);
  }
  CHECK(at.lb.counters_of_backend(kB2).active == 1);
  CHECK(at.lb.counters_of_backend(kB2).closing == 0);
  at.lb.pass(2h);  // back to the long timeout
  CHECK(goes_to(at.lb, data(at.client)) == kB2);
}

TEST_CASE("a client that only sends ACKs keeps a flow that a forged FIN made closing") {
  // A long download: the client has nothing to say but ACK.
  OnDraining at;
  CHECK(goes_to(at.lb, fin(at.client)) == kB2);
  for (int i = 0; i < 100; ++i) {
    at.lb.pass(59s);
    CHECK(goes_to(at.lb, ack(at.client)) == kB2);
  }
}

TEST_CASE("a closed flow is forgotten after 60 s of silence") {
  OnDraining at;
  CHECK(goes_to(at.lb, fin(at.client)) == kB2);
  at.lb.pass(59s);
  CHECK(goes_to(at.lb, ack(at.client)) == kB2);
  at.lb.pass(60s);
  CHECK(goes_to(at.lb, ack(at.client)) == kB1);
}
