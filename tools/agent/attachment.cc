// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/attachment.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "lib/base/printable.h"

namespace holdfast::agent {
namespace {

/// The XDP program that runs on an interface of this network namespace.
struct Running {
  std::uint32_t program_id = 0;  // 0: none
  XdpMode mode = XdpMode::native;
};

Result<Running> running_on(int interface_index) {
  bpf_xdp_query_opts query{};
  query.sz = sizeof(query);
  if (const int result = bpf_xdp_query(interface_index, 0, &query); result != 0)
    return system_failure("cannot ask the interface for its XDP program", -result);
  switch (query.attach_mode) {
    case XDP_ATTACHED_NONE:
      return Running{};
    case XDP_ATTACHED_DRV:
      return Running{query.drv_prog_id, XdpMode::native};
    case XDP_ATTACHED_SKB:
      return Running{query.skb_prog_id, XdpMode::generic};
    default:  // in the NIC itself, or several: never ours
      return Running{std::max({query.hw_prog_id, query.drv_prog_id, query.skb_prog_id}),
                     XdpMode::native};
  }
}

/// A link in the pin folder.
struct PinnedLink {
  std::string pinned_name;
  UniqueFd link;
  std::uint32_t program_id = 0;
  int interface_index = 0;  // 0: its interface is gone. No hint of the network namespace
};

Result<PinnedLink> open_pinned(const PinFolder& folder, const std::string& name) {
  const auto path = folder.link_of(name);
  UniqueFd link(bpf_obj_get(path.c_str()));
  if (!link.valid()) {
    if (errno == ENOENT) return fail("no such entry", {}, "not_found");
    return system_failure(fmt::format("cannot open {}", path.string()), errno);
  }
  bpf_link_info info{};
  __u32 length = sizeof(info);
  if (const int result = bpf_obj_get_info_by_fd(link.get(), &info, &length); result != 0)
    return system_failure(fmt::format("cannot read {}", path.string()), -result);
  return PinnedLink{name, std::move(link), info.prog_id, static_cast<int>(info.xdp.ifindex)};
}

Result<std::vector<PinnedLink>> all_pinned(const PinFolder& folder) {
  const auto names = folder.interfaces();
  if (!names) return tl::unexpected(names.error());
  std::vector<PinnedLink> result;
  for (const auto& name : *names) {
    auto pinned = open_pinned(folder, name);
    if (pinned)
      result.push_back(std::move(*pinned));
    else if (pinned.error().code != "not_found")
      return tl::unexpected(pinned.error());
  }
  return result;
}

/// The link that runs on that interface of this network namespace. Interface numbers repeat in
/// other namespaces and names change; the number of a program is the same everywhere.
Result<std::optional<PinnedLink>> link_behind(const PinFolder& folder, const Running& running) {
  if (running.program_id == 0) return std::nullopt;
  auto all = all_pinned(folder);
  if (!all) return tl::unexpected(all.error());
  for (auto& pinned : *all)
    if (pinned.program_id == running.program_id && pinned.interface_index != 0)
      return std::move(pinned);
  return std::nullopt;
}

/// Where a pinned link does its work, as seen from this network namespace.
struct Place {
  std::string interface;  // its name now, or the pinned one if it does not run here
  bool running = false;
  XdpMode mode = XdpMode::native;
};

Result<Place> place_of(const PinnedLink& pinned) {
  auto name = interface_name(pinned.interface_index);
  if (name.empty()) return Place{pinned.pinned_name};
  const auto running = running_on(pinned.interface_index);
  if (!running) return tl::unexpected(running.error());
  if (running->program_id != pinned.program_id) return Place{pinned.pinned_name};
  return Place{std::move(name), true, running->mode};
}

Error foreign_program(const PinFolder& folder, const std::string& interface, std::uint32_t id) {
  const auto program = open_program(id);
  const auto name = program ? program_name(*program) : std::string();
  if (name == kProgramName)
    return {
        fmt::format("{} is attached already, but not by way of {}: use the --pin-dir that it "
                    "was attached with",
                    interface, folder.path().string())};
  return {fmt::format("{} already runs another XDP program ({}, number {}): detach that one first",
                      interface, name.empty() ? "without a name" : name, id)};
}

void remove_pin(const PinFolder& folder, const std::string& pinned_name) {
  const auto path = folder.link_of(pinned_name);
  unlink(path.c_str());
  rmdir(path.parent_path().c_str());
}

Result<UniqueFd> create_link(const UniqueFd& program, int interface_index, XdpMode mode) {
  bpf_link_create_opts options{};
  options.sz = sizeof(options);
  options.flags = mode == XdpMode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  UniqueFd link(bpf_link_create(program.get(), interface_index, BPF_XDP, &options));
  if (!link.valid()) return system_failure(fmt::format("{} XDP was refused", name_of(mode)), errno);
  return link;
}

Result<void> pin(const PinFolder& folder, const std::string& interface, const UniqueFd& link) {
  const auto path = folder.link_of(interface);
  std::error_code error;
  std::filesystem::create_directory(path.parent_path(), error);
  if (error)
    return system_failure(fmt::format("cannot make {}", path.parent_path().string()),
                          error.value());
  if (const int result = bpf_obj_pin(link.get(), path.c_str()); result != 0)
    return system_failure(fmt::format("cannot pin {}", path.string()), -result);
  return {};
}

Result<Attached> replace(const AttachRequest& request, const Running& running,
                         const PinnedLink& old) {
  if ((request.mode == WantedMode::native && running.mode != XdpMode::native) ||
      (request.mode == WantedMode::generic && running.mode != XdpMode::generic))
    return fail(
        fmt::format("{0} runs in {1} mode, which a running attachment cannot change: "
                    "holdfast-agent detach {0} first, or leave --mode away",
                    request.interface.name, name_of(running.mode)));
  const auto predecessor = open_program(old.program_id);
  if (!predecessor) return tl::unexpected(predecessor.error());
  const auto program = load_program(request.settings, *predecessor, request.verbose);
  if (!program) return tl::unexpected(program.error());
  if (const int result = bpf_link_update(old.link.get(), program->get(), nullptr); result != 0)
    return system_failure(fmt::format("cannot replace the program on {}", request.interface.name),
                          -result);
  return Attached{running.mode, true};
}

Result<Attached> start(const PinFolder& folder, const AttachRequest& request) {
  const auto& interface = request.interface;
  if (const auto left = open_pinned(folder, interface.name)) {
    if (left->interface_index != 0)
      return fail(fmt::format(
          "{} already holds {} of another network namespace, or an interface that had this name "
          "before: use another --pin-dir, or detach that one first",
          folder.path().string(), interface.name));
    remove_pin(folder, interface.name);  // its interface was deleted
  } else if (left.error().code != "not_found") {
    return tl::unexpected(left.error());
  }
  const auto program = load_program(request.settings, UniqueFd(), request.verbose);
  if (!program) return tl::unexpected(program.error());

  Attached attached;
  attached.mode = request.mode == WantedMode::generic ? XdpMode::generic : XdpMode::native;
  auto link = create_link(*program, interface.index, attached.mode);
  if (!link && request.mode == WantedMode::automatic && link.error().code != "permission") {
    attached.native_refusal = link.error().message;
    attached.mode = XdpMode::generic;
    link = create_link(*program, interface.index, attached.mode);
  }
  if (!link)
    return fail(fmt::format("cannot attach to {}: {}{}", interface.name, link.error().message,
                            request.mode == WantedMode::native ? "; try --mode generic" : ""),
                {}, link.error().code);
  if (auto done = pin(folder, interface.name, *link); !done) return tl::unexpected(done.error());
  return attached;
}

}  // namespace

std::string_view name_of(XdpMode mode) {
  switch (mode) {
    case XdpMode::native:
      return "native";
    case XdpMode::generic:
      return "generic";
  }
  return "";
}

Result<Attached> attach(const PinFolder& folder, const AttachRequest& request) {
  const auto running = running_on(request.interface.index);
  if (!running) return tl::unexpected(running.error());
  const auto ours = link_behind(folder, *running);
  if (!ours) return tl::unexpected(ours.error());
  if (*ours) return replace(request, *running, **ours);
  if (running->program_id != 0)
    return tl::unexpected(foreign_program(folder, request.interface.name, running->program_id));
  return start(folder, request);
}

Result<std::vector<Attachment>> list_attachments(const PinFolder& folder) {
  const auto all = all_pinned(folder);
  if (!all) return tl::unexpected(all.error());
  std::vector<Attachment> result;
  for (const auto& pinned : *all) {
    const auto place = place_of(pinned);
    if (!place) return tl::unexpected(place.error());
    const auto program = open_program(pinned.program_id);
    if (!program) return tl::unexpected(program.error());
    auto state = read_program(*program);
    if (!state) return tl::unexpected(state.error());
    result.push_back({.interface = place->interface,
                      .pinned_name = pinned.pinned_name,
                      .running = place->running,
                      .interface_index = pinned.interface_index,
                      .mode = place->mode,
                      .program_id = pinned.program_id,
                      .state = std::move(*state)});
  }
  return result;
}

Result<void> detach(const PinFolder& folder, const std::string& interface) {
  const auto all = all_pinned(folder);
  if (!all) return tl::unexpected(all.error());
  const auto interface_here = find_interface(interface);
  for (const auto& pinned : *all) {
    const auto place = place_of(pinned);
    if (!place) return tl::unexpected(place.error());
    if (place->interface != interface) continue;
    // An entry that runs in another network namespace is not meant by the name of an interface
    // here.
    if (!place->running && pinned.interface_index != 0 && interface_here) continue;
    // Closing the last descriptor would do too, but later: at the kernel's leisure.
    if (const int result = bpf_link_detach(pinned.link.get()); result != 0)
      return system_failure(fmt::format("cannot detach {}", interface), -result);
    remove_pin(folder, pinned.pinned_name);
    return {};
  }
  if (interface_here) {
    const auto running = running_on(interface_here->index);
    if (!running) return tl::unexpected(running.error());
    if (running->program_id != 0)
      return tl::unexpected(foreign_program(folder, interface, running->program_id));
  }
  return fail(fmt::format("nothing is attached to {}", printable(interface)), {}, "not_found");
}

}  // namespace holdfast::agent
