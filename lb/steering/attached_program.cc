// SPDX-License-Identifier: Apache-2.0
#include "lb/steering/attached_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "lb/steering/steering_shared.h"

namespace holdfast {
namespace {

template <class Info>
bool read_info(int descriptor, Info& info) {
  __u32 size = sizeof(info);
  return bpf_obj_get_info_by_fd(descriptor, &info, &size) == 0;
}

/// Invalid when it has none. Starts from the program's own maps: names and ids are shared by the
/// whole machine.
UniqueFd find_map(int program, std::string_view name) {
  bpf_prog_info counted{};
  if (!read_info(program, counted)) return {};
  std::vector<__u32> ids(counted.nr_map_ids);
  bpf_prog_info listed{};
  listed.nr_map_ids = counted.nr_map_ids;
  listed.map_ids = reinterpret_cast<__u64>(ids.data());
  if (!read_info(program, listed)) return {};
  for (const __u32 id : ids) {
    UniqueFd map(bpf_map_get_fd_by_id(id));
    bpf_map_info info{};
    if (map.valid() && read_info(map.get(), info) && name == info.name) return map;
  }
  return {};
}

}  // namespace

Result<AttachedProgram> attached_program(unsigned interface_index) {
  bpf_xdp_query_opts query{};
  query.sz = sizeof(query);
  if (const int result = bpf_xdp_query(static_cast<int>(interface_index), 0, &query); result != 0)
    return fail(fmt::format("cannot ask the kernel for the interface's XDP program: {}",
                            std::strerror(-result)));
  AttachedProgram result;
  result.id = query.prog_id;
  if (query.attach_mode == XDP_ATTACHED_MULTI)  // then prog_id is 0
    result.id = std::max({query.drv_prog_id, query.skb_prog_id, query.hw_prog_id});
  if (result.id == 0) return result;
  result.name = "name unknown";
  result.mode_flag =
      query.attach_mode == XDP_ATTACHED_SKB ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
  result.program = UniqueFd(bpf_prog_get_fd_by_id(result.id));
  bpf_prog_info info{};
  if (!result.program.valid() || !read_info(result.program.get(), info)) return result;
  if (info.name[0] != '\0') result.name = info.name;
  result.is_ours =
      (query.attach_mode == XDP_ATTACHED_DRV || query.attach_mode == XDP_ATTACHED_SKB) &&
      result.name == STEERING_PROGRAM_NAME &&
      find_map(result.program.get(), STEERING_VIPS_NAME).valid();
  if (result.is_ours) result.counters = find_map(result.program.get(), STEERING_COUNT_NAME);
  return result;
}

steering_counters sum_counters(int map) {
  steering_counters sum{};
  bpf_map_info info{};
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0 || !read_info(map, info) || info.type != BPF_MAP_TYPE_PERCPU_ARRAY ||
      info.value_size != sizeof(steering_counters))
    return sum;
  std::vector<steering_counters> per_cpu(static_cast<std::size_t>(cpus));
  const __u32 only = 0;
  if (bpf_map_lookup_elem(map, &only, per_cpu.data()) != 0) return sum;
  for (const steering_counters& counters : per_cpu) {
    sum.to_workers += counters.to_workers;
    sum.to_kernel += counters.to_kernel;
    sum.no_socket += counters.no_socket;
  }
  return sum;
}

Result<UniqueFd> claim_interface(const std::string& interface, unsigned interface_index) {
  // An abstract socket's name lives in the network namespace, as the interface does, and vanishes
  // with the process.
  UniqueFd claim(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto name = fmt::format("holdfast-steering-{}", interface_index);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!claim.valid() ||
      ::bind(claim.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EADDRINUSE)
      return fail(fmt::format("another holdfastd already serves interface {}: stop that one first",
                              interface),
                  {}, "busy");
    return fail(fmt::format("cannot claim interface {}: {}", interface, std::strerror(errno)));
  }
  return claim;
}

}  // namespace holdfast
