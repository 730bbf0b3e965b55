// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reconcile/numbers.h"

#include "tests/catch.h"

using namespace holdfast;

namespace {

using Sweeps = std::vector<std::uint64_t>;

std::optional<std::size_t> index(std::optional<ServiceNumber> number) {
  return number ? std::optional{index_of(*number)} : std::nullopt;
}

}  // namespace

TEST_CASE("numbers are given from 0, and a key keeps the one it has") {
  ServiceNumbers numbers;
  CHECK(index(numbers.take("web")) == 0);
  CHECK(index(numbers.take("api")) == 1);
  CHECK(index(numbers.take("web")) == 0);
  CHECK(index(numbers.find("api")) == 1);
  CHECK_FALSE(numbers.find("dns"));
  CHECK(numbers.limit() == 2);
}

TEST_CASE("a membership is a pool and an address: one backend in two pools has two numbers") {
  BackendNumbers numbers;
  const auto address = IpAddress::parse("192.0.2.1").value();
  CHECK(numbers.take({"web", address}) != numbers.take({"api", address}));
}

TEST_CASE("a retired number is given to another key only after three sweeps of every worker") {
  ServiceNumbers numbers;
  numbers.take("web");
  numbers.take("api");
  numbers.retire("web");
  CHECK_FALSE(numbers.find("web"));
  numbers.released(Sweeps{10, 20});

  CHECK(numbers.reclaim(Sweeps{12, 30}).empty());
  CHECK(index(numbers.take("dns")) == 2);  // not 0
  CHECK(numbers.reclaim(Sweeps{13, 22}).empty());
  CHECK(numbers.waiting() == 1);
  CHECK(numbers.reclaim(Sweeps{13, 23}) == std::vector{ServiceNumber{0}});
  CHECK(numbers.waiting() == 0);
  CHECK(index(numbers.take("ntp")) == 0);
}

TEST_CASE("sweeps before the publication do not count") {
  ServiceNumbers numbers;
  numbers.take("web");
  numbers.retire("web");
  CHECK(numbers.reclaim(Sweeps{1000}).empty());
  numbers.released(Sweeps{1000});
  CHECK(numbers.reclaim(Sweeps{1002}).empty());
  numbers.released(Sweeps{1002});  // a later publication does not start it anew
  CHECK(numbers.reclaim(Sweeps{1003}).size() == 1);
}

TEST_CASE("a key that returns before its number was reused gets the same one back") {
  ServiceNumbers numbers;
  numbers.take("web");
  numbers.take("api");
  numbers.retire("web");
  CHECK(index(numbers.take("web")) == 0);
  numbers.retire("web");
  numbers.released(Sweeps{1});
  CHECK(index(numbers.take("web")) == 0);
  CHECK(numbers.waiting() == 0);
  CHECK(numbers.reclaim(Sweeps{100}).empty());
  CHECK(index(numbers.find("web")) == 0);
}

TEST_CASE("the lowest free number is taken first, and the limit shrinks again") {
  ServiceNumbers numbers;
  for (const auto* name : {"a", "b", "c", "d"}) numbers.take(name);
  for (const auto* name : {"b", "d", "c"}) numbers.retire(name);
  numbers.released(Sweeps{0});
  CHECK(numbers.reclaim(Sweeps{3}).size() == 3);
  CHECK(numbers.limit() == 1);
  CHECK(index(numbers.take("e")) == 1);
}

TEST_CASE("with no worker there is nothing to wait for") {
  ServiceNumbers numbers;
  numbers.take("web");
  numbers.retire("web");
  numbers.released({});
  CHECK(numbers.reclaim({}).size() == 1);
}

TEST_CASE("a worker that appeared or went is not taken for one that has swept") {
  ServiceNumbers numbers;
  numbers.take("web");
  numbers.retire("web");
  numbers.released(Sweeps{5, 5});
  CHECK(numbers.reclaim(Sweeps{50}).empty());
  CHECK(numbers.reclaim(Sweeps{50, 50, 50}).empty());
}

TEST_CASE("there are 65535 numbers, and those not swept yet are not given out") {
  ServiceNumbers numbers;
  for (std::size_t i = 0; i < kMaxNumbers; ++i)
    REQUIRE(index(numbers.take("s" + std::to_string(i))) == i);
  CHECK_FALSE(numbers.take("one more"));
  numbers.retire("s77");
  CHECK_FALSE(numbers.take("one more"));
  numbers.released(Sweeps{1});
  numbers.reclaim(Sweeps{4});
  CHECK(index(numbers.take("one more")) == 77);
}

TEST_CASE("to retire a key without a number does nothing") {
  ServiceNumbers numbers;
  numbers.retire("web");
  CHECK(numbers.waiting() == 0);
}
