// SPDX-License-Identifier: Apache-2.0
#include "lib/base/token_bucket.h"

#include "tests/catch.h"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

int taken(TokenBucket& bucket, Instant now, int wanted) {
  int count = 0;
  for (int i = 0; i < wanted; ++i) count += bucket.take(now) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a token bucket starts with the tokens of one second") {
  TokenBucket bucket(10);
  CHECK(taken(bucket, 0s, 100) == 10);
}

TEST_CASE("a token bucket earns its rate and no more than one second's burst") {
  TokenBucket bucket(10);
  CHECK(taken(bucket, 5s, 100) == 10);
  CHECK(taken(bucket, 5s + 99ms, 100) == 0);
  CHECK(taken(bucket, 5s + 100ms, 100) == 1);
  CHECK(taken(bucket, 5s + 600ms, 100) == 5);
  CHECK(taken(bucket, 1h, 100) == 10);
}

TEST_CASE("asking often loses no fraction of a token") {
  TokenBucket bucket(3);
  taken(bucket, 0s, 3);
  int count = 0;
  // 10 s in steps of 7 ns would be long; in steps of 70,001 ns no step earns a whole token.
  for (Instant now{0}; now <= 10s; now += 70'001ns) count += bucket.take(now) ? 1 : 0;
  CHECK(count == 29 + (std::chrono::nanoseconds(10s) % 70'001ns == 0ns ? 1 : 0));
}

TEST_CASE("a rate of zero refuses all") {
  TokenBucket bucket(0);
  CHECK(taken(bucket, 0s, 10) == 0);
  CHECK(taken(bucket, 100h, 10) == 0);
}

TEST_CASE("the highest rate and the longest pause do not overflow") {
  TokenBucket bucket(0xffffffff);
  CHECK(bucket.take(0s));
  CHECK(bucket.take(Instant::max()));
  CHECK(taken(bucket, Instant::max(), 1000) == 1000);
}

TEST_CASE("a time before the last one earns nothing and takes nothing") {
  TokenBucket bucket(10);
  CHECK(taken(bucket, 10s, 100) == 10);
  CHECK(taken(bucket, 9s, 100) == 0);
  CHECK(taken(bucket, 10s + 100ms, 100) == 1);
}
