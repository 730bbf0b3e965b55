// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/system.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "lib/base/printable.h"
#include "lib/base/unique_fd.h"

namespace holdfast::agent {
namespace {

std::optional<IpAddress> address_of(const sockaddr* socket_address) {
  if (socket_address == nullptr) return std::nullopt;
  if (socket_address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, socket_address, sizeof(v4));
    return IpAddress::v4(std::bit_cast<Be32>(v4.sin_addr.s_addr));
  }
  if (socket_address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, socket_address, sizeof(v6));
    return IpAddress::v6(std::to_array(v6.sin6_addr.s6_addr));
  }
  return std::nullopt;
}

Result<std::vector<IpAddress>> addresses_of(const std::string& name) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return system_failure("cannot list the interfaces' addresses", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  std::vector<IpAddress> result;
  for (const ifaddrs* entry = all.get(); entry != nullptr; entry = entry->ifa_next) {
    if (name != entry->ifa_name) continue;
    if (const auto address = address_of(entry->ifa_addr)) result.push_back(*address);
  }
  return result;
}

/// ARPHRD_ETHER and so on.
Result<int> hardware_type(const std::string& name) {
  const UniqueFd socket_fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  if (!socket_fd.valid() || ioctl(socket_fd.get(), SIOCGIFHWADDR, &request) != 0)
    return system_failure(fmt::format("cannot read the type of interface {}", name), errno);
  return request.ifr_hwaddr.sa_family;
}

}  // namespace

tl::unexpected<Error> system_failure(std::string_view what, int error) {
  const bool forbidden = error == EPERM || error == EACCES;
  return fail(fmt::format("{}: {}{}", what, std::strerror(error),
                          forbidden ? "; run holdfast-agent as root" : ""),
              {}, forbidden ? "permission" : "refused");
}

Result<void> require_privileges() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0)
    return system_failure("cannot read this process's capabilities", errno);
  const auto has = [&](unsigned capability) {
    return (data.at(capability / 32).effective >> capability % 32 & 1) != 0;
  };
  if (!has(CAP_NET_ADMIN) || !has(CAP_SYS_ADMIN))
    return fail(
        "no permission: run holdfast-agent as root (it needs CAP_NET_ADMIN to attach to an "
        "interface and CAP_SYS_ADMIN to reach the running program)",
        {}, "permission");
  return {};
}

Result<Interface> find_interface(const std::string& name) {
  const unsigned index = name.size() < IFNAMSIZ ? if_nametoindex(name.c_str()) : 0;
  if (index == 0)
    return fail(
        fmt::format("there is no interface {}; `ip link` lists those there are", printable(name)));
  const auto type = hardware_type(name);
  if (!type) return tl::unexpected(type.error());
  // The loopback interface has (empty) Ethernet headers too.
  if (*type != ARPHRD_ETHER && *type != ARPHRD_LOOPBACK)
    return fail(
        fmt::format("{} is no Ethernet interface; attach to the one that receives the "
                    "packets of the load balancers",
                    name));
  auto addresses = addresses_of(name);
  if (!addresses) return tl::unexpected(addresses.error());
  return Interface{name, static_cast<int>(index), std::move(*addresses)};
}

std::string interface_name(int index) {
  std::array<char, IF_NAMESIZE> buffer{};
  if (index <= 0 || if_indextoname(static_cast<unsigned>(index), buffer.data()) == nullptr)
    return {};
  return buffer.data();
}

}  // namespace holdfast::agent
