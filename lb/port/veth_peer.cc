// SPDX-License-Identifier: Apache-2.0
#include "lb/port/veth_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

/// A machine may have very many processes; a start does not wait for them.
constexpr std::chrono::milliseconds kSearch{300};

/// A socket that asks one question at a time.
class Rtnetlink {
 public:
  Rtnetlink() : socket_(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC)) {
    if (socket_ && mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) != 0) socket_.reset();
  }

  using Attributes = std::function<void(const nlattr&)>;
  /// `Header` is what requests and answers of `type` begin with; `attribute` is put behind it.
  /// False: the kernel knows nothing, or not this question.
  template <class Header>
  bool ask(std::uint16_t type, const Header& header,
           std::pair<std::uint16_t, std::uint32_t> attribute, Attributes each) {
    if (!socket_) return false;
    std::vector<std::byte> buffer(kRoom);
    nlmsghdr* const request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = type;
    request->nlmsg_flags = NLM_F_REQUEST;
    request->nlmsg_seq = ++sequence_;
    *static_cast<Header*>(mnl_nlmsg_put_extra_header(request, sizeof(Header))) = header;
    mnl_attr_put_u32(request, attribute.first, attribute.second);
    if (mnl_socket_sendto(socket_.get(), request, request->nlmsg_len) < 0) return false;
    const auto got = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
    const auto* const answer = reinterpret_cast<const nlmsghdr*>(buffer.data());
    if (got <= 0 || !mnl_nlmsg_ok(answer, static_cast<int>(got))) return false;
    if (answer->nlmsg_seq != sequence_ || answer->nlmsg_type == NLMSG_ERROR) return false;
    return mnl_attr_parse(answer, sizeof(Header), call, &each) >= MNL_CB_STOP;
  }

 private:
  static int call(const nlattr* attribute, void* each) {
    (*static_cast<Attributes*>(each))(*attribute);
    return MNL_CB_OK;
  }
  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  static constexpr std::size_t kRoom = 32 * 1024;  // a link with all that it may carry
  std::unique_ptr<mnl_socket, Close> socket_;
  std::uint32_t sequence_ = 0;
};

struct Link {
  std::string kind{};                       // "veth"
  unsigned far_index = 0;                   // in its own namespace
  std::optional<std::int32_t> far_space{};  // that namespace's number here; nullopt: this one
};

int take_kind(const nlattr* attribute, void* kind) {
  if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
    *static_cast<std::string*>(kind) = mnl_attr_get_str(attribute);
  return MNL_CB_OK;
}

Link read_link(Rtnetlink& kernel, unsigned index) {
  Link link;
  ifinfomsg header{};
  header.ifi_index = static_cast<int>(index);
  kernel.ask(RTM_GETLINK, header, {IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS},
             [&](const nlattr& attribute) {
               switch (mnl_attr_get_type(&attribute)) {
                 case IFLA_LINK:
                   link.far_index = mnl_attr_get_u32(&attribute);
                   break;
                 case IFLA_LINK_NETNSID:
                   link.far_space = static_cast<std::int32_t>(mnl_attr_get_u32(&attribute));
                   break;
                 case IFLA_LINKINFO:
                   mnl_attr_parse_nested(&attribute, take_kind, &link.kind);
                   break;
                 default:
                   break;
               }
             });
  return link;
}

/// By which number this network namespace knows the one behind `descriptor`; -1: it does not.
std::int32_t number_of_space(Rtnetlink& kernel, int descriptor) {
  std::int32_t number = NETNSA_NSID_NOT_ASSIGNED;
  kernel.ask(RTM_GETNSID, rtgenmsg{}, {NETNSA_FD, static_cast<std::uint32_t>(descriptor)},
             [&](const nlattr& attribute) {
               if (mnl_attr_get_type(&attribute) == NETNSA_NSID)
                 number = static_cast<std::int32_t>(mnl_attr_get_u32(&attribute));
             });
  return number;
}

/// A network namespace that something keeps open.
struct Space {
  UniqueFd descriptor{};
  std::string prefix{};  // of commands that shall run in it
};

/// The namespaces that have a name come first: their commands are the easiest to type.
class Search {
 public:
  Search(Rtnetlink& kernel, std::int32_t number) : kernel_(kernel), number_(number) {}

  std::optional<Space> run() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/run/netns", error)) {
      const auto name = entry.path().filename().string();
      if (auto found = look(entry.path(), fmt::format("ip netns exec {} ", name))) return found;
    }
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
      const auto name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (std::chrono::steady_clock::now() > end_) break;
      if (auto found = look(entry.path() / "ns/net", fmt::format("nsenter -t {} -n ", name)))
        return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<Space> look(const fs::path& path, std::string prefix) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !seen_.insert(info.st_ino).second) return std::nullopt;
    UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!descriptor.valid() || number_of_space(kernel_, descriptor.get()) != number_)
      return std::nullopt;
    return Space{std::move(descriptor), std::move(prefix)};
  }

  Rtnetlink& kernel_;
  const std::int32_t number_;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kSearch;
  std::set<ino_t> seen_;
};

/// Asks the interface `index` of this thread's network namespace.
bool read_far_end(unsigned index, VethPeer& peer) {
  std::array<char, IF_NAMESIZE> name{};
  if (::if_indextoname(index, name.data()) == nullptr) return false;
  const UniqueFd descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_value value{};
  value.cmd = ETHTOOL_GTXCSUM;
  ifreq request{};
  std::copy(name.begin(), name.end(), std::begin(request.ifr_name));
  request.ifr_data = reinterpret_cast<char*>(&value);
  if (::ioctl(descriptor.get(), SIOCETHTOOL, &request) != 0) return false;
  peer.name = name.data();
  peer.leaves_checksums = value.data != 0;
  return true;
}

/// The same in another one: a thread of its own goes there, and ends there.
bool read_far_end_in(const Space& space, unsigned index, VethPeer& peer) {
  bool done = false;
  std::thread([&] {
    done = ::setns(space.descriptor.get(), CLONE_NEWNET) == 0 && read_far_end(index, peer);
  }).join();
  peer.prefix = space.prefix;
  return done;
}

}  // namespace

VethPeer find_veth_peer(unsigned interface_index) {
  VethPeer peer;
  Rtnetlink kernel;
  const Link link = read_link(kernel, interface_index);
  if (link.kind != "veth") return peer;
  bool done = false;
  if (!link.far_space) {
    done = read_far_end(link.far_index, peer);
  } else if (*link.far_space >= 0) {
    if (const auto space = Search(kernel, *link.far_space).run())
      done = read_far_end_in(*space, link.far_index, peer);
  }
  peer.seen = done ? VethPeer::Seen::looked_at : VethPeer::Seen::elsewhere;
  return peer;
}

Result<void> check_veth_peer(const std::string& interface, const VethPeer& peer) {
  if (peer.seen != VethPeer::Seen::looked_at || !peer.leaves_checksums) return {};
  return fail(
      fmt::format("the far end of {}, a veth, leaves checksums to hardware that is not "
                  "there, so backends would drop what comes from it: `{}ethtool -K {} tx "
                  "off`",
                  interface, peer.prefix, peer.name));
}

}  // namespace holdfast
