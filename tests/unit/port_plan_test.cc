// SPDX-License-Identifier: Apache-2.0
#include "lb/port/port_plan.h"

#include <algorithm>
#include <set>
#include <string>

#include "lb/port/kernel_interface.h"
#include "tests/catch.h"

namespace holdfast {
namespace {

PortConfig on_interface(const std::string& interface, std::uint16_t queues) {
  return {.name = interface, .interface = interface, .vdev = {}, .pci = {}, .queues = queues};
}
PortConfig on_vdev(const std::string& vdev, std::uint16_t queues) {
  return {.name = vdev, .interface = {}, .vdev = vdev, .pci = {}, .queues = queues};
}
PortConfig on_pci(const std::string& pci) {
  return {.name = pci, .interface = {}, .vdev = {}, .pci = pci};
}

DataplaneConfig config_of(std::vector<PortConfig> ports, std::uint16_t workers = 1) {
  DataplaneConfig config;
  config.ports = std::move(ports);
  config.workers = workers;
  return config;
}

bool has(const std::vector<std::string>& arguments, const std::string& wanted) {
  return std::find(arguments.begin(), arguments.end(), wanted) != arguments.end();
}
/// What follows `flag`.
std::string value_of(const std::vector<std::string>& arguments, const std::string& flag) {
  const auto found = std::find(arguments.begin(), arguments.end(), flag);
  return found == arguments.end() || found + 1 == arguments.end() ? "" : *(found + 1);
}

TEST_CASE("each queue of an interface becomes a device of its own") {
  const auto plan = plan_ports(config_of({on_interface("eth0", 2)}));
  REQUIRE(plan);
  REQUIRE(plan->devices.size() == 2);
  CHECK(plan->devices[0].arguments == "iface=eth0,start_queue=0,busy_budget=0");
  CHECK(plan->devices[1].arguments == "iface=eth0,start_queue=1,busy_budget=0");
  for (const DevicePlan& device : plan->devices) {
    CHECK(device.kind == DeviceKind::af_xdp);
    CHECK(device.queues == 1);
    CHECK(device.name.starts_with("net_af_xdp"));
  }
  CHECK(plan->devices[0].name != plan->devices[1].name);
}

TEST_CASE("a virtual device is split into its name and its arguments") {
  const auto plan = plan_ports(
      config_of({on_vdev("net_pcap0,rx_pcap=in,tx_pcap=out", 1), on_vdev("net_null1", 4)}));
  REQUIRE(plan);
  REQUIRE(plan->devices.size() == 2);
  CHECK(plan->devices[0].name == "net_pcap0");
  CHECK(plan->devices[0].arguments == "rx_pcap=in,tx_pcap=out");
  CHECK(plan->devices[1].name == "net_null1");
  CHECK(plan->devices[1].arguments.empty());
  CHECK(plan->devices[1].queues == 4);
}

TEST_CASE("buffers grow with queues, and AF_XDP queues need more") {
  const auto one = plan_ports(config_of({on_vdev("net_null0", 1)}));
  const auto four = plan_ports(config_of({on_vdev("net_null0", 4)}));
  const auto xdp = plan_ports(config_of({on_interface("eth0", 1)}));
  REQUIRE((one && four && xdp));
  CHECK(four->buffers > 5 * one->buffers / 2);
  CHECK(xdp->buffers > one->buffers);
  CHECK(xdp->memory > std::size_t{xdp->buffers} * kBufferRoom);
}

TEST_CASE("held fragments are less than a tenth of the buffers, and none that the queues need") {
  for (const auto workers : {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{8}}) {
    CAPTURE(workers);
    const auto plan = plan_ports(config_of({on_interface("eth0", workers)}, workers));
    REQUIRE(plan);
    CHECK(plan->most_held > 500);
    CHECK(plan->most_held * workers * 10 < plan->buffers);
    // 3 x 2048 a queue, 1024 a worker.
    CHECK(plan->buffers - plan->most_held * workers >= 7168u * workers);
  }
}

TEST_CASE("more queues of interfaces than DPDK can hold devices are refused") {
  const auto plan = plan_ports(config_of({on_interface("eth0", 20), on_interface("eth1", 20)}));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message.find("40") != std::string::npos);
}

TEST_CASE("queues go round among the workers, and each worker sends on every port") {
  const auto config = config_of({on_interface("eth0", 4), on_vdev("net_null0", 3)}, 3);
  const auto plan = plan_ports(config);
  REQUIRE(plan);
  const auto workers = assign_queues(*plan, config);
  REQUIRE(workers.size() == 3);
  // Devices 0 to 3 are eth0's queues, device 4 is net_null0.
  CHECK(workers[0].receive == std::vector<PlannedQueue>{{0, 0}, {3, 0}, {4, 0}});
  CHECK(workers[1].receive == std::vector<PlannedQueue>{{1, 0}, {4, 1}});
  CHECK(workers[2].receive == std::vector<PlannedQueue>{{2, 0}, {4, 2}});
  CHECK(workers[0].transmit == std::vector<PlannedQueue>{{0, 0}, {4, 0}});
  CHECK(workers[1].transmit == std::vector<PlannedQueue>{{1, 0}, {4, 1}});
  CHECK(workers[2].transmit == std::vector<PlannedQueue>{{2, 0}, {4, 2}});
}

TEST_CASE("workers get one CPU each, the first CPUs last") {
  CHECK(choose_worker_cpus({0, 1, 2, 3}, 2).value() == std::vector<int>{2, 3});
  CHECK(choose_worker_cpus({4, 9}, 2).value() == std::vector<int>{4, 9});
  const auto few = choose_worker_cpus({3}, 2);
  REQUIRE_FALSE(few);
  CHECK(few.error().message.find("1 CPU:") != std::string::npos);
}

TEST_CASE("EAL takes plain memory unless enough huge pages are free") {
  const auto plan = plan_ports(config_of({on_vdev("net_null0", 1)}));
  REQUIRE(plan);
  EalSurroundings surroundings{.cpus = {0, 1}, .process = 77};

  auto arguments = eal_arguments(*plan, surroundings, {1}).value();
  CHECK(has(arguments, "--no-huge"));
  CHECK(has(arguments, "--no-shconf"));
  CHECK_FALSE(has(arguments, "--in-memory"));
  CHECK(std::stoul(value_of(arguments, "-m")) << 20 >= plan->memory);
  CHECK(has(arguments, "--file-prefix=holdfast77"));

  surroundings.huge_pages = {{.node = 1, .page_size = plan->memory, .free = 1}};
  arguments = eal_arguments(*plan, surroundings, {1}).value();
  CHECK(has(arguments, "--in-memory"));
  CHECK_FALSE(has(arguments, "--no-huge"));
}

TEST_CASE("workers are pinned one a CPU and the control thread floats") {
  const auto plan = plan_ports(config_of({on_vdev("net_null0", 2)}, 2));
  REQUIRE(plan);
  const auto arguments = eal_arguments(*plan, {.cpus = {0, 2, 5}}, {2, 5}).value();
  CHECK(value_of(arguments, "--lcores") == "0@(0,2,5),1@2,2@5");
  CHECK(value_of(arguments, "--main-lcore") == "0");
}

/// Pages of 2 MiB.
HugePages pages_on(int node, std::size_t free, std::size_t reserved = 0) {
  return {.node = node,
          .page_size = 2u << 20,
          .reserved = std::max(free, reserved),
          .free = free,
          .folder = "/sys/devices/system/node/node" + std::to_string(node) +
                    "/hugepages/hugepages-2048kB"};
}

TEST_CASE("DPDK looks at no NIC but those of the config") {
  const EalSurroundings plenty{.cpus = {0, 1}, .huge_pages = {pages_on(0, 9999)}, .nic_node = 0};
  const auto vdev = plan_ports(config_of({on_vdev("net_null0", 1)}));
  CHECK(has(eal_arguments(*vdev, plenty, {1}).value(), "--no-pci"));
  const auto pci = plan_ports(config_of({on_pci("0000:3b:00.0")}));
  const auto arguments = eal_arguments(*pci, plenty, {1}).value();
  CHECK_FALSE(has(arguments, "--no-pci"));
  CHECK(value_of(arguments, "-a") == "0000:3b:00.0");
}

TEST_CASE("an AF_XDP port makes DPDK use virtual addresses, so that the buffers are one piece") {
  const EalSurroundings plenty{.cpus = {0, 1}, .huge_pages = {pages_on(0, 9999)}, .nic_node = 0};
  const auto arguments_for = [&](std::vector<PortConfig> ports) {
    const auto plan = plan_ports(config_of(std::move(ports)));
    return eal_arguments(*plan, plenty, {1}).value();
  };
  CHECK(has(arguments_for({on_interface("eth0", 1)}), "--iova-mode=va"));
  CHECK(has(arguments_for({on_interface("eth0", 1), on_pci("0000:3b:00.0")}), "--iova-mode=va"));
  CHECK_FALSE(has(arguments_for({on_pci("0000:3b:00.0")}), "--iova-mode=va"));
}

TEST_CASE("a NIC that DPDK owns is refused without huge pages on its own node, with the command") {
  const auto plan = plan_ports(config_of({on_pci("0000:3b:00.0")}));
  REQUIRE(plan);
  const auto needed = (plan->memory + (2u << 20) - 1) / (2u << 20);
  EalSurroundings surroundings{
      .cpus = {0, 1}, .huge_pages = {pages_on(0, 9999), pages_on(1, 3, 10)}, .nic_node = 1};
  const auto refused = eal_arguments(*plan, surroundings, {1});
  REQUIRE_FALSE(refused);
  // 7 of the 10 that are reserved are somebody's: as many more are needed.
  const auto n = std::to_string(needed);
  CHECK(refused.error().message ==
        "DPDK and its packet buffers need " + n +
            " huge pages of 2 MiB on NUMA node 1, where 3 are free: `echo " +
            std::to_string(needed + 7) +
            " > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages`");

  surroundings.huge_pages[1] = pages_on(1, needed);
  const auto good = eal_arguments(*plan, surroundings, {1});
  REQUIRE(good);
  CHECK(has(*good, "--in-memory"));
  surroundings.huge_pages[1].free -= 1;
  CHECK_FALSE(eal_arguments(*plan, surroundings, {1}));
}

TEST_CASE("huge pages of several sizes or nodes are not added up") {
  const std::vector<HugePages> pages{
      pages_on(0, 10), pages_on(1, 10), {.node = 0, .page_size = 1u << 30, .free = 0}};
  CHECK(enough_huge_pages(pages, 20u << 20, std::nullopt));
  CHECK_FALSE(enough_huge_pages(pages, (20u << 20) + 1, std::nullopt));
  CHECK(enough_huge_pages({{{.node = 0, .page_size = 1u << 30, .free = 1}}}, 20u << 20, 0));
  CHECK_FALSE(enough_huge_pages(pages, 1, 2));
}

TEST_CASE("without pages of 2 MiB the smallest are advised, and a node without any is said") {
  const std::vector<HugePages> pages{
      {.node = 0, .page_size = 1u << 30, .folder = "/g"},
      {.node = 0, .page_size = 64u << 10, .reserved = 1, .free = 1, .folder = "/k"}};
  CHECK(huge_pages_to_reserve(pages, 100'000, 0) ==
        "2 huge pages of 64 KiB on NUMA node 0, where 1 is free: `echo 2 > /k/nr_hugepages`");
  CHECK(huge_pages_to_reserve(pages, 1, 3).find("the kernel has none of any size there") !=
        std::string::npos);
}

TEST_CASE("an interface serves AF_XDP when it is up, not too large, and each queue has a socket") {
  const KernelInterface good{
      .name = "eth0", .index = 3, .up = true, .mtu = 1500, .receive_queues = 2};
  CHECK(check_for_af_xdp(good, 2));
  const auto refused = [](const KernelInterface& interface, unsigned queues) {
    const auto result = check_for_af_xdp(interface, queues);
    return result ? std::string() : result.error().message;
  };
  CHECK(refused(good, 1).find("queues = 2") != std::string::npos);
  CHECK(refused(good, 3).find("queues = 2") != std::string::npos);
  auto down = good;
  down.up = false;
  CHECK(refused(down, 2).find("is down") != std::string::npos);
  auto jumbo = good;
  jumbo.mtu = kMaxAfXdpMtu + 1;
  CHECK(refused(jumbo, 2).find("ip link set eth0 mtu") != std::string::npos);
  jumbo.mtu = kMaxAfXdpMtu;
  CHECK(check_for_af_xdp(jumbo, 2));
}

}  // namespace
}  // namespace holdfast
