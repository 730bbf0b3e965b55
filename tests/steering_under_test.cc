// SPDX-License-Identifier: Apache-2.0
// The steering of one interface without any worker behind it: packets for a VIP end there, all
// others reach the kernel. Usage: steering_under_test INTERFACE [VIP...]. Prints "ready", then
// answers each line of standard input: "vips VIP..." changes the set ("done"), "stats" prints the
// counters "TO-WORKERS TO-KERNEL NO-SOCKET". Detaches at the end of its input.
#include <net/if.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "lb/steering/steering.h"

namespace holdfast {
namespace {

std::vector<IpAddress> parse(std::istream& words) {
  std::vector<IpAddress> result;
  for (std::string word; words >> word;) result.push_back(IpAddress::parse(word).value());
  return result;
}

int run(const std::string& interface, std::istream& vips) {
  auto steering = Steering::attach(
      {.port = "p", .interface = interface, .interface_index = if_nametoindex(interface.c_str())},
      parse(vips));
  if (!steering) {
    std::cerr << steering.error().text() << "\n";
    return 1;
  }
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "vips") {
      const auto set = steering->set_vips(parse(words));
      std::cout << (set ? "done" : set.error().text()) << std::endl;
    } else {
      const SteeringStats stats = steering->read_stats();
      std::cout << stats.to_workers << " " << stats.to_kernel << " " << stats.no_socket
                << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::stringstream vips;
  for (int i = 2; i < argc; ++i) vips << argv[i] << " ";
  return holdfast::run(argv[1], vips);
}
