// SPDX-License-Identifier: Apache-2.0
#include "lib/protocol/line_buffer.h"
#include "lib/protocol/message.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

std::string code_of(std::string_view line) {
  const auto parsed = parse_request(line);
  return parsed.request ? "" : parsed.request.error().code;
}

TEST_CASE("a request reads back as it was written") {
  const Request request{.id = 7, .command = "pool show", .arguments = {{"pool", "web"}}};
  const auto line = format_request(request);
  REQUIRE(line.back() == '\n');
  const auto parsed = parse_request(std::string_view(line).substr(0, line.size() - 1));
  REQUIRE(parsed.request);
  CHECK(parsed.request->id == 7);
  CHECK(parsed.request->command == "pool show");
  CHECK(parsed.request->arguments == request.arguments);
}

TEST_CASE("a request without arguments has none") {
  const auto parsed = parse_request(R"({"v":1,"id":0,"command":"status"})");
  REQUIRE(parsed.request);
  CHECK(parsed.request->arguments.is_object());
  CHECK(parsed.request->arguments.empty());
}

TEST_CASE("a request that is wrong in any way is refused with a reason") {
  CHECK(code_of("") == "bad_request");
  CHECK(code_of("\x01\x02\xff\xfe") == "bad_request");
  CHECK(code_of("[1,2]") == "bad_request");
  CHECK(code_of("null") == "bad_request");
  CHECK(code_of(R"({"id":1,"command":"status"})") == "bad_request");
  CHECK(code_of(R"({"v":1,"command":"status"})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":-1,"command":"status"})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":"1","command":"status"})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":1})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":1,"command":7})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":1,"command":"status","arguments":[]})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":1,"command":"status","argument":{}})") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":1,"command":"status"} x)") == "bad_request");
  CHECK(code_of(R"({"v":1,"id":1,"command":"sta)"
                "\xff"
                R"(tus"})") == "bad_request");
  CHECK(code_of(std::string(kMaxRequestBytes + 1, ' ')) == "too_long");
}

TEST_CASE("another protocol version is refused by name, and the id is still known") {
  const auto parsed = parse_request(R"({"v":2,"id":9,"command":"status"})");
  REQUIRE_FALSE(parsed.request);
  CHECK(parsed.request.error().code == "bad_version");
  CHECK(parsed.request.error().message.find("version 2") != std::string::npos);
  CHECK(parsed.id == 9);
}

TEST_CASE("brackets that nest without end are refused before they are parsed") {
  const std::string open(60'000, '[');
  CHECK_FALSE(parse_json(open));
  CHECK_FALSE(
      parse_json(std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']')));
  CHECK(parse_json(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')));
  CHECK(parse_json("\"" + open + "\\\"" + open + "\""));  // in a text they are only letters
}

TEST_CASE("answers read back as they were written") {
  const auto read = [](std::string line) {
    line.pop_back();
    return parse_answer(line);
  };
  const auto event = read(format_event(3, {{"active", 12}}));
  REQUIRE(event);
  CHECK(event->kind == Answer::Kind::event);
  CHECK(event->id == 3);
  CHECK(number_at(event->body, "active") == 12);

  const auto result = read(format_result(4, Json::object()));
  REQUIRE(result);
  CHECK(result->kind == Answer::Kind::result);

  const auto error = read(format_error({}, {.message = "no", .where = "pool web", .code = "x"}));
  REQUIRE(error);
  CHECK(error->kind == Answer::Kind::error);
  CHECK_FALSE(error->id);
  CHECK(error->error.text() == "pool web: no");
  CHECK(error->error.code == "x");
}

TEST_CASE("an answer that is none is refused") {
  CHECK_FALSE(parse_answer("{}"));
  CHECK_FALSE(parse_answer("[]"));
  CHECK_FALSE(parse_answer("garbage"));
  CHECK_FALSE(parse_answer(R"({"id":1,"error":"text"})"));
  CHECK_FALSE(parse_answer(R"({"result":{}})"));
}

TEST_CASE("bytes that are not UTF-8 do not keep an answer from being written") {
  const auto line = format_error(1, {.message = "bad name \xff\xfe"});
  CHECK(parse_answer(std::string_view(line).substr(0, line.size() - 1)));
}

TEST_CASE("lines come out whole however the bytes went in") {
  const std::string stream = "one\ntwo\r\n\nfour\n";
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    CAPTURE(step);
    LineBuffer buffer(16);
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < stream.size(); i += step) {
      buffer.append(std::string_view(stream).substr(i, step));
      while (auto line = buffer.next()) lines.push_back(*line);
    }
    CHECK(lines == std::vector<std::string>{"one", "two", "", "four"});
    CHECK_FALSE(buffer.too_long());
    CHECK(buffer.pending() == 0);
  }
}

TEST_CASE("a line of exactly the limit passes, one byte more ends the stream") {
  for (const bool at_once : {true, false}) {
    CAPTURE(at_once);
    LineBuffer buffer(8);
    const auto feed = [&](std::string_view text) {
      if (at_once) return buffer.append(text);
      for (const char c : text) buffer.append({&c, 1});
    };
    feed("12345678\n");
    CHECK(buffer.next() == "12345678");
    feed("123456789\nmore\n");
    CHECK_FALSE(buffer.next());
    CHECK(buffer.too_long());
    feed("and\nmore\n");
    CHECK_FALSE(buffer.next());
  }
}

TEST_CASE("a line that never ends is noticed before it fills the memory") {
  LineBuffer buffer(100);
  buffer.append("first\n");
  for (int i = 0; i < 1000; ++i) buffer.append(std::string(50, 'x'));
  CHECK(buffer.next() == "first");
  CHECK(buffer.too_long());
  CHECK(buffer.pending() < 300);
}

}  // namespace
}  // namespace holdfast
