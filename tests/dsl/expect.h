// SPDX-License-Identifier: Apache-2.0
// Comparing packets in REQUIRE and CHECK: a mismatch prints both in the notation of packet.h, the
// first field that differs and a line for scapy.
#pragma once

#include <string>

#include "tests/catch.h"
#include "tests/dsl/describe.h"
#include "tests/dsl/lb_under_test.h"

namespace holdfast::dsl {

[[nodiscard]] inline std::string describe(const Handled& handled) {
  switch (handled.kind) {
    case Handled::Kind::sent:
      return "sent on port " + std::to_string(index_of(handled.port)) + ": " +
             describe(handled.frame);
    case Handled::Kind::answered:
      return "answered on port " + std::to_string(index_of(handled.port)) + ": " +
             describe(handled.frame);
    case Handled::Kind::to_kernel:
      return "to the kernel: " + describe(handled.frame);
    case Handled::Kind::dropped:
      return "dropped: " + std::string(text_of(handled.reason).name);
    case Handled::Kind::held:
      return "held";
  }
  return "?";
}

/// The first layer of a kind in what left: layer<Ip6>(handled).flow_label.
template <class L>
[[nodiscard]] L layer(const Handled& handled) {
  const Packet packet = dissect(handled.frame);
  for (const Layer& candidate : packet.layers())
    if (const auto* found = std::get_if<L>(&candidate)) return *found;
  FAIL("no " << name_of(Layer(L{})) << " in " << describe(handled));
  return {};
}

[[nodiscard]] inline bool operator==(const Handled& got, const Handled& expected) {
  const bool same_frame = got.frame == expected.frame;
  if (!same_frame && !got.frame.empty() && !expected.frame.empty())
    UNSCOPED_INFO(explain_mismatch(got.frame, expected.frame));
  if (got.kind != expected.kind || !same_frame || got.more != expected.more) return false;
  return got.kind == Handled::Kind::dropped ? got.reason == expected.reason
                                            : got.port == expected.port;
}

}  // namespace holdfast::dsl

template <>
struct Catch::StringMaker<holdfast::dsl::Handled> {
  static std::string convert(const holdfast::dsl::Handled& handled) {
    return holdfast::dsl::describe(handled);
  }
};

template <>
struct Catch::StringMaker<holdfast::dsl::Packet> {
  static std::string convert(const holdfast::dsl::Packet& packet) {
    return holdfast::dsl::describe(packet);
  }
};
