// SPDX-License-Identifier: Apache-2.0
#include "lib/base/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace holdfast {
namespace {

/// 0 or an errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto took = ::write(descriptor, text.data(), text.size());
    if (took >= 0) {
      text.remove_prefix(static_cast<std::size_t>(took));
    } else if (errno == EAGAIN) {  // somebody who shares it made it so
      pollfd writable{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void keep_standard_descriptors() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // In the wrong direction, so that use fails as on a closed one. The lowest free number is
    // taken.
    const int direction = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int taken = ::open("/dev/null", direction);
  }
}

Result<void> write_out(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return {};
  return fail("standard output can not be written: " + std::generic_category().message(error), {},
              "no_output");
}

void write_error(std::string_view text) { write_all(STDERR_FILENO, text); }

}  // namespace holdfast
