// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Takes the tunnel header off packets that a load balancer sent to this backend, in XDP, before the
// kernel sees them: the kernel then finds a packet from the client to the VIP.
//
//   read_outer   Ethernet, one VLAN tag, outer IP: is it a tunnel packet, for us, from one of ours?
//   read_header  what lies between the IP headers: nothing (IPIP), GRE, or UDP and GUE
//   read_inner   inner IP: does it fit into the outer packet, is it for a VIP?
//   carry_ecn    congestion marks of the outer header, RFC 6040
//   strip        cut the outer header off and put the Ethernet header back in front
//
// Each step returns UNDECIDED, or the outcome, which is counted once and says what happens.
// Whatever the list of load balancers does not vouch for goes to the kernel untouched; only what
// such a load balancer sent can be dropped here. Runs on every CPU at once; shares nothing but the
// maps.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
// The lines above are needed by these.
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tools/agent/decap_shared.h"
#include "tools/agent/tunnel_header.bpf.h"

#define FAMILY(number) bpf_htonl(number)

// Filled by the agent before the program is attached and never changed afterwards: new settings
// come with a new program, in one step. `counters` alone is handed on.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, HOLDFAST_MAX_VIPS);
  __type(key, struct holdfast_address);
  __type(value, __u32);
} vips SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, HOLDFAST_MAX_LOCAL_ADDRESSES);
  __type(key, struct holdfast_address);
  __type(value, __u32);
} locals SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(max_entries, HOLDFAST_MAX_LB_PREFIXES);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct holdfast_prefix);
  __type(value, __u32);
} lbs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, HOLDFAST_COUNTER_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

struct vlan_tag {
  __be16 control;
  __be16 protocol;
};

// RFC 8200 section 4.5; the uapi headers do not have it.
struct fragment_header {
  __u8 next_header;
  __u8 reserved;
  __be16 offset_and_more;
  __be32 identification;
};

enum { ECN_NOT_ECT = 0, ECN_ECT_1 = 1, ECN_ECT_0 = 2, ECN_CE = 3 };

static __always_inline struct holdfast_address address_v4(__be32 address) {
  struct holdfast_address result = {.family = FAMILY(4)};
  __builtin_memcpy(result.bytes, &address, sizeof(address));
  return result;
}

static __always_inline struct holdfast_address address_v6(const struct in6_addr* address) {
  struct holdfast_address result = {.family = FAMILY(6)};
  __builtin_memcpy(result.bytes, address, sizeof(*address));
  return result;
}

static __always_inline enum holdfast_decap_outcome check_addresses(
    const struct holdfast_address* source, const struct holdfast_address* destination) {
  if (!bpf_map_lookup_elem(&locals, destination)) return OUTCOME_not_local;
  struct holdfast_prefix key = {.length = 8 * sizeof(key.address), .address = *source};
  if (!bpf_map_lookup_elem(&lbs, &key)) return OUTCOME_unknown_source;
  return UNDECIDED;
}

// Whether the frame holds `length` bytes from `offset` on, in one buffer or more.
static __always_inline int frame_holds(struct xdp_md* ctx, __u32 offset, __u32 length) {
  const __u64 wanted = (__u64)offset + length;
  return wanted <= ctx->data_end - ctx->data || wanted <= bpf_xdp_get_buff_len(ctx);
}

// The outer checksums, IPv4's and UDP's, are not verified: the addresses matched exactly, and the
// inner packet, which the kernel verifies, has its own.
static __always_inline enum holdfast_decap_outcome read_outer_v4(struct xdp_md* ctx,
                                                                 struct tunnel* tunnel) {
  void* const end = frame_end(ctx);
  struct iphdr* const ip = frame_start(ctx) + tunnel->link_length;
  if ((void*)(ip + 1) > end) return OUTCOME_not_tunnel;
  const int first = !(ip->frag_off & bpf_htons(0x1fff));
  if (!is_tunnel(ip->protocol, first ? (void*)ip + 4u * ip->ihl : 0, end))
    return OUTCOME_not_tunnel;

  const struct holdfast_address source = address_v4(ip->saddr);
  const struct holdfast_address destination = address_v4(ip->daddr);
  const enum holdfast_decap_outcome refused = check_addresses(&source, &destination);
  if (refused != UNDECIDED) return refused;

  const __u32 total_length = bpf_ntohs(ip->tot_len);
  if (ip->version != 4 || ip->ihl < 5 || total_length < 4u * ip->ihl ||
      !frame_holds(ctx, tunnel->link_length, total_length))
    return OUTCOME_outer_malformed;
  if (ip->frag_off & bpf_htons(0x3fff)) return OUTCOME_outer_fragment;  // more, or an offset
  if (ip->ihl != 5) return OUTCOME_outer_options;

  tunnel->protocol = ip->protocol;
  tunnel->outer_ecn = ip->tos & 3;
  tunnel->inner_offset = tunnel->link_length + sizeof(*ip);
  tunnel->inner_room = total_length - sizeof(*ip);
  return UNDECIDED;
}

static __always_inline enum holdfast_decap_outcome read_outer_v6(struct xdp_md* ctx,
                                                                 struct tunnel* tunnel) {
  void* const end = frame_end(ctx);
  struct ipv6hdr* const ip = frame_start(ctx) + tunnel->link_length;
  if ((void*)(ip + 1) > end) return OUTCOME_not_tunnel;

  // IPv6 keeps fragmentation in a header of its own, which then names the tunnel.
  struct fragment_header* const fragment = (void*)(ip + 1);
  const int fragmented = ip->nexthdr == IPPROTO_FRAGMENT && (void*)(fragment + 1) <= end;
  const int first = !fragmented || !(fragment->offset_and_more & bpf_htons(0xfff8));
  const void* const next = fragmented ? (void*)(fragment + 1) : (void*)(ip + 1);
  if (!is_tunnel(fragmented ? fragment->next_header : ip->nexthdr, first ? next : 0, end))
    return OUTCOME_not_tunnel;

  const struct holdfast_address source = address_v6(&ip->saddr);
  const struct holdfast_address destination = address_v6(&ip->daddr);
  const enum holdfast_decap_outcome refused = check_addresses(&source, &destination);
  if (refused != UNDECIDED) return refused;

  const __u32 payload_length = bpf_ntohs(ip->payload_len);
  if (ip->version != 6 || !frame_holds(ctx, tunnel->link_length + sizeof(*ip), payload_length))
    return OUTCOME_outer_malformed;
  if (fragmented) return OUTCOME_outer_fragment;

  tunnel->protocol = ip->nexthdr;
  // Traffic class lies across the first two bytes; ECN is the low half of its low nibble.
  tunnel->outer_ecn = (ip->flow_lbl[0] >> 4) & 3;
  tunnel->inner_offset = tunnel->link_length + sizeof(*ip);
  tunnel->inner_room = payload_length;
  return UNDECIDED;
}

static __always_inline enum holdfast_decap_outcome read_outer(struct xdp_md* ctx,
                                                              struct tunnel* tunnel) {
  void* const end = frame_end(ctx);
  struct ethhdr* const ethernet = frame_start(ctx);
  if ((void*)(ethernet + 1) > end) return OUTCOME_not_tunnel;
  __be16 protocol = ethernet->h_proto;
  tunnel->link_length = sizeof(*ethernet);
  if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD)) {
    struct vlan_tag* const tag = (void*)(ethernet + 1);
    if ((void*)(tag + 1) > end) return OUTCOME_not_tunnel;
    protocol = tag->protocol;
    tunnel->link_length += sizeof(*tag);
  }
  if (protocol == bpf_htons(ETH_P_IP)) {
    tunnel->outer_family = 4;
    return read_outer_v4(ctx, tunnel);
  }
  if (protocol == bpf_htons(ETH_P_IPV6)) {
    tunnel->outer_family = 6;
    return read_outer_v6(ctx, tunnel);
  }
  return OUTCOME_not_tunnel;
}

// The inner lengths must fit into what the outer header carries, not merely into the frame, whose
// last bytes may be Ethernet padding.
static __always_inline enum holdfast_decap_outcome read_inner(struct xdp_md* ctx,
                                                              const struct tunnel* tunnel) {
  void* const end = frame_end(ctx);
  void* const inner = frame_start(ctx) + tunnel->inner_offset;
  struct holdfast_address destination;
  if (tunnel->inner_family == 4) {
    struct iphdr* const ip = inner;
    if (tunnel->inner_room < sizeof(*ip)) return OUTCOME_inner_malformed;
    if ((void*)(ip + 1) > end) return OUTCOME_header_split;
    const __u32 total_length = bpf_ntohs(ip->tot_len);
    if (ip->version != 4 || ip->ihl < 5 || total_length < 4u * ip->ihl ||
        total_length > tunnel->inner_room)
      return OUTCOME_inner_malformed;
    destination = address_v4(ip->daddr);
  } else {
    struct ipv6hdr* const ip = inner;
    if (tunnel->inner_room < sizeof(*ip)) return OUTCOME_inner_malformed;
    if ((void*)(ip + 1) > end) return OUTCOME_header_split;
    if (ip->version != 6 || sizeof(*ip) + bpf_ntohs(ip->payload_len) > tunnel->inner_room)
      return OUTCOME_inner_malformed;
    destination = address_v6(&ip->daddr);
  }
  return bpf_map_lookup_elem(&vips, &destination) ? UNDECIDED : OUTCOME_not_vip;
}

// Sets the ECN bits of an IPv4 header and keeps its checksum (RFC 1624 equation 3).
static __always_inline void set_ecn_v4(struct iphdr* ip, __u8 ecn) {
  const __u16 before = *(__u16*)ip;
  ip->tos = (ip->tos & ~3) | ecn;
  const __u16 after = *(__u16*)ip;
  __u32 sum = (__u16)~ip->check + (__u16)~before + after;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  ip->check = ~sum;
}

// RFC 6040 section 4.2: a mark that the fabric set outside must reach the inner packet; one that
// does not know ECN would not react to it and is dropped instead. Everything else stays as it is,
// except that ECT(1) outside ECT(0) goes inside too.
static __always_inline enum holdfast_decap_outcome carry_ecn(struct xdp_md* ctx,
                                                             const struct tunnel* tunnel) {
  if (tunnel->outer_ecn != ECN_CE && tunnel->outer_ecn != ECN_ECT_1) return UNDECIDED;
  void* const end = frame_end(ctx);
  void* const inner = frame_start(ctx) + tunnel->inner_offset;
  struct iphdr* const ip4 = inner;
  struct ipv6hdr* const ip6 = inner;
  if ((void*)(ip4 + 1) > end) return OUTCOME_header_split;

  const __u8 inner_ecn = (tunnel->inner_family == 4 ? ip4->tos : ip6->flow_lbl[0] >> 4) & 3;
  if (inner_ecn == ECN_NOT_ECT)
    return tunnel->outer_ecn == ECN_CE ? OUTCOME_ecn_conflict : UNDECIDED;
  if (inner_ecn == ECN_CE) return UNDECIDED;
  if (tunnel->inner_family == 4)
    set_ecn_v4(ip4, tunnel->outer_ecn);
  else
    ip6->flow_lbl[0] = (ip6->flow_lbl[0] & ~0x30) | tunnel->outer_ecn << 4;
  return UNDECIDED;
}

static __always_inline enum holdfast_decap_outcome strip(struct xdp_md* ctx,
                                                         const struct tunnel* tunnel) {
  // The Ethernet header with its tag. Both lengths of it are copied out as one: what follows an
  // untagged one is part of the outer header and is not written back.
  struct {
    struct ethhdr ethernet;
    struct vlan_tag tag;
  } link;
  _Static_assert(sizeof(link) == 18, "no padding");
  void* data = frame_start(ctx);
  if (data + sizeof(link) > frame_end(ctx)) return OUTCOME_no_headroom;
  __builtin_memcpy(&link, data, sizeof(link));

  if (bpf_xdp_adjust_head(ctx, (int)(tunnel->inner_offset - tunnel->link_length)))
    return OUTCOME_no_headroom;
  data = frame_start(ctx);
  if (data + sizeof(link) > frame_end(ctx)) return OUTCOME_no_headroom;

  const __be16 protocol = bpf_htons(tunnel->inner_family == 4 ? ETH_P_IP : ETH_P_IPV6);
  if (tunnel->link_length == sizeof(link)) {
    link.tag.protocol = protocol;
    __builtin_memcpy(data, &link, sizeof(link));
  } else {
    link.ethernet.h_proto = protocol;
    __builtin_memcpy(data, &link.ethernet, sizeof(link.ethernet));
  }
  if (tunnel->outer_family == 4)
    return tunnel->inner_family == 4 ? OUTCOME_decapsulated_4in4 : OUTCOME_decapsulated_6in4;
  return tunnel->inner_family == 4 ? OUTCOME_decapsulated_4in6 : OUTCOME_decapsulated_6in6;
}

// One bit for each outcome that lets the packet pass.
static __always_inline int verdict(enum holdfast_decap_outcome outcome) {
#define BIT(name, verdict, sentence) | (XDP_##verdict == XDP_PASS ? 1ULL << OUTCOME_##name : 0)
  const __u64 passes = 0 HOLDFAST_DECAP_OUTCOMES(BIT);
#undef BIT
  return passes >> outcome & 1 ? XDP_PASS : XDP_DROP;
}

// "frags" lets the program run where packets span several buffers: an MTU above about 3500 bytes.
SEC("xdp.frags")
int holdfast_decap(struct xdp_md* ctx) {
  struct tunnel tunnel = {};
  enum holdfast_decap_outcome outcome = read_outer(ctx, &tunnel);
  if (outcome == UNDECIDED) outcome = read_header(ctx, &tunnel);
  if (outcome == UNDECIDED) outcome = read_inner(ctx, &tunnel);
  // The second chance (is there a socket for this flow, or does another backend hold it?) belongs
  // here: the packet is known to be good and is still untouched.
  if (outcome == UNDECIDED) outcome = carry_ecn(ctx, &tunnel);
  if (outcome == UNDECIDED) outcome = strip(ctx, &tunnel);

  const __u32 slot = outcome;
  __u64* const counter = bpf_map_lookup_elem(&counters, &slot);
  if (counter) ++*counter;
  return verdict(outcome);
}

char _license[] SEC("license") = "Dual BSD/GPL";
