// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the decapsulation program (decap.bpf.c) and the agent that loads it agree on: the keys of
// the maps, their sizes, and the outcomes. Included by C (BPF) and by C++; plain layouts only.
#ifndef HOLDFAST_TOOLS_AGENT_DECAP_SHARED_H
#define HOLDFAST_TOOLS_AGENT_DECAP_SHARED_H

#include <linux/types.h>

// Every packet that the interface receives ends in exactly one outcome, and each has one counter.
// X(NAME, VERDICT, SENTENCE): VERDICT is what XDP does with the packet, PASS or DROP; SENTENCE is
// for operators. A new program takes over the counters of the one it replaces, so this list only
// ever grows at its end; a name that is no longer needed keeps its place.
#define HOLDFAST_DECAP_OUTCOMES(X)                                                              \
  X(decapsulated_4in4, PASS, "IPv4 in IPv4 for a VIP, handed to the kernel without the tunnel") \
  X(decapsulated_6in4, PASS, "IPv6 in IPv4 for a VIP, handed to the kernel without the tunnel") \
  X(decapsulated_4in6, PASS, "IPv4 in IPv6 for a VIP, handed to the kernel without the tunnel") \
  X(decapsulated_6in6, PASS, "IPv6 in IPv6 for a VIP, handed to the kernel without the tunnel") \
  X(not_tunnel, PASS, "other traffic, left to the kernel")                                      \
  X(not_local, PASS,                                                                            \
    "a tunnel packet to an address that is not ours (--local), left to the "                    \
    "kernel")                                                                                   \
  X(unknown_source, PASS,                                                                       \
    "a tunnel packet from no known load balancer (--lb), left to the "                          \
    "kernel")                                                                                   \
  X(outer_fragment, PASS,                                                                       \
    "a fragment of a tunnel packet, left to the kernel: the MTU between "                       \
    "load balancer and backend is too small")                                                   \
  X(outer_options, PASS, "a tunnel packet with IPv4 options, left to the kernel")               \
  X(outer_malformed, PASS,                                                                      \
    "an outer header that contradicts itself or the frame's length, left "                      \
    "to the kernel")                                                                            \
  X(header_split, PASS,                                                                         \
    "the NIC put the inner header into another buffer, left to the kernel: "                    \
    "switch header split off")                                                                  \
  X(inner_malformed, DROP,                                                                      \
    "an inner header that is cut off or contradicts the outer one, dropped")                    \
  X(not_vip, DROP,                                                                              \
    "tunneled by a load balancer to an address that is no VIP here (--vip), "                   \
    "dropped")                                                                                  \
  X(ecn_conflict, DROP,                                                                         \
    "marked as congested outside, but the inner packet knows no ECN, dropped "                  \
    "(RFC 6040)")                                                                               \
  X(no_headroom, DROP, "the driver did not let the outer header be cut off, dropped")           \
  X(unknown_header, PASS,                                                                       \
    "a GRE or GUE header of a form that load balancers do not send, left to "                   \
    "the kernel")

enum holdfast_decap_outcome {
#define HOLDFAST_DECAP_ENUM(name, verdict, sentence) OUTCOME_##name,
  HOLDFAST_DECAP_OUTCOMES(HOLDFAST_DECAP_ENUM)
#undef HOLDFAST_DECAP_ENUM
      OUTCOME_COUNT,
};

// An address with its family, so that IPv6 ::ffff:192.0.2.1 never equals IPv4 192.0.2.1.
struct holdfast_address {
  __u32 family;    // 4 or 6, in network order: in an LPM key it is matched from its first bit
  __u8 bytes[16];  // wire order; IPv4 uses the first four, the rest are zero
};

// Key of the allow list, a longest-prefix-match trie. length counts the family's 32 bits too.
struct holdfast_prefix {
  __u32 length;  // host order, 32..160
  struct holdfast_address address;
};

enum {
  HOLDFAST_GUE_PORT = 6080,
  HOLDFAST_MAX_VIPS = 4096,
  HOLDFAST_MAX_LOCAL_ADDRESSES = 256,
  HOLDFAST_MAX_LB_PREFIXES = 1024,
  // More than there are outcomes, so that a later version can take over the running counters.
  HOLDFAST_COUNTER_SLOTS = 64,
};

#endif
