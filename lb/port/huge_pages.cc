// SPDX-License-Identifier: Apache-2.0
#include "lb/port/huge_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

std::size_t read_number(const fs::path& file) {
  std::ifstream stream(file);
  std::size_t number = 0;
  stream >> number;
  return stream ? number : 0;
}

void add_sizes(const fs::path& folder, int node, std::vector<HugePages>& all) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::size_t kilobytes = 0;  // "hugepages-2048kB"
    const auto name = entry.path().filename().string();
    if (std::sscanf(name.c_str(), "hugepages-%zukB", &kilobytes) != 1 || kilobytes == 0) continue;
    all.push_back({.node = node,
                   .page_size = kilobytes << 10,
                   .reserved = read_number(entry.path() / "nr_hugepages"),
                   .free = read_number(entry.path() / "free_hugepages"),
                   .folder = entry.path().string()});
  }
}

std::size_t pages_for(std::size_t bytes, std::size_t page_size) {
  return (bytes + page_size - 1) / page_size;
}

std::string size_text(std::size_t bytes) {
  return bytes % (std::size_t{1} << 20) == 0 ? fmt::format("{} MiB", bytes >> 20)
                                             : fmt::format("{} KiB", bytes >> 10);
}

/// Which size to advise: 2 MiB, which nearly every machine has and can still find after hours of
/// work; else the smallest.
const HugePages* advised(std::span<const HugePages> all, int node) {
  constexpr std::size_t kCommon = std::size_t{2} << 20;
  const HugePages* best = nullptr;
  for (const HugePages& pages : all) {
    if (pages.node != node) continue;
    if (pages.page_size == kCommon) return &pages;
    if (best == nullptr || pages.page_size < best->page_size) best = &pages;
  }
  return best;
}

}  // namespace

std::vector<HugePages> read_huge_pages() {
  std::vector<HugePages> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", error)) {
    int node = 0;
    if (std::sscanf(entry.path().filename().c_str(), "node%d", &node) == 1)
      add_sizes(entry.path() / "hugepages", node, all);
  }
  if (all.empty()) add_sizes("/sys/kernel/mm/hugepages", 0, all);
  return all;
}

bool enough_huge_pages(std::span<const HugePages> all, std::size_t bytes, std::optional<int> node) {
  return std::any_of(all.begin(), all.end(), [&](const HugePages& pages) {
    return (!node || pages.node == *node) && pages.free >= pages_for(bytes, pages.page_size);
  });
}

std::string huge_pages_to_reserve(std::span<const HugePages> all, std::size_t bytes, int node) {
  const HugePages* const pages = advised(all, node);
  if (pages == nullptr)
    return fmt::format("huge pages on NUMA node {}, but the kernel has none of any size there",
                       node);
  const auto needed = pages_for(bytes, pages->page_size);
  return fmt::format("{} huge pages of {} on NUMA node {}, where {} {} free: `echo {} > {}/{}`",
                     needed, size_text(pages->page_size), node, pages->free,
                     pages->free == 1 ? "is" : "are",
                     pages->reserved - std::min(pages->free, pages->reserved) + needed,
                     pages->folder, "nr_hugepages");
}

}  // namespace holdfast
