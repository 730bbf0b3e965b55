// SPDX-License-Identifier: Apache-2.0
#include "tools/agent/bpffs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "lib/base/printable.h"
#include "tools/agent/pin_name.h"
#include "tools/agent/system.h"

namespace holdfast::agent {
namespace {

namespace fs = std::filesystem;

/// For messages.
std::string shown(const fs::path& path) { return printable_path(path.string()); }

bool on_bpffs(const fs::path& path) {
  struct statfs info {};
  return statfs(path.c_str(), &info) == 0 && info.f_type == BPF_FS_MAGIC;
}

/// Whether what we mount would vanish with this process: `ip netns exec` and service managers give
/// their children a mount namespace of their own.
bool mounts_are_private() {
  std::error_code error;
  const auto ours = fs::read_symlink("/proc/self/ns/mnt", error);
  const auto first = fs::read_symlink("/proc/1/ns/mnt", error);
  if (!error) return ours != first;
  // Not allowed to look: `ip netns exec NAME` can still be told by the sysfs that it mounts under
  // the name of the network namespace.
  std::ifstream mounts("/proc/self/mounts");
  bool is_private = false;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string source, target, type;
    fields >> source >> target >> type;
    if (target == "/sys" && type == "sysfs") is_private = fs::exists("/run/netns/" + source, error);
  }
  return is_private;
}

Result<void> mount_bpffs(const fs::path& path) {
  if (mounts_are_private())
    return fail(fmt::format(
        "{} is on no bpffs, and one mounted from here would vanish with this process, because it "
        "has a mount namespace of its own (ip netns exec gives one): first run, outside of it, "
        "mount -t bpf bpf FOLDER with a folder outside /sys, then use --pin-dir FOLDER",
        shown(path)));
  if (mount("bpf", path.c_str(), "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") != 0)
    return system_failure(fmt::format("cannot mount a bpffs on {}", shown(path)), errno);
  return {};
}

Result<void> make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return {};
  if (path.string().find('.') != std::string::npos)
    return fail(fmt::format("cannot make {}: a bpffs allows no dot in a name", shown(path)));
  return system_failure(fmt::format("cannot make the folder {}", shown(path)), error.value());
}

/// The usual place for a bpffs: systemd mounts one there, other systems leave an empty folder in
/// which nothing can be made.
Result<void> mount_usual_place(const fs::path& path) {
  const fs::path usual = "/sys/fs/bpf";
  std::error_code error;
  if (!path.string().starts_with(usual.string() + "/") || !fs::is_directory(usual, error) ||
      on_bpffs(usual))
    return {};
  return mount_bpffs(usual);
}

Result<UniqueFd> lock(const fs::path& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return system_failure(fmt::format("cannot open {}", shown(path)), errno);
  if (flock(folder.get(), LOCK_EX) != 0)
    return system_failure(fmt::format("cannot lock {}", shown(path)), errno);
  return folder;
}

fs::path tidy(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

}  // namespace

Result<PinFolder> PinFolder::make(const fs::path& folder) {
  const auto path = tidy(folder);
  if (auto done = mount_usual_place(path); !done) return tl::unexpected(done.error());
  if (auto done = make_folder(path); !done) return tl::unexpected(done.error());
  if (!on_bpffs(path)) {
    std::error_code error;
    if (!fs::is_empty(path, error))
      return fail(
          fmt::format("--pin-dir {} holds files of something else: name a new folder, or "
                      "one on a bpffs",
                      shown(path)));
    if (auto done = mount_bpffs(path); !done) return tl::unexpected(done.error());
  }
  return open(path);
}

Result<PinFolder> PinFolder::open(const fs::path& folder) {
  const auto path = tidy(folder);
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0 && errno != ENOENT)
    return system_failure(fmt::format("cannot open {}", shown(path)), errno);
  if (info.f_type != BPF_FS_MAGIC)
    return fail(fmt::format("nothing is attached: there is no bpffs folder {}; what was attached "
                            "with another --pin-dir needs it here, too",
                            shown(path)),
                {}, "not_found");
  auto held = lock(path);
  if (!held) return tl::unexpected(held.error());
  return PinFolder(path, std::move(*held));
}

Result<std::vector<std::string>> PinFolder::interfaces() const {
  std::vector<std::string> result;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_directory(error))
      result.push_back(from_pin_name(entry->path().filename().string()));
  if (error) return system_failure(fmt::format("cannot list {}", path_.string()), error.value());
  std::ranges::sort(result);
  return result;
}

fs::path PinFolder::link_of(std::string_view interface) const {
  return path_ / to_pin_name(interface) / "xdp";
}

}  // namespace holdfast::agent
