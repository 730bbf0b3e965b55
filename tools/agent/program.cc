// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "decap.skel.h"
#include "tools/agent/system.h"

namespace holdfast::agent {
namespace {

using Skeleton = std::unique_ptr<decap, decltype(&decap::destroy)>;

/// libbpf returns -errno.
tl::unexpected<Error> load_failure(std::string_view what, int result) {
  return system_failure(what, -result);
}

// libbpf's own words are for developers: a refused program makes pages of them.
void be_quiet() { libbpf_set_print(nullptr); }

void speak() {
  libbpf_set_print([](libbpf_print_level, const char* format, va_list arguments) {
    return std::vfprintf(stderr, format, arguments);
  });
}

template <class T>
Result<void> fill(const bpf_map* map, const std::vector<T>& list) {
  const __u32 present = 1;
  for (const auto& entry : list) {
    const auto key = to_key(entry);
    const int result =
        bpf_map__update_elem(map, &key, sizeof(key), &present, sizeof(present), BPF_NOEXIST);
    if (result != 0)
      return load_failure(fmt::format("cannot give {} to the program", entry.text()), result);
  }
  return {};
}

template <class Key>
auto read_keys(const UniqueFd& map) {
  std::vector<decltype(from_key(Key{}))> list;
  Key key{};
  for (const Key* previous = nullptr; bpf_map_get_next_key(map.get(), previous, &key) == 0;
       previous = &key)
    list.push_back(from_key(key));
  std::ranges::sort(list);
  return list;
}

Result<Counters> read_counters(const UniqueFd& map) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return load_failure("cannot count the CPUs", cpus);
  Counters counters{};
  std::vector<__u64> by_cpu(static_cast<std::size_t>(cpus));
  for (__u32 slot = 0; slot < counters.size(); ++slot) {
    if (const int result = bpf_map_lookup_elem(map.get(), &slot, by_cpu.data()); result != 0)
      return load_failure("cannot read the counters", result);
    counters.at(slot) = std::accumulate(by_cpu.begin(), by_cpu.end(), std::uint64_t{0});
  }
  return counters;
}

/// The map of that name among those that `program` uses.
Result<UniqueFd> map_of(const UniqueFd& program, std::string_view name) {
  std::array<__u32, 16> ids{};
  bpf_prog_info info{};
  info.map_ids = reinterpret_cast<std::uintptr_t>(ids.data());
  info.nr_map_ids = ids.size();
  __u32 length = sizeof(info);
  if (const int result = bpf_obj_get_info_by_fd(program.get(), &info, &length); result != 0)
    return load_failure("cannot ask about the running program", result);
  for (std::size_t i = 0; i < std::min<std::size_t>(info.nr_map_ids, ids.size()); ++i) {
    UniqueFd map(bpf_map_get_fd_by_id(ids.at(i)));
    if (!map.valid()) return system_failure("cannot open the running program's maps", errno);
    bpf_map_info map_info{};
    length = sizeof(map_info);
    if (const int result = bpf_obj_get_info_by_fd(map.get(), &map_info, &length); result != 0)
      return load_failure("cannot ask about the running program's maps", result);
    if (name == map_info.name) return map;
  }
  return fail(
      fmt::format("the running program has no map {}: another version of holdfast-agent "
                  "loaded it; attach again with this one",
                  name));
}

}  // namespace

const std::array<Outcome, OUTCOME_COUNT>& outcomes() {
  enum { PASS, DROP };
  static constexpr std::array<Outcome, OUTCOME_COUNT> kOutcomes = {{
#define HOLDFAST_DECAP_ROW(name, verdict, sentence) {#name, sentence, (verdict) == DROP},
      HOLDFAST_DECAP_OUTCOMES(HOLDFAST_DECAP_ROW)
#undef HOLDFAST_DECAP_ROW
  }};
  return kOutcomes;
}

Result<UniqueFd> load_program(const DecapSettings& settings, const UniqueFd& predecessor,
                              bool verbose) {
  verbose ? speak() : be_quiet();
  const Skeleton skeleton(decap::open(), &decap::destroy);
  if (!skeleton) return system_failure("cannot prepare the program", errno);

  if (predecessor.valid()) {
    // Counters of a shape that this version does not know are left behind, and start at zero.
    if (const auto counters = map_of(predecessor, "counters")) {
      const bpf_map* const wanted = skeleton->maps.counters;
      bpf_map_info info{};
      __u32 length = sizeof(info);
      if (bpf_obj_get_info_by_fd(counters->get(), &info, &length) == 0 &&
          info.type == bpf_map__type(wanted) && info.max_entries == bpf_map__max_entries(wanted) &&
          info.value_size == bpf_map__value_size(wanted))
        if (const int result = bpf_map__reuse_fd(skeleton->maps.counters, counters->get());
            result != 0)
          return load_failure("cannot take over the counters", result);
    }
  }
  if (const int result = decap::load(skeleton.get()); result != 0)
    return load_failure(
        "the kernel refused the decapsulation program (Linux 5.18 or newer is needed; --verbose "
        "shows its reasons)",
        result);
  if (auto done = fill(skeleton->maps.vips, settings.vips); !done)
    return tl::unexpected(done.error());
  if (auto done = fill(skeleton->maps.lbs, settings.lbs); !done)
    return tl::unexpected(done.error());
  if (auto done = fill(skeleton->maps.locals, settings.locals); !done)
    return tl::unexpected(done.error());
  UniqueFd program(::dup(bpf_program__fd(skeleton->progs.holdfast_decap)));
  if (!program.valid()) return system_failure("cannot keep the program", errno);
  return program;
}

Result<ProgramState> read_program(const UniqueFd& program) {
  const auto vips = map_of(program, "vips");
  const auto lbs = map_of(program, "lbs");
  const auto locals = map_of(program, "locals");
  const auto counters = map_of(program, "counters");
  for (const auto* map : {&vips, &lbs, &locals, &counters})
    if (!*map) return tl::unexpected(map->error());
  auto counted = read_counters(*counters);
  if (!counted) return tl::unexpected(counted.error());
  return ProgramState{{read_keys<holdfast_address>(*vips), read_keys<holdfast_prefix>(*lbs),
                       read_keys<holdfast_address>(*locals)},
                      *counted};
}

Result<UniqueFd> open_program(std::uint32_t id) {
  UniqueFd program(bpf_prog_get_fd_by_id(id));
  if (!program.valid()) return system_failure("cannot open the running program", errno);
  return program;
}

std::string program_name(const UniqueFd& program) {
  bpf_prog_info info{};
  __u32 length = sizeof(info);
  if (bpf_obj_get_info_by_fd(program.get(), &info, &length) != 0) return {};
  return info.name;
}

}  // namespace holdfast::agent
