// SPDX-License-Identifier: Apache-2.0
// The steering of one AF_XDP port: our XDP program on its interface, which splits the traffic
// between the workers (VIPs) and the kernel (all else). Owned by Ports, used by the control thread.
//
// The program must be on the interface before the port's devices are made: DPDK's driver then finds
// it and puts its sockets into it. It stays there when holdfastd is killed, and the next start
// replaces it in one step.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/model/stats.h"
#include "lib/net/address.h"

struct steering_bpf;

namespace holdfast {

class Steering {
 public:
  struct Options {
    std::string port;       // its name in the config: errors and counters carry it
    std::string interface;  // exists
    unsigned interface_index = 0;
    unsigned receive_queues = 1;  // of the interface
  };

  /// Puts the program, which knows `vips`, on the interface. Replaces our own program if an earlier
  /// run left it; refuses any other, and an interface that another live holdfastd serves.
  [[nodiscard]] static Result<Steering> attach(const Options& options,
                                               std::span<const IpAddress> vips);
  Steering(Steering&&) noexcept;
  Steering& operator=(Steering&&) noexcept;
  /// Detaches, unless something else has taken the program's place meanwhile.
  ~Steering();

  /// From now on exactly `vips` are ours; one that stays in the set is never absent in between.
  /// Error: the kernel has no room for one; those before it in order are in.
  [[nodiscard]] Result<void> set_vips(std::span<const IpAddress> vips);
  /// `no_socket` goes on from what the program that ours replaced had counted.
  [[nodiscard]] SteeringStats read_stats() const;
  /// False: this driver has no XDP of its own, and packets take the kernel's slower generic path.
  [[nodiscard]] bool in_driver() const;

 private:
  struct CloseSkeleton {
    void operator()(steering_bpf* skeleton) const;
  };

  explicit Steering(const Options& options) : options_(options) {}
  [[nodiscard]] Result<void> load(std::span<const IpAddress> vips);
  [[nodiscard]] Result<void> put_on_interface();
  void detach();

  Options options_;
  UniqueFd claim_;  // tells other holdfastd processes that this interface is taken
  std::unique_ptr<steering_bpf, CloseSkeleton> skeleton_;
  std::set<IpAddress> vips_;
  std::uint64_t no_socket_before_ = 0;  // what the program that ours replaced had counted
  unsigned attach_flags_ = 0;           // the XDP mode it is attached in
  bool attached_ = false;
};

}  // namespace holdfast
