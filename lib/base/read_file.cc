// SPDX-License-Identifier: Apache-2.0
#include "lib/base/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "lib/base/printable.h"
#include "lib/base/unique_fd.h"

namespace holdfast {
namespace {

tl::unexpected<Error> unreadable(const std::string& path, int error) {
  std::string code = "refused";
  if (error == ENOENT || error == ENOTDIR) code = "not_found";
  if (error == EACCES || error == EPERM) code = "permission";
  return fail(fmt::format("can not be read: {}", std::generic_category().message(error)),
              printable_path(path), std::move(code));
}

}  // namespace

Result<std::string> read_file(const std::string& path, const FileKind& kind) {
  if (path.empty()) return fail("the name of the file to read is empty");
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return unreadable(path, errno);
  std::string text;
  std::array<char, 65536> piece;  // NOLINT: filled by read
  for (;;) {
    const auto got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, errno);
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kind.most)
      return fail(fmt::format("is larger than {}: not {}", kind.most_text, kind.what),
                  printable_path(path));
  }
}

}  // namespace holdfast
