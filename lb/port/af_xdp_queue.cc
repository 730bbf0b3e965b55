// SPDX-License-Identifier: Apache-2.0
#include "lb/port/af_xdp_queue.h"

#include <fmt/format.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

constexpr std::uint32_t kFrames = 2;
constexpr std::uint32_t kFrameSize = 4096;
constexpr std::size_t kMemory = std::size_t{kFrames} * kFrameSize;

/// Memory that a socket may use as its packet buffers.
class Pages {
 public:
  Pages()
      : at_(::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (at_ != MAP_FAILED) ::munmap(at_, kMemory);
  }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(at_); }

 private:
  void* at_;
};

/// The errno of a bind to the queue; 0: it worked, or it did not come to that.
int try_to_bind(unsigned interface_index, unsigned queue) {
  const Pages pages;
  const UniqueFd descriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  const auto set = [&](int option, const auto& value) {
    return ::setsockopt(descriptor.get(), SOL_XDP, option, &value, sizeof(value)) == 0;
  };
  xdp_umem_reg memory{};
  memory.addr = pages.address();
  memory.len = kMemory;
  memory.chunk_size = kFrameSize;
  if (!set(XDP_UMEM_REG, memory) || !set(XDP_UMEM_FILL_RING, kFrames) ||
      !set(XDP_UMEM_COMPLETION_RING, kFrames) || !set(XDP_RX_RING, kFrames))
    return 0;
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = XDP_COPY;
  address.sxdp_ifindex = interface_index;
  address.sxdp_queue_id = queue;
  const bool bound =
      ::bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return bound ? 0 : errno;
}

}  // namespace

Result<void> check_queue_is_free(const std::string& interface, unsigned queue) {
  if (try_to_bind(::if_nametoindex(interface.c_str()), queue) != EBUSY) return {};
  return fail(fmt::format("another program has an AF_XDP socket on queue {} of {}: stop that one "
                          "first, or name another interface",
                          queue, interface),
              {}, "busy");
}

}  // namespace holdfast
