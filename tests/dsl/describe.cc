// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/describe.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::dsl {

std::string hex(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

namespace {

std::string flag_names(std::uint8_t flags) {
  constexpr std::string_view kNames[]{"Fin", "Syn", "Rst", "Psh", "Ack"};
  std::string text;
  for (unsigned i = 0; i < 8; ++i) {
    if ((flags >> i & 1) == 0) continue;
    if (!text.empty()) text += " | ";
    text += i < 5 ? std::string(kNames[i]) : fmt::format("{:#x}", 1u << i);
  }
  return text.empty() ? "0" : text;
}

std::string value_text(std::string_view, bool value) { return value ? "true" : "false"; }
std::string value_text(std::string_view name, std::uint8_t value) {
  return name == "flags" ? flag_names(value) : fmt::format("{}", value);
}
std::string value_text(std::string_view name, std::uint16_t value) {
  const bool is_bits = name == "checksum" || name == "tpid" || name == "type";
  return is_bits ? fmt::format("{:#06x}", value) : fmt::format("{}", value);
}
std::string value_text(std::string_view, std::uint32_t value) { return fmt::format("{}", value); }
std::string value_text(std::string_view, const Ip& value) { return '"' + value.text() + '"'; }
std::string value_text(std::string_view, const Mac& value) { return '"' + value.text() + '"'; }
std::string value_text(std::string_view, const Bytes& value) {
  return fmt::format("{} bytes {}", value.size(), hex(value));
}
template <class T>
std::string value_text(std::string_view name, const std::optional<T>& value) {
  return value ? value_text(name, *value) : "(computed)";
}

struct Field {
  std::string name;
  std::string text;
  bool is_default;
};

std::vector<Field> fields_of(const Layer& layer) {
  std::vector<Field> fields;
  std::visit(
      [&fields](const auto& given) {
        visit_fields(given, [&](const char* name, const auto& value) {
          fields.push_back({name, value_text(name, value), false});
        });
        const std::remove_cvref_t<decltype(given)> untouched{};
        std::size_t i = 0;
        visit_fields(untouched, [&](const char* name, const auto& value) {
          fields[i].is_default = fields[i].text == value_text(name, value);
          ++i;
        });
      },
      layer);
  return fields;
}

std::string layer_text(const Layer& layer) {
  std::string inside;
  for (const Field& field : fields_of(layer)) {
    // Addresses are what a reader looks for first: always there.
    if (field.is_default && field.text.front() != '"') continue;
    inside += fmt::format("{}.{} = {}", inside.empty() ? "" : ", ", field.name, field.text);
  }
  return fmt::format("{}{{{}}}", name_of(layer), inside);
}

}  // namespace

std::string_view name_of(const Layer& layer) {
  constexpr std::string_view kNames[]{"Eth",     "Vlan",      "Ip4",
                                      "Ip6",     "HopByHop",  "DestinationOptions",
                                      "Routing", "Fragment6", "Authentication",
                                      "Tcp",     "Udp",       "Gre",
                                      "Gue0",    "Icmp",      "Icmp6",
                                      "Raw",     "Padding"};
  static_assert(std::size(kNames) == std::variant_size_v<Layer>);
  return kNames[layer.index()];
}

std::string describe(const Packet& packet) {
  std::string text;
  for (const Layer& layer : packet.layers())
    text += (text.empty() ? "" : " / ") + layer_text(layer);
  return text.empty() ? "(no bytes)" : text;
}

std::string describe(std::span<const std::uint8_t> frame) { return describe(decode(frame)); }

std::string scapy_line(std::span<const std::uint8_t> frame) {
  return fmt::format("Ether(bytes.fromhex(\"{}\"))", hex(frame));
}

std::string first_difference(std::span<const std::uint8_t> frame,
                             std::span<const std::uint8_t> expected) {
  if (std::ranges::equal(frame, expected)) return {};
  const Packet left_packet = decode(frame);
  const Packet right_packet = decode(expected);
  const auto& left = left_packet.layers();
  const auto& right = right_packet.layers();
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    if (i >= left.size()) return fmt::format("no {} at the end", name_of(right[i]));
    if (i >= right.size()) return fmt::format("{} too many at the end", name_of(left[i]));
    if (left[i].index() != right[i].index())
      return fmt::format("layer {}: {}, expected {}", i + 1, name_of(left[i]), name_of(right[i]));
    const auto ours = fields_of(left[i]);
    const auto theirs = fields_of(right[i]);
    for (std::size_t field = 0; field < ours.size(); ++field)
      if (ours[field].text != theirs[field].text)
        return fmt::format("{}.{}: {}, expected {}", name_of(left[i]), ours[field].name,
                           ours[field].text, theirs[field].text);
  }
  return "no field differs, the bytes do";
}

std::string explain_mismatch(std::span<const std::uint8_t> frame,
                             std::span<const std::uint8_t> expected) {
  return fmt::format("got       {}\nexpected  {}\ndiffers   {}\nscapy     {}", describe(frame),
                     describe(expected), first_difference(frame, expected), scapy_line(frame));
}

}  // namespace holdfast::dsl
