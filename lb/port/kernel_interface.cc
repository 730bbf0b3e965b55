// SPDX-License-Identifier: Apache-2.0
#include "lb/port/kernel_interface.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  return request;
}

unsigned receive_queues_of(int descriptor, const std::string& name) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request = request_for(name);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  // A driver that has no such notion has one queue.
  if (::ioctl(descriptor, SIOCETHTOOL, &request) != 0) return 1;
  return std::max(1u, channels.rx_count + channels.combined_count);
}

/// The effective ones of this process.
class Capabilities {
 public:
  using Words = std::array<__user_cap_data_struct, 2>;
  explicit Capabilities(const Words& words) : words_(words) {}
  [[nodiscard]] bool has(unsigned capability) const {
    return (words_[capability / 32].effective >> (capability % 32) & 1u) != 0;
  }

 private:
  Words words_;
};

Result<Capabilities> read_capabilities() {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  Capabilities::Words words{};
  if (::syscall(SYS_capget, &header, words.data()) != 0)
    return fail(fmt::format("cannot read this process's capabilities: {}", std::strerror(errno)));
  return Capabilities(words);
}

}  // namespace

Result<KernelInterface> read_interface(const std::string& name) {
  KernelInterface result{.name = name};
  const UniqueFd descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  result.index = name.size() < IFNAMSIZ ? ::if_nametoindex(name.c_str()) : 0;
  if (result.index == 0)
    return fail(fmt::format("there is no interface {}: `ip link` lists those of this host", name),
                {}, "not_found");
  ifreq request = request_for(name);
  const auto ask = [&](unsigned long what) {
    return ::ioctl(descriptor.get(), what, &request) == 0;
  };
  if (!ask(SIOCGIFFLAGS))
    return fail(fmt::format("cannot read interface {}: {}", name, std::strerror(errno)));
  result.up = (request.ifr_flags & IFF_UP) != 0;
  if (!ask(SIOCGIFMTU))
    return fail(fmt::format("cannot read the MTU of {}: {}", name, std::strerror(errno)));
  result.mtu = static_cast<unsigned>(request.ifr_mtu);
  if (!ask(SIOCGIFHWADDR))
    return fail(fmt::format("cannot read the address of {}: {}", name, std::strerror(errno)));
  std::memcpy(result.mac.bytes.data(), request.ifr_hwaddr.sa_data, result.mac.bytes.size());
  result.receive_queues = receive_queues_of(descriptor.get(), name);
  return result;
}

bool has_carrier(const std::string& name) {
  if (name.size() >= IFNAMSIZ) return false;
  const UniqueFd descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = request_for(name);
  if (::ioctl(descriptor.get(), SIOCGIFFLAGS, &request) != 0) return false;
  return (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

Result<void> check_for_af_xdp(const KernelInterface& interface, unsigned queues) {
  if (!interface.up)
    return fail(fmt::format("interface {0} is down: `ip link set {0} up`", interface.name));
  if (interface.mtu > kMaxAfXdpMtu)
    return fail(
        fmt::format("interface {0} has MTU {1}, but AF_XDP takes at most {2}: "
                    "`ip link set {0} mtu {2}`",
                    interface.name, interface.mtu, kMaxAfXdpMtu));
  if (interface.receive_queues != queues)
    return fail(
        fmt::format("interface {0} has {1} receive queue{2}, but the port is given {3}, and "
                    "packets on a queue without a worker would be lost: set queues = {1} "
                    "(and no more workers), or `ethtool -L {0} combined {3}`",
                    interface.name, interface.receive_queues,
                    interface.receive_queues == 1 ? "" : "s", queues));
  return {};
}

Result<void> check_af_xdp_privileges() {
  const auto capabilities = read_capabilities();
  if (!capabilities) return tl::unexpected(capabilities.error());
  std::string missing;
  for (const auto& [capability, name] : {std::pair{unsigned{CAP_NET_ADMIN}, "CAP_NET_ADMIN"},
                                         std::pair{unsigned{CAP_NET_RAW}, "CAP_NET_RAW"},
                                         // Reading programs and maps by their number needs more
                                         // than CAP_BPF, and libxdp does that.
                                         std::pair{unsigned{CAP_SYS_ADMIN}, "CAP_SYS_ADMIN"}})
    if (!capabilities->has(capability))
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  if (missing.empty()) return {};
  return fail(
      fmt::format("AF_XDP needs privileges that this process lacks ({}): start holdfastd as "
                  "root, or grant them in its service unit (AmbientCapabilities=)",
                  missing),
      {}, "permission");
}

Result<void> allow_locked_memory(std::size_t bytes) {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0) return {};
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};  // then the kernel will tell
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_MEMLOCK, &limit);
  const auto capabilities = read_capabilities();
  if (limit.rlim_max >= bytes || (capabilities && capabilities->has(CAP_IPC_LOCK))) return {};
  return fail(fmt::format("AF_XDP locks {} MiB of packet buffers in memory, but this process may "
                          "lock {} MiB: set LimitMEMLOCK=infinity in its service unit, or grant "
                          "CAP_IPC_LOCK",
                          (bytes >> 20) + 1, limit.rlim_max >> 20),
              {}, "permission");
}

}  // namespace holdfast
