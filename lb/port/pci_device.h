// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of a PCI device that a port names, and whether DPDK can own it. Control
// thread; only looks, by sysfs.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.h"

namespace holdfast {

struct PciDevice {
  std::string address{};  // "0000:3b:00.0"
  bool present = false;
  std::uint32_t device_class = 0;  // PCI class code, 24 bits; 0x02....: a network controller
  std::string driver{};            // the kernel's that has it; empty: none
  std::string interface {};        // of the kernel on it; empty: none
  int node = 0;                    // NUMA; 0 where the machine does not say
  std::string group{};             // "/dev/vfio/12", where there is one
  bool held = false;               // another process has the group open
};

[[nodiscard]] PciDevice read_pci_device(const std::string& address);

/// Pure. Error: it is not there, is no NIC, has a driver that DPDK can not work with, or another
/// process holds it.
[[nodiscard]] Result<void> check_pci_device(const PciDevice& device);

}  // namespace holdfast
