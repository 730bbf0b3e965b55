// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The tunnel formats of the decapsulation program (decap.bpf.c): which packets are tunnels, and
// what lies between the outer and the inner IP header. A new format gets its place here.
#ifndef HOLDFAST_TOOLS_AGENT_TUNNEL_HEADER_BPF_H
#define HOLDFAST_TOOLS_AGENT_TUNNEL_HEADER_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/udp.h>
// The lines above are needed by these.
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tools/agent/decap_shared.h"

// No outcome yet: the next step goes on.
#define UNDECIDED OUTCOME_COUNT

// Volatile, so that each is one load of the register that is compared: what clang makes of a value
// that it shares between steps is a number to the verifier, and no longer the end of the packet.
static __always_inline void* frame_start(struct xdp_md* ctx) {
  return (void*)(long)*(volatile __u32*)&ctx->data;
}
static __always_inline void* frame_end(struct xdp_md* ctx) {
  return (void*)(long)*(volatile __u32*)&ctx->data_end;
}

// RFC 2784, without its optional checksum.
struct gre_header {
  __be16 flags_and_version;
  __be16 protocol;  // an EtherType
};

// draft-ietf-intarea-gue, variant 0.
struct gue_header {
  __u8 version_and_length;  // version 2 bits, control 1 bit, further 32-bit words 5 bits
  __u8 protocol;
  __be16 flags;
};

// What read_outer and read_header learned. Offsets are in bytes from the start of the frame.
struct tunnel {
  __u32 link_length;   // Ethernet header with its tag: where the outer IP header starts
  __u32 inner_offset;  // where the inner IP header starts; of read_outer: where its header ends
  __u32 inner_room;    // bytes that the outer headers say follow there
  __u8 protocol;       // of what the outer IP header carries
  __u8 outer_family;   // 4 or 6
  __u8 inner_family;   // 4 or 6
  __u8 outer_ecn;      // the two ECN bits, RFC 3168 section 5
};

// Whether `protocol`, which begins at `next`, is a tunnel's. GUE is a UDP port, and no port is in a
// fragment that is not the first: `next` is null then.
static __always_inline int is_tunnel(__u8 protocol, const void* next, const void* end) {
  if (protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6 || protocol == IPPROTO_GRE) return 1;
  const struct udphdr* const udp = next;
  if (protocol != IPPROTO_UDP || !next || (void*)(udp + 1) > end) return 0;
  return udp->dest == bpf_htons(HOLDFAST_GUE_PORT);
}

static __always_inline enum holdfast_decap_outcome skip_header(struct tunnel* tunnel, __u32 length,
                                                               __u8 inner_family) {
  tunnel->inner_family = inner_family;
  tunnel->inner_offset += length;
  tunnel->inner_room -= length;
  return UNDECIDED;
}

// RFC 2784: who does not know the flags must not take the packet.
static __always_inline enum holdfast_decap_outcome read_gre(struct xdp_md* ctx,
                                                            struct tunnel* tunnel) {
  void* const end = frame_end(ctx);
  struct gre_header* const gre = frame_start(ctx) + tunnel->inner_offset;
  if (tunnel->inner_room < sizeof(*gre)) return OUTCOME_outer_malformed;
  if ((void*)(gre + 1) > end) return OUTCOME_header_split;
  if (gre->flags_and_version) return OUTCOME_unknown_header;
  if (gre->protocol == bpf_htons(ETH_P_IP)) return skip_header(tunnel, sizeof(*gre), 4);
  if (gre->protocol == bpf_htons(ETH_P_IPV6)) return skip_header(tunnel, sizeof(*gre), 6);
  return OUTCOME_unknown_header;
}

// Variant 1 of GUE is recognised by the inner packet's version, which stands where variant 0 has
// its own. Private data of variant 0 (words without a flag) is skipped, as Linux does.
static __always_inline enum holdfast_decap_outcome read_gue(struct xdp_md* ctx,
                                                            struct tunnel* tunnel) {
  void* const end = frame_end(ctx);
  struct udphdr* const udp = frame_start(ctx) + tunnel->inner_offset;
  if (tunnel->inner_room < sizeof(*udp)) return OUTCOME_outer_malformed;
  if ((void*)(udp + 1) > end) return OUTCOME_header_split;
  const __u32 length = bpf_ntohs(udp->len);
  if (length < sizeof(*udp) || length > tunnel->inner_room) return OUTCOME_outer_malformed;
  tunnel->inner_room = length;

  struct gue_header* const gue = (void*)(udp + 1);
  if (length < sizeof(*udp) + sizeof(*gue)) return OUTCOME_unknown_header;
  if ((void*)(gue + 1) > end) return OUTCOME_header_split;
  const __u8 first = gue->version_and_length;
  if (first >> 4 == 4) return skip_header(tunnel, sizeof(*udp), 4);
  if (first >> 4 == 6) return skip_header(tunnel, sizeof(*udp), 6);
  const __u32 header = sizeof(*udp) + sizeof(*gue) + 4u * (first & 0x1f);
  if (first >> 5 || gue->flags || length < header) return OUTCOME_unknown_header;
  if (gue->protocol == IPPROTO_IPIP) return skip_header(tunnel, header, 4);
  if (gue->protocol == IPPROTO_IPV6) return skip_header(tunnel, header, 6);
  return OUTCOME_unknown_header;
}

static __always_inline enum holdfast_decap_outcome read_header(struct xdp_md* ctx,
                                                               struct tunnel* tunnel) {
  if (tunnel->protocol == IPPROTO_GRE) return read_gre(ctx, tunnel);
  if (tunnel->protocol == IPPROTO_UDP) return read_gue(ctx, tunnel);
  return skip_header(tunnel, 0, tunnel->protocol == IPPROTO_IPIP ? 4 : 6);
}

#endif
