// SPDX-License-Identifier: Apache-2.0
#include "lb/port/pci_device.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

/// As sysfs writes it: with the domain, in small letters.
std::string full_address(const std::string& address) {
  std::string full = address.size() == 7 ? "0000:" + address : address;
  std::transform(full.begin(), full.end(), full.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return full;
}

std::string first_name_in(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    return entry.path().filename().string();
  return {};
}

/// "net" lies in the device's folder, or with virtio one below.
std::string interface_of(const fs::path& device) {
  if (auto name = first_name_in(device / "net"); !name.empty()) return name;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(device, error)) {
    if (!entry.path().filename().string().starts_with("virtio")) continue;
    if (auto name = first_name_in(entry.path() / "net"); !name.empty()) return name;
  }
  return {};
}

/// Where a link of sysfs leads, the last part; empty: there is none.
std::string target_of(const fs::path& link) {
  std::error_code error;
  return fs::read_symlink(link, error).filename().string();
}

/// VFIO lets one process open a group.
bool somebody_holds(const std::string& group) {
  const UniqueFd descriptor(::open(group.c_str(), O_RDWR | O_CLOEXEC));
  return !descriptor.valid() && errno == EBUSY;
}

/// The last two share the device with DPDK, the others give it away whole.
bool dpdk_can_use(std::string_view driver) {
  constexpr std::array<std::string_view, 5> kDrivers{"vfio-pci", "uio_pci_generic", "igb_uio",
                                                     "mlx5_core", "mlx4_core"};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end();
}

std::string what_is_in_the_way(const PciDevice& device) {
  if (device.driver.empty()) return "has no driver: ";
  return fmt::format(
      "belongs to the kernel's driver {}{}: name it by `interface`, or if this host "
      "can do without it, ",
      device.driver, device.interface.empty() ? "" : " (interface " + device.interface + ")");
}

}  // namespace

PciDevice read_pci_device(const std::string& address) {
  PciDevice device{.address = full_address(address)};
  const fs::path folder = fs::path("/sys/bus/pci/devices") / device.address;
  std::error_code error;
  device.present = fs::exists(folder, error);
  if (!device.present) return device;
  std::ifstream(folder / "class") >> std::hex >> device.device_class;
  int node = -1;
  std::ifstream(folder / "numa_node") >> node;
  device.node = std::max(node, 0);
  device.driver = target_of(folder / "driver");
  device.interface = interface_of(folder);
  if (const auto group = target_of(folder / "iommu_group"); !group.empty()) {
    device.group = "/dev/vfio/" + group;
    if (!fs::exists(device.group, error)) device.group = "/dev/vfio/noiommu-" + group;
    device.held = device.driver == "vfio-pci" && somebody_holds(device.group);
  }
  return device;
}

Result<void> check_pci_device(const PciDevice& device) {
  if (!device.present)
    return fail(fmt::format("there is no PCI device {}: `ls /sys/bus/pci/devices` lists those of "
                            "this machine",
                            device.address),
                {}, "not_found");
  if (device.device_class >> 16 != 0x02)
    return fail(
        fmt::format("PCI device {} is no network card (its class is {:06x}): name one, "
                    "`lspci -D` says what each is",
                    device.address, device.device_class));
  if (!dpdk_can_use(device.driver))
    return fail(fmt::format(
        "PCI device {0} {1}bind it to vfio-pci with `dpdk-devbind.py -b vfio-pci {0}` (package "
        "dpdk)",
        device.address, what_is_in_the_way(device)));
  if (device.held)
    return fail(
        fmt::format("another program holds PCI device {}: stop that one first (`fuser -v {}` "
                    "shows it)",
                    device.address, device.group),
        {}, "busy");
  return {};
}

}  // namespace holdfast
