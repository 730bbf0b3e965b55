// SPDX-License-Identifier: Apache-2.0
#include "lb/replay/capture_writer.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "lib/base/printable.h"

namespace holdfast {
namespace {

/// More than any frame that can come out; readers take it for the length of a packet's buffer.
constexpr int kSnapLength = 262'144;

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

tl::unexpected<Error> cannot(std::string_view what, const std::string& path) {
  return fail(fmt::format("{}: {}", what, std::generic_category().message(errno)),
              printable_path(path));
}

}  // namespace

void CaptureWriter::Close::operator()(pcap* handle) const { ::pcap_close(handle); }
void CaptureWriter::Close::operator()(pcap_dumper* dumper) const { ::pcap_dump_close(dumper); }

Result<CaptureWriter> CaptureWriter::create(const std::string& path, const std::string& input) {
  if (is_same_file(path, input))
    return fail("is the capture that is to be replayed: name another file for what is sent",
                printable_path(path));
  std::FILE* const file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return cannot("cannot be written", path);
  // Microseconds: every reader of pcap files knows them.
  pcap* const handle = ::pcap_open_dead(DLT_EN10MB, kSnapLength);
  pcap_dumper* const dumper = handle == nullptr ? nullptr : ::pcap_dump_fopen(handle, file);
  if (dumper == nullptr) {
    if (handle != nullptr) ::pcap_close(handle);
    std::fclose(file);
    return cannot("cannot be written", path);
  }
  return CaptureWriter(path, handle, dumper);
}

void CaptureWriter::write(std::chrono::nanoseconds time, std::span<const std::uint8_t> frame) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto fraction = std::chrono::floor<std::chrono::microseconds>(time - seconds);
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<decltype(header.ts.tv_sec)>(seconds.count());
  header.ts.tv_usec = static_cast<decltype(header.ts.tv_usec)>(fraction.count());
  header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
  ::pcap_dump(reinterpret_cast<u_char*>(dumper_.get()), &header, frame.data());
  ++written_;
}

Result<void> CaptureWriter::finish() {
  const bool failed = std::ferror(::pcap_dump_file(dumper_.get())) != 0;
  if (::pcap_dump_flush(dumper_.get()) != 0 || failed) return cannot("cannot be written", path_);
  return {};
}

}  // namespace holdfast
