// SPDX-License-Identifier: Apache-2.0
#include "lb/port/eal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>

#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

/// What DPDK said at error level. Drivers may log from any thread.
class FirstError {
 public:
  void forget() {
    const std::lock_guard lock(mutex_);
    line_.clear();
  }
  void note(std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (line_.empty()) line_ = line;
  }
  [[nodiscard]] std::string line() {
    const std::lock_guard lock(mutex_);
    return line_;
  }

 private:
  std::mutex mutex_;
  std::string line_;
};

FirstError& first_error() {
  static FirstError instance;
  return instance;
}

/// "EAL: cannot do it\n" -> "cannot do it": which part of DPDK spoke helps no operator.
std::string_view without_prefix(std::string_view line) {
  for (const std::string_view prefix : {"EAL: ", "ETHDEV: ", "VDEV: ", "vdev_bus: "})
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  return line;
}

ssize_t take_log_line(void*, const char* text, std::size_t size) {
  std::string_view line(text, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  if (line.empty()) return static_cast<ssize_t>(size);
  spdlog::debug("dpdk: {}", line);
  if (rte_log_cur_msg_loglevel() <= static_cast<int>(RTE_LOG_ERR))
    first_error().note(without_prefix(line));
  return static_cast<ssize_t>(size);
}

void take_over_log() {
  static FILE* const stream = [] {
    cookie_io_functions_t functions{};
    functions.write = take_log_line;
    FILE* opened = ::fopencookie(nullptr, "w", functions);
    if (opened != nullptr) ::setvbuf(opened, nullptr, _IOLBF, 0);
    return opened;
  }();
  if (stream != nullptr) rte_openlog_stream(stream);
}

/// A folder for the files that EAL makes while it starts; it needs none of them later. Otherwise
/// every process would leave a folder behind in /var/run/dpdk.
class PassingRuntimeFolder {
 public:
  PassingRuntimeFolder() {
    std::error_code error;
    auto pattern = (std::filesystem::temp_directory_path(error) / "holdfast-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) return;
    path_ = pattern;
    if (const char* before = std::getenv(kVariable)) before_ = before;
    ::setenv(kVariable, path_.c_str(), 1);
  }
  PassingRuntimeFolder(const PassingRuntimeFolder&) = delete;
  PassingRuntimeFolder& operator=(const PassingRuntimeFolder&) = delete;
  ~PassingRuntimeFolder() {
    if (path_.empty()) return;
    if (before_.empty())
      ::unsetenv(kVariable);
    else
      ::setenv(kVariable, before_.c_str(), 1);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  // systemd sets it for services, and EAL prefers it to every other place.
  static constexpr const char* kVariable = "RUNTIME_DIRECTORY";
  std::string path_;
  std::string before_;
};

}  // namespace

EalSurroundings read_surroundings() {
  EalSurroundings result;
  result.process = ::getpid();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) result.cpus.push_back(cpu);
  result.huge_pages = read_huge_pages();
  return result;
}

Result<Eal> Eal::start(const std::vector<std::string>& arguments) {
  take_over_log();
  // EAL reorders and keeps pointers to its arguments: they live as long as the process.
  static std::vector<std::string> kept;
  kept = arguments;
  std::vector<char*> pointers;
  std::string shown;
  for (auto& argument : kept) {
    pointers.push_back(argument.data());
    shown += (shown.empty() ? "" : " ") + argument;
  }
  pointers.push_back(nullptr);
  spdlog::debug("starting DPDK: {}", shown);

  const PassingRuntimeFolder folder;
  const DpdkCall call;
  if (rte_eal_init(static_cast<int>(kept.size()), pointers.data()) < 0)
    return fail(fmt::format("cannot start DPDK: {}", call.reason(rte_errno)));
  Eal eal;
  eal.running_ = true;
  return eal;
}

Eal::Eal(Eal&& other) noexcept : running_(std::exchange(other.running_, false)) {}
Eal& Eal::operator=(Eal&& other) noexcept {
  std::swap(running_, other.running_);
  return *this;
}
Eal::~Eal() {
  if (!running_) return;
  const DpdkCall call;
  rte_eal_cleanup();
}

DpdkCall::DpdkCall() {
  first_error().forget();
  if (spdlog::should_log(spdlog::level::debug)) return;
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere.valid()) return;
  std::fflush(stderr);
  saved_stderr_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (saved_stderr_ >= 0) ::dup2(nowhere.get(), STDERR_FILENO);
}

DpdkCall::~DpdkCall() {
  if (saved_stderr_ < 0) return;
  std::fflush(stderr);
  ::dup2(saved_stderr_, STDERR_FILENO);
  ::close(saved_stderr_);
}

std::string DpdkCall::reason(int error) const {
  const auto said = first_error().line();
  return said.empty() ? std::strerror(std::abs(error)) : said;
}

}  // namespace holdfast
