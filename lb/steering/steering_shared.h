// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the steering program in the kernel and its loader agree on. Valid as C and as C++.
#pragma once

#include <linux/types.h>

/// The program's name. libxdp (and so DPDK's AF_XDP driver) takes an attached program of this name
/// for its own default one and puts its sockets into that program's `xsks_map`.
#define STEERING_PROGRAM_NAME "xsk_def_prog"
/// The name of the map of VIPs, by which we tell our own program from any other of that name.
/// The kernel keeps 15 characters.
#define STEERING_VIPS_NAME "holdfast_vips"
/// The name of the map of counters.
#define STEERING_COUNT_NAME "holdfast_count"

/// Key of the map of VIPs. IPv4 uses the first four bytes, the others are zero.
struct steering_vip {
  __u32 family; /* 4 or 6 */
  __u8 address[16];
};

/// One per CPU; only that CPU writes it.
struct steering_counters {
  __u64 to_workers; /* redirected to the socket of the queue */
  __u64 to_kernel;  /* not for a VIP, or not IP */
  __u64 no_socket;  /* for a VIP, on a queue that no worker listens on: dropped */
};
