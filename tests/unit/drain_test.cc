// SPDX-License-Identifier: Apache-2.0
#include "ctrl/state/drain.h"

#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

TEST_CASE("a backend is not draining until an operator says so") {
  CHECK_FALSE(Drain{}.draining());
}

TEST_CASE("a drain without a timeout lets TCP stay until it ends, UDP for 15 minutes") {
  Drain drain;
  drain.start(100s, std::nullopt);
  CHECK(drain.draining());
  CHECK(drain.since() == 100s);
  CHECK_FALSE(drain.deadline());
  CHECK_FALSE(drain.tcp_until());
  CHECK(drain.udp_until() == 100s + 15min);
}

TEST_CASE("a drain's deadline counts from its start and holds for TCP and UDP") {
  Drain drain;
  drain.start(100s, 30s);
  CHECK(drain.deadline() == 130s);
  CHECK(drain.tcp_until() == 130s);
  CHECK(drain.udp_until() == 130s);
}

TEST_CASE("with a deadline beyond 15 minutes UDP stays to the deadline too") {
  Drain drain;
  drain.start(0s, 2h);
  CHECK(drain.udp_until() == 2h);
}

TEST_CASE("draining again replaces the deadline, and the drain began when it began") {
  Drain drain;
  drain.start(100s, std::nullopt);
  drain.start(500s, 10s);
  CHECK(drain.since() == 100s);
  CHECK(drain.deadline() == 510s);
  drain.start(600s, std::nullopt);
  CHECK_FALSE(drain.deadline());
  CHECK(drain.udp_until() == 100s + 15min);
}

TEST_CASE("enable ends a drain, and a later one starts afresh") {
  Drain drain;
  drain.start(100s, 10s);
  drain.enable();
  CHECK_FALSE(drain.draining());
  drain.start(300s, std::nullopt);
  CHECK(drain.since() == 300s);
  CHECK_FALSE(drain.deadline());
}
