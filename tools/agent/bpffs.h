// SPDX-License-Identifier: Apache-2.0
// The folder on a bpffs that keeps attachments alive after the agent has ended: one sub-folder for
// each interface, with the pinned link in it. Makes system calls; one thread; the agents of one
// folder take turns by its lock.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace holdfast::agent {

class PinFolder {
 public:
  static constexpr const char* kDefault = "/sys/fs/bpf/holdfast-agent";

  /// Opens the folder and takes its lock until destruction. Makes it, and mounts a bpffs where
  /// there is none yet. Errors: permission; a folder that is on no bpffs and holds files; a mount
  /// that would end with this process.
  [[nodiscard]] static Result<PinFolder> make(const std::filesystem::path& folder);
  /// Opens a folder that is there. Nothing is made: a missing one, or one on no bpffs, is error
  /// code "not_found".
  [[nodiscard]] static Result<PinFolder> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Names of the interfaces that have a sub-folder, sorted.
  [[nodiscard]] Result<std::vector<std::string>> interfaces() const;
  /// Where the link of that interface is pinned.
  [[nodiscard]] std::filesystem::path link_of(std::string_view interface) const;

 private:
  PinFolder(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  UniqueFd lock_;
};

}  // namespace holdfast::agent
