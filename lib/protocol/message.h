// SPDX-License-Identifier: Apache-2.0
// The CLI protocol: one JSON object a line over a Unix socket. A request {v, id, command,
// arguments} is answered by any number of {id, event} and then one {id, result} or {id, error}. An
// empty event says only that the daemon is at it, for a command that may have nothing else to say.
// Both ends use this file, so they cannot drift. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/protocol/json.h"

namespace holdfast {

/// Counts incompatible changes. A daemon refuses other versions by name, it never guesses.
inline constexpr std::uint64_t kProtocolVersion = 1;
/// A request line, its line end not counted.
inline constexpr std::size_t kMaxRequestBytes = 64 * 1024;
/// A client that leaves more than this unread is dropped.
inline constexpr std::size_t kMaxUnreadBytes = 1024 * 1024;
/// What a client accepts as one answer line: the configuration with the most backends and services
/// that there can be, with all defaults.
inline constexpr std::size_t kMaxAnswerBytes = 64 * 1024 * 1024;

struct Request {
  std::uint64_t id = 0;  // chosen by the client, repeated in every answer
  std::string command;   // "pool show"
  Json arguments = Json::object();
};

/// A request line as far as it could be understood: the id may be known though the rest is not.
struct ParsedRequest {
  std::optional<std::uint64_t> id;
  Result<Request> request;
};

[[nodiscard]] ParsedRequest parse_request(std::string_view line);

struct Answer {
  enum class Kind : std::uint8_t { event, result, error };
  Kind kind = Kind::error;
  std::optional<std::uint64_t> id;  // empty: the daemon could not read the id either
  Json body;                        // of an event or a result
  Error error;                      // of an error
};

[[nodiscard]] Result<Answer> parse_answer(std::string_view line);

// Each returns a whole line with its line end.
[[nodiscard]] std::string format_request(const Request& request);
[[nodiscard]] std::string format_event(std::uint64_t id, const Json& event);
[[nodiscard]] std::string format_result(std::uint64_t id, const Json& result);
[[nodiscard]] std::string format_error(std::optional<std::uint64_t> id, const Error& error);

}  // namespace holdfast
