// SPDX-License-Identifier: Apache-2.0
#include "lb/steering/steering.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lb/steering/attached_program.h"
#include "lb/steering/steering_shared.h"
#include "steering.skel.h"

namespace holdfast {
namespace {

steering_vip key_of(const IpAddress& address) {
  steering_vip key{};
  key.family = address.is_v4() ? 4 : 6;
  std::memcpy(key.address, address.bytes().data(), sizeof(key.address));
  return key;
}

}  // namespace

void Steering::CloseSkeleton::operator()(steering_bpf* skeleton) const {
  steering_bpf::destroy(skeleton);
}

Steering::Steering(Steering&& other) noexcept
    : options_(std::move(other.options_)),
      claim_(std::move(other.claim_)),
      skeleton_(std::move(other.skeleton_)),
      vips_(std::move(other.vips_)),
      no_socket_before_(other.no_socket_before_),
      attach_flags_(other.attach_flags_),
      attached_(std::exchange(other.attached_, false)) {}

Steering& Steering::operator=(Steering&& other) noexcept {
  std::swap(options_, other.options_);
  std::swap(claim_, other.claim_);
  std::swap(skeleton_, other.skeleton_);
  std::swap(vips_, other.vips_);
  std::swap(no_socket_before_, other.no_socket_before_);
  std::swap(attach_flags_, other.attach_flags_);
  std::swap(attached_, other.attached_);
  return *this;
}

Steering::~Steering() { detach(); }

Result<Steering> Steering::attach(const Options& options, std::span<const IpAddress> vips) {
  Steering steering(options);
  auto claim = claim_interface(options.interface, options.interface_index);
  if (!claim) return tl::unexpected(claim.error());
  steering.claim_ = std::move(*claim);
  if (const auto loaded = steering.load(vips); !loaded) return tl::unexpected(loaded.error());
  if (const auto put = steering.put_on_interface(); !put) return tl::unexpected(put.error());
  return steering;
}

Result<void> Steering::load(std::span<const IpAddress> vips) {
  skeleton_.reset(steering_bpf::open());
  if (skeleton_ == nullptr)
    return fail(fmt::format("cannot open the steering program: {}", std::strerror(errno)));
  bpf_map__set_max_entries(skeleton_->maps.xsks_map, options_.receive_queues);
  if (const int result = steering_bpf::load(skeleton_.get()); result != 0)
    return fail(
        fmt::format("the kernel refused the steering program ({}): holdfastd needs Linux "
                    "5.11 or later; --log-level debug shows the kernel's words",
                    std::strerror(-result)));
  return set_vips(vips);
}

Result<void> Steering::put_on_interface() {
  const int index = static_cast<int>(options_.interface_index);
  const int program = bpf_program__fd(skeleton_->progs.xsk_def_prog);
  auto present = attached_program(options_.interface_index);
  if (!present) return tl::unexpected(present.error());

  if (present->id != 0) {
    if (!present->is_ours)
      return fail(
          fmt::format("interface {0} already has an XDP program ({1}, id {2}): remove it "
                      "with `ip link set dev {0} xdp off`, or name another interface",
                      options_.interface, present->name, present->id));
    bpf_xdp_attach_opts replace{};
    replace.sz = sizeof(replace);
    replace.old_prog_fd = present->program.get();
    attach_flags_ = present->mode_flag;
    if (const int result =
            bpf_xdp_attach(index, program, XDP_FLAGS_REPLACE | attach_flags_, &replace);
        result != 0)
      return fail(
          fmt::format("cannot replace the steering program of an earlier run on {0} ({1}): "
                      "remove it with `ip link set dev {0} xdp off`",
                      options_.interface, std::strerror(-result)));
    attached_ = true;
    // After it was replaced, so that what it dropped until then is in.
    if (present->counters.valid())
      no_socket_before_ = sum_counters(present->counters.get()).no_socket;
    return {};
  }

  // In the driver if it can, else (copying more) in the kernel's generic path.
  int result = 0;
  for (const unsigned mode : {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE}) {
    result = bpf_xdp_attach(index, program, XDP_FLAGS_UPDATE_IF_NOEXIST | mode, nullptr);
    if (result == 0) {
      attach_flags_ = mode;
      attached_ = true;
      return {};
    }
    if (result != -EOPNOTSUPP) break;
  }
  return fail(fmt::format("cannot attach the steering program to {}: {}", options_.interface,
                          result == -EBUSY || result == -EEXIST
                              ? "something else attached an XDP program just now, start again"
                              : std::strerror(-result)));
}

void Steering::detach() {
  if (!attached_) return;
  attached_ = false;
  bpf_xdp_attach_opts ours{};
  ours.sz = sizeof(ours);
  ours.old_prog_fd = bpf_program__fd(skeleton_->progs.xsk_def_prog);
  // Fails when the interface is gone or another program took our place: both are fine.
  (void)bpf_xdp_detach(static_cast<int>(options_.interface_index),
                       XDP_FLAGS_REPLACE | attach_flags_, &ours);
}

Result<void> Steering::set_vips(std::span<const IpAddress> vips) {
  const int map = bpf_map__fd(skeleton_->maps.holdfast_vips);
  const std::set<IpAddress> wanted(vips.begin(), vips.end());
  for (const IpAddress& vip : wanted) {
    if (vips_.contains(vip)) continue;
    const steering_vip key = key_of(vip);
    const __u8 present = 1;
    if (const int result = bpf_map_update_elem(map, &key, &present, BPF_ANY); result != 0)
      return fail(fmt::format("the steering program of {} cannot take VIP {}: {}",
                              options_.interface, vip.text(), std::strerror(-result)));
    vips_.insert(vip);
  }
  std::erase_if(vips_, [&](const IpAddress& vip) {
    if (wanted.contains(vip)) return false;
    const steering_vip key = key_of(vip);
    bpf_map_delete_elem(map, &key);
    return true;
  });
  return {};
}

bool Steering::in_driver() const { return attach_flags_ == XDP_FLAGS_DRV_MODE; }

SteeringStats Steering::read_stats() const {
  const auto counters = sum_counters(bpf_map__fd(skeleton_->maps.holdfast_count));
  return {.port = options_.port,
          .to_workers = counters.to_workers,
          .to_kernel = counters.to_kernel,
          .no_socket = no_socket_before_ + counters.no_socket};
}

}  // namespace holdfast
