// SPDX-License-Identifier: Apache-2.0
// Any bytes as an endpoint or address on the command line: what is understood comes back unchanged
// when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/net/endpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto endpoint = Endpoint::parse(text))
    if (Endpoint::parse(endpoint->text()) != endpoint) std::abort();
  if (const auto address = IpAddress::parse(text))
    if (IpAddress::parse(address->text()) != address) std::abort();
  if (const auto prefix = Prefix::parse(text))
    if (Prefix::parse(prefix->text()) != prefix) std::abort();
  return 0;
}
