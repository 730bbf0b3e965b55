// SPDX-License-Identifier: Apache-2.0
// Which flows count as streams, how long each is said to have lasted, and which were lost from
// sight.
#include <array>

#include "tests/pipeline/flows.h"

using namespace holdfast;
using namespace holdfast::dsl;

namespace {

constexpr LbUnderTest::Options kSmall{.flows = {.capacity = 64}};

StreamRecords records(const LbUnderTest& lb, std::uint16_t service = 0) {
  return lb.flows.counts.streams.read(ServiceNumber{service});
}
std::uint64_t ended(const LbUnderTest& lb) { return sum_of(records(lb).lifetimes.ended); }
std::uint64_t censored(const LbUnderTest& lb) { return sum_of(records(lb).lifetimes.censored); }
std::uint64_t ended_after(const LbUnderTest& lb, Quarters duration) {
  return records(lb).lifetimes.ended[duration_bin(duration)];
}
std::uint64_t censored_at(const LbUnderTest& lb, Quarters duration) {
  return records(lb).lifetimes.censored[duration_bin(duration)];
}

/// So much time passes, and then whoever has expired is swept.
void pass_and_sweep(LbUnderTest& lb, std::chrono::seconds duration) {
  lb.pass(duration);
  lb.flows.tend(lb.snapshot(), lb.time, 0);
  lb.flows.table.sweep(lb.snapshot(), lb.flows.now, lb.flows.table.capacity());
}

}  // namespace

TEST_CASE("a stream that ends by FIN after 30 s is counted with 30 s") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  lb.pass(20s);
  CHECK(goes_to(lb, data(1000)) == kB1);
  lb.pass(10s);
  CHECK(goes_to(lb, fin(1000)) == kB1);
  CHECK(ended(lb) == 0);  // a payload could still take it back
  pass_and_sweep(lb, 60s);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 30s) == 1);
  CHECK(censored(lb) == 0);
  CHECK(records(lb).reset == 0);
  CHECK(records(lb).excluded == 0);
}

TEST_CASE("a half-closed stream lasts until its last packet") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  CHECK(goes_to(lb, fin(1000)) == kB1);
  for (int i = 0; i < 4; ++i) {  // the answer still comes: the client acknowledges it
    lb.pass(30s);
    CHECK(goes_to(lb, ack(1000)) == kB1);
  }
  pass_and_sweep(lb, 60s);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 120s) == 1);
}

TEST_CASE("a stream that the client resets is counted as reset") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  lb.pass(7s);
  CHECK(goes_to(lb, rst(1000)) == kB1);
  pass_and_sweep(lb, 60s);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 7s) == 1);
  CHECK(records(lb).reset == 1);
}

TEST_CASE("a RST behind a FIN, or one that the stream's next packet takes back, is no reset") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  SECTION("behind a FIN") {
    CHECK(goes_to(lb, fin(1000)) == kB1);
    CHECK(goes_to(lb, rst(1000)) == kB1);
  }
  SECTION("forged") {
    CHECK(goes_to(lb, rst(1000)) == kB1);
    CHECK(goes_to(lb, data(1000)) == kB1);
    CHECK(goes_to(lb, fin(1000)) == kB1);
  }
  pass_and_sweep(lb, 60s);
  CHECK(ended(lb) == 1);
  CHECK(records(lb).reset == 0);
}

TEST_CASE("a handshake that is not completed is no stream") {
  LbUnderTest lb(web({kB1}), kSmall);
  SECTION("a SYN, and silence") { CHECK(goes_to(lb, syn(1000)) == kB1); }
  SECTION("a scan: SYN, and RST to what is answered") {
    CHECK(goes_to(lb, syn(1000)) == kB1);
    CHECK(goes_to(lb, rst(1000)) == kB1);
  }
  SECTION("again and again from the same port") {
    for (int i = 0; i < 5; ++i) {
      CHECK(goes_to(lb, syn(1000)) == kB1);
      CHECK(goes_to(lb, rst(1000)) == kB1);
    }
  }
  pass_and_sweep(lb, 60s);
  CHECK(lb.flows.table_counters().expired == 1);
  CHECK(ended(lb) + censored(lb) + records(lb).reset + records(lb).excluded == 0);
}

TEST_CASE("a client that uses its port again ends the old stream and begins a new one") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  lb.pass(10s);
  const bool by_rst = GENERATE(false, true);
  CHECK(goes_to(lb, by_rst ? rst(1000) : fin(1000)) == kB1);
  lb.pass(20s);
  CHECK(goes_to(lb, syn(1000)) == kB1);
  CHECK(goes_to(lb, syn(1000)) == kB1);  // sent again
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 10s) == 1);
  CHECK(records(lb).reset == (by_rst ? 1 : 0));
  SECTION("the new one counts from its own SYN") {
    CHECK(goes_to(lb, data(1000)) == kB1);
    lb.pass(5s);
    CHECK(goes_to(lb, fin(1000)) == kB1);
    pass_and_sweep(lb, 60s);
    CHECK(ended(lb) == 2);
    CHECK(ended_after(lb, 5s) == 1);
  }
  SECTION("nothing behind that SYN: there is no new one, and the SYN is no reset") {
    pass_and_sweep(lb, 60s);
    CHECK(lb.flows.table_counters().expired == 1);
    CHECK(ended(lb) == 1);
  }
  CHECK(records(lb).reset == (by_rst ? 1 : 0));
}

TEST_CASE("a SYN that takes a closing flow to another backend ends the old stream") {
  LbUnderTest lb(web({kB1, kB2}), kSmall);
  const auto client = open_flows_on(lb, kB2, 1).front();
  lb.pass(10s);
  CHECK(goes_to(lb, fin(client)) == kB2);
  set_state(lb, kB2, BackendState::draining);
  lb.pass(20s);
  CHECK(goes_to(lb, syn(client)) == kB1);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 10s) == 1);
}

TEST_CASE("a stream that was running before its first packet here is excluded") {
  LbUnderTest lb(web({kB1}), kSmall);
  for (int i = 0; i < 3; ++i) {
    CHECK(goes_to(lb, data(1000)) == kB1);
    lb.pass(10s);
  }
  CHECK(goes_to(lb, fin(1000)) == kB1);
  SECTION("it ends") {
    pass_and_sweep(lb, 60s);
    CHECK(ended(lb) == 0);
  }
  SECTION("its client uses the port again: that stream is seen whole") {
    CHECK(goes_to(lb, syn(1000)) == kB1);
    CHECK(goes_to(lb, data(1000)) == kB1);
    lb.pass(3s);
    CHECK(goes_to(lb, rst(1000)) == kB1);
    pass_and_sweep(lb, 60s);
    CHECK(ended(lb) == 1);
    CHECK(ended_after(lb, 3s) == 1);
    CHECK(records(lb).reset == 1);
  }
  CHECK(records(lb).excluded == 1);
  CHECK(censored(lb) == 0);
}

TEST_CASE("a silent stream ended with its last packet, and is counted when its time is over") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  lb.pass(40s);
  CHECK(goes_to(lb, ack(1000)) == kB1);
  pass_and_sweep(lb, 2h);
  CHECK(ended(lb) == 0);
  pass_and_sweep(lb, 5min);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 40s) == 1);
}

TEST_CASE("an expired stream that a packet finds before the sweep is counted as well") {
  LbUnderTest lb(web({kB1}), {.flows = {.capacity = 10'000}});
  open_flow(lb, 1000);
  lb.pass(9s);
  CHECK(goes_to(lb, fin(1000)) == kB1);
  lb.pass(60s);
  CHECK(goes_to(lb, syn(1000)) == kB1);
  CHECK(ended_after(lb, 9s) == 1);
}

TEST_CASE("a stream that makes room for another is censored at its last packet") {
  LbUnderTest lb(web({kB1}), {.flows = {.capacity = 4}});
  for (std::uint16_t client = 1; client <= 4; ++client) open_flow(lb, client);
  lb.pass(5s);
  CHECK(goes_to(lb, data(1)) == kB1);
  lb.pass(1s);
  for (std::uint16_t client = 2; client <= 4; ++client) CHECK(goes_to(lb, data(client)) == kB1);
  lb.pass(70s);
  CHECK(goes_to(lb, syn(5)) == kB1);
  CHECK(lb.flows.table_counters().evicted_stale == 1);
  CHECK(ended(lb) == 0);
  CHECK(censored(lb) == 1);
  CHECK(censored_at(lb, 5s) == 1);
}

TEST_CASE("a stream whose backend keeps it no longer is censored, and what goes on is excluded") {
  LbUnderTest lb(web({kB1, kB2}), kSmall);
  const auto client = open_flows_on(lb, kB2, 1).front();
  lb.pass(15s);
  CHECK(goes_to(lb, data(client)) == kB2);
  SECTION("removed, and swept before its next packet") {
    lb.backend(kB2).removed = true;
    lb.publish();
    pass_and_sweep(lb, 10s);
    CHECK(censored(lb) == 1);
  }
  SECTION("down past its grace: placed anew") {
    lb.backend(kB2).keeps_tcp = false;
    set_state(lb, kB2, BackendState::down);
    CHECK(goes_to(lb, data(client)) == kB1);
    CHECK(goes_to(lb, data(client)) == kB1);
    CHECK(censored(lb) == 1);
    CHECK(goes_to(lb, rst(client)) == kB1);
    pass_and_sweep(lb, 60s);
    CHECK(records(lb).excluded == 1);
    CHECK(records(lb).reset == 0);
  }
  CHECK(ended(lb) == 0);
  CHECK(censored_at(lb, 15s) == 1);
}

TEST_CASE("a stream that another worker takes over is censored here and excluded there") {
  LbUnderTest one(web({kB1}), kSmall);
  LbUnderTest two(web({kB1}), kSmall);
  const std::array both{&one.flows, &two.flows};
  FlowContext::connect(both);
  open_flow(one, 1000);
  for (LbUnderTest* lb : {&one, &two}) lb->pass(25s);
  CHECK(goes_to(one, data(1000)) == kB1);
  CHECK(goes_to(two, data(1000)) == kB1);
  pass_and_sweep(one, 0s);
  CHECK(one.flows.table_counters().handed_over == 1);
  CHECK(censored(one) == 1);
  CHECK(censored_at(one, 25s) == 1);
  CHECK(goes_to(two, fin(1000)) == kB1);
  pass_and_sweep(two, 60s);
  CHECK(records(two).excluded == 1);
  CHECK(ended(one) + ended(two) == 0);
}

TEST_CASE("UDP: a stream needs two packets, and ends with the last one before its time-out") {
  LbUnderTest lb(udp_web({kB1}), kSmall);
  CHECK(goes_to(lb, datagram(1000)) == kB1);
  CHECK(goes_to(lb, datagram(2000)) == kB1);
  lb.pass(12s);
  CHECK(goes_to(lb, datagram(2000)) == kB1);
  pass_and_sweep(lb, 119s);
  CHECK(ended(lb) == 0);
  pass_and_sweep(lb, 1s);
  CHECK(lb.flows.table_counters().expired == 2);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 12s) == 1);
  CHECK(censored(lb) + records(lb).excluded + records(lb).reset == 0);
}

TEST_CASE("a stream of 20 days is counted with 20 days, although last seen wraps after 12") {
  LbUnderTest lb(web({kB1}), kSmall);
  open_flow(lb, 1000);
  for (int hour = 0; hour < 20 * 24; ++hour) {
    lb.pass(1h);
    REQUIRE(goes_to(lb, ack(1000)) == kB1);
  }
  CHECK(goes_to(lb, fin(1000)) == kB1);
  pass_and_sweep(lb, 60s);
  CHECK(ended(lb) == 1);
  CHECK(ended_after(lb, 20 * 24h) == 1);
}

TEST_CASE("each service's streams are counted by themselves") {
  LbUnderTest lb(std::vector{web({kB1}), service("203.0.113.10", udp(443)).to(kB2)}, kSmall);
  open_flow(lb, 1000);
  for (int i = 0; i < 2; ++i) CHECK(goes_to(lb, datagram(1000)) == kB2);
  CHECK(goes_to(lb, fin(1000)) == kB1);
  pass_and_sweep(lb, 120s);
  CHECK(sum_of(records(lb, 0).lifetimes.ended) == 1);
  CHECK(sum_of(records(lb, 1).lifetimes.ended) == 1);
  CHECK(sum_of(records(lb, 2).lifetimes.ended) == 0);
}
