// SPDX-License-Identifier: Apache-2.0
#include "lb/replay/capture_reader.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "lib/base/printable.h"

namespace holdfast {
namespace {

/// A file may claim any time. Kept so that no sum of times overflows (64 bits of nanoseconds end in
/// 2262).
std::chrono::nanoseconds time_of(const pcap_pkthdr& header) {
  constexpr std::int64_t kMostSeconds = 9'000'000'000;
  const std::int64_t seconds = std::clamp<std::int64_t>(header.ts.tv_sec, 0, kMostSeconds);
  // Nanoseconds: so the file was opened.
  const std::int64_t fraction = std::clamp<std::int64_t>(header.ts.tv_usec, 0, 999'999'999);
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(fraction);
}

std::string library_says(const char* message) { return printable(message, kMaxSentence); }

}  // namespace

void CaptureReader::Close::operator()(pcap* handle) const { ::pcap_close(handle); }

Result<CaptureReader> CaptureReader::open(const std::string& path, const FrameEnds& ends) {
  // Opened here: libpcap's own message would take "-" for standard input.
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr)
    return fail(fmt::format("cannot be opened: {}", std::generic_category().message(errno)),
                printable_path(path));
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  Handle handle(
      ::pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why.data()));
  if (handle == nullptr) {
    std::fclose(file);
    return fail(
        fmt::format("is no pcap or pcapng file that can be read: {}", library_says(why.data())),
        printable_path(path));
  }
  const int dlt = ::pcap_datalink(handle.get());
  const auto type = link_type_of(dlt);
  if (!type) {
    const char* const name = ::pcap_datalink_val_to_name(dlt);
    return fail(fmt::format("is of a link type that replay does not know ({}): Ethernet, raw IP, "
                            "Linux cooked, loopback and PPP are known",
                            name == nullptr ? fmt::format("number {}", dlt) : std::string(name)),
                printable_path(path));
  }
  return CaptureReader(path, std::move(handle), *type, ends);
}

Result<std::optional<CapturedFrame>> CaptureReader::next() {
  pcap_pkthdr* header = nullptr;
  const std::uint8_t* bytes = nullptr;
  const int status = ::pcap_next_ex(handle_.get(), &header, &bytes);
  if (status == PCAP_ERROR_BREAK) return std::nullopt;
  if (status != 1)
    return fail(fmt::format("packet {} cannot be read: {}", read_,
                            library_says(::pcap_geterr(handle_.get()))),
                printable_path(path_));
  ++read_;
  make_frame(type_, {bytes, header->caplen}, ends_, frame_);
  return CapturedFrame{.time = time_of(*header), .bytes = frame_};
}

}  // namespace holdfast
