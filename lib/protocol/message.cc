// SPDX-License-Identifier: Apache-2.0
#include "lib/protocol/message.h"

#include <fmt/format.h>

#include "lib/base/printable.h"

namespace holdfast {
namespace {

tl::unexpected<Error> bad(std::string message) {
  return fail(std::move(message), {}, "bad_request");
}

Result<Request> read_request(const Json& object) {
  const auto version = object.find("v");
  if (version == object.end() || !version->is_number_unsigned()) {
    return bad("a request needs \"v\", the protocol version, as a number");
  }
  if (*version != kProtocolVersion) {
    return fail(fmt::format("protocol version {} is not spoken here, only {}: use the holdfast "
                            "command that came with this daemon",
                            version->get<std::uint64_t>(), kProtocolVersion),
                {}, "bad_version");
  }
  const auto id = object.find("id");
  if (id == object.end() || !id->is_number_unsigned()) {
    return bad("a request needs \"id\" as a number from 0");
  }
  Request request{.id = id->get<std::uint64_t>(), .command = text_at(object, "command")};
  if (request.command.empty()) return bad("a request needs \"command\" as a text");
  if (const auto arguments = object.find("arguments"); arguments != object.end()) {
    if (!arguments->is_object()) return bad("\"arguments\" must be an object");
    request.arguments = *arguments;
  }
  for (const auto& [key, value] : object.items()) {
    if (key != "v" && key != "id" && key != "command" && key != "arguments") {
      return bad(fmt::format("a request has no field {}", in_quotes(key)));
    }
  }
  return request;
}

}  // namespace

ParsedRequest parse_request(std::string_view line) {
  if (line.size() > kMaxRequestBytes) {
    return {
        {},
        fail(fmt::format("a request may have at most {} bytes", kMaxRequestBytes), {}, "too_long")};
  }
  auto json = parse_json(line);
  if (!json) return {{}, tl::unexpected<Error>(json.error())};
  if (!json->is_object()) return {{}, bad("a request must be one JSON object a line")};
  std::optional<std::uint64_t> id;
  if (const auto it = json->find("id"); it != json->end() && it->is_number_unsigned()) {
    id = it->get<std::uint64_t>();
  }
  return {id, read_request(*json)};
}

Result<Answer> parse_answer(std::string_view line) {
  auto json = parse_json(line);
  if (!json || !json->is_object()) return bad("the daemon's answer is not a JSON object");
  Answer answer;
  if (const auto id = json->find("id"); id != json->end() && id->is_number_unsigned()) {
    answer.id = id->get<std::uint64_t>();
  }
  if (const auto event = json->find("event"); event != json->end()) {
    answer.kind = Answer::Kind::event;
    answer.body = std::move(*event);
  } else if (const auto result = json->find("result"); result != json->end()) {
    answer.kind = Answer::Kind::result;
    answer.body = std::move(*result);
  } else if (const auto error = json->find("error"); error != json->end() && error->is_object()) {
    answer.kind = Answer::Kind::error;
    answer.error = {.message = text_at(*error, "message"),
                    .where = text_at(*error, "where"),
                    .code = text_at(*error, "code")};
  } else {
    return bad("the daemon's answer has neither event, result nor error");
  }
  if (answer.kind != Answer::Kind::error && !answer.id) {
    return bad("the daemon's answer does not say to which request it belongs");
  }
  return answer;
}

std::string format_request(const Request& request) {
  return to_line(Json{{"v", kProtocolVersion},
                      {"id", request.id},
                      {"command", request.command},
                      {"arguments", request.arguments}}) +
         '\n';
}

std::string format_event(std::uint64_t id, const Json& event) {
  return to_line(Json{{"id", id}, {"event", event}}) + '\n';
}

std::string format_result(std::uint64_t id, const Json& result) {
  return to_line(Json{{"id", id}, {"result", result}}) + '\n';
}

std::string format_error(std::optional<std::uint64_t> id, const Error& error) {
  Json body{{"code", error.code}, {"message", error.message}, {"where", error.where}};
  return to_line(Json{{"id", id ? Json(*id) : Json(nullptr)}, {"error", std::move(body)}}) + '\n';
}

}  // namespace holdfast
