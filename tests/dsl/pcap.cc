// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/pcap.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/dsl/packet.h"

namespace holdfast::dsl {

namespace {

/// https://www.tcpdump.org/linktypes.html
enum class LinkType : std::uint16_t {
  null = 0,
  ethernet = 1,
  ppp = 9,
  raw = 101,
  linux_sll = 113,
  ipv4 = 228,
  ipv6 = 229,
};

constexpr std::size_t kFileHeader = 24;
constexpr std::size_t kRecordHeader = 16;

class File {
 public:
  explicit File(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    if (bytes.size() < kFileHeader)
      throw std::runtime_error("no pcap file: shorter than its header");
    constexpr std::uint32_t kMicroseconds = 0xa1b2c3d4;
    constexpr std::uint32_t kNanoseconds = 0xa1b23c4d;
    const auto is_magic = [this] { return u32(0) == kMicroseconds || u32(0) == kNanoseconds; };
    if (!is_magic()) big_endian_ = true;
    if (!is_magic()) throw std::runtime_error("no pcap file: another magic number");
    // Its upper bits tell the length of a frame check sequence.
    link_type_ = static_cast<LinkType>(u32(20) & 0xffff);
  }

  [[nodiscard]] LinkType link_type() const { return link_type_; }

  template <class Visitor>
  void for_each_record(Visitor&& visit) const {
    for (std::size_t at = kFileHeader; at < bytes_.size();) {
      if (bytes_.size() - at < kRecordHeader) throw std::runtime_error("ends inside a record");
      const std::size_t captured = u32(at + 8);
      at += kRecordHeader;
      if (bytes_.size() - at < captured) throw std::runtime_error("ends inside a record");
      visit(bytes_.subspan(at, captured));
      at += captured;
    }
  }

 private:
  [[nodiscard]] std::uint32_t u32(std::size_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes_[at + (big_endian_ ? i : 3 - i)];
    return value;
  }

  std::span<const std::uint8_t> bytes_;
  bool big_endian_ = false;
  LinkType link_type_{};
};

Bytes in_ethernet(std::span<const std::uint8_t> record, std::size_t link_header) {
  const auto packet = record.subspan(std::min(link_header, record.size()));
  const bool is_v6 = !packet.empty() && packet[0] >> 4 == 6;
  return (Eth{.type = is_v6 ? std::uint16_t{0x86dd} : std::uint16_t{0x0800}} /
          Raw{Bytes(packet.begin(), packet.end())})
      .bytes();
}

/// Address and control bytes may be compressed away (RFC 1661 6.6).
std::size_t ppp_header(std::span<const std::uint8_t> record) {
  return record.size() > 1 && record[0] == 0xff && record[1] == 0x03 ? 4 : 2;
}

Bytes as_frame(LinkType type, std::span<const std::uint8_t> record) {
  switch (type) {
    case LinkType::ethernet:
      return Bytes(record.begin(), record.end());
    case LinkType::null:
      return in_ethernet(record, 4);
    case LinkType::ppp:
      return in_ethernet(record, ppp_header(record));
    case LinkType::linux_sll:
      return in_ethernet(record, 16);
    case LinkType::raw:
    case LinkType::ipv4:
    case LinkType::ipv6:
      return in_ethernet(record, 0);
  }
  throw std::runtime_error(fmt::format("link type {} is not known", static_cast<unsigned>(type)));
}

}  // namespace

std::vector<Bytes> read_pcap(std::span<const std::uint8_t> bytes) {
  const File file(bytes);
  std::vector<Bytes> frames;
  file.for_each_record([&](std::span<const std::uint8_t> record) {
    frames.push_back(as_frame(file.link_type(), record));
  });
  return frames;
}

}  // namespace holdfast::dsl
