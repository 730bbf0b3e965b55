// SPDX-License-Identifier: Apache-2.0
// Any bytes on the control socket: cut into lines, read as requests and answers. What was
// understood must come back unchanged when written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/protocol/line_buffer.h"
#include "lib/protocol/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  LineBuffer lines(4096);
  // The pieces in which they arrive depend on the input, so that all ways of cutting are tried.
  const std::size_t step = size == 0 ? 1 : 1 + data[0];
  for (std::size_t i = 0; i < size; i += step) {
    lines.append(bytes.substr(i, step));
    while (const auto line = lines.next()) {
      if (line->size() > 4096) std::abort();
      const auto parsed = parse_request(*line);
      if (parsed.request) {
        auto text = format_request(*parsed.request);
        text.pop_back();
        const auto again = parse_request(text);
        if (!again.request || again.request->command != parsed.request->command ||
            again.request->id != parsed.request->id ||
            again.request->arguments != parsed.request->arguments) {
          std::abort();
        }
      }
      [[maybe_unused]] const auto answer = parse_answer(*line);
    }
  }
  return 0;
}
