// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The steering program: on each queue of a port's interface it gives every IP packet whose
// destination is a VIP (any protocol, any port, fragments too, up to two VLAN tags) to the worker's
// AF_XDP socket, and everything else to the kernel.
//
// A packet for a VIP whose queue has no socket is dropped. The kernel would answer it wrongly or
// send it back to the router, and that may break a flow; a lost packet is sent again, and a
// restarting holdfastd has its sockets back in a moment.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lb/steering/steering_shared.h"

/* By receive queue; DPDK's driver fills it. The loader sets max_entries. */
struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} xsks_map SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 65536);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct steering_vip);
  __type(value, __u8);
} holdfast_vips SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct steering_counters);
} holdfast_count SEC(".maps");

struct vlan_header {
  __be16 tag_control;
  __be16 ether_type;
};

enum { MAX_VLAN_TAGS = 2 };

/* Fills `vip` with the packet's destination; 0: not IP, or too short to have one. */
static __always_inline int read_destination(struct xdp_md* ctx, struct steering_vip* vip) {
  void* data = (void*)(long)ctx->data;
  void* end = (void*)(long)ctx->data_end;
  struct ethhdr* ethernet = data;
  if ((void*)(ethernet + 1) > end) return 0;
  __be16 ether_type = ethernet->h_proto;
  void* next = ethernet + 1;

#pragma unroll
  for (int tag = 0; tag < MAX_VLAN_TAGS; ++tag) {
    struct vlan_header* vlan = next;
    if (ether_type != bpf_htons(ETH_P_8021Q) && ether_type != bpf_htons(ETH_P_8021AD)) break;
    if ((void*)(vlan + 1) > end) return 0;
    ether_type = vlan->ether_type;
    next = vlan + 1;
  }

  if (ether_type == bpf_htons(ETH_P_IP)) {
    struct iphdr* ip = next;
    if ((void*)(ip + 1) > end) return 0;
    vip->family = 4;
    __builtin_memcpy(vip->address, &ip->daddr, 4);
    return 1;
  }
  if (ether_type == bpf_htons(ETH_P_IPV6)) {
    struct ipv6hdr* ip = next;
    if ((void*)(ip + 1) > end) return 0;
    vip->family = 6;
    __builtin_memcpy(vip->address, &ip->daddr, 16);
    return 1;
  }
  return 0;
}

SEC("xdp")
int xsk_def_prog(struct xdp_md* ctx) {
  __u32 only = 0;
  struct steering_counters* counters = bpf_map_lookup_elem(&holdfast_count, &only);
  if (!counters) return XDP_PASS; /* cannot happen: the array has this element */

  struct steering_vip vip = {};
  if (!read_destination(ctx, &vip) || !bpf_map_lookup_elem(&holdfast_vips, &vip)) {
    counters->to_kernel++;
    return XDP_PASS;
  }
  long action = bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_DROP);
  if (action == XDP_REDIRECT)
    counters->to_workers++;
  else
    counters->no_socket++;
  return (int)action;
}

/* Makes libxdp 1.2 and later take this program for its default one. The pointer form is the one
 * that libxdp reads. */
__uint(xsk_prog_version, 1) SEC("xdp_metadata");

char license_text[] SEC("license") = "Dual BSD/GPL";
