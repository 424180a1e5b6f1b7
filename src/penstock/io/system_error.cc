#include "penstock/io/system_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace penstock::io {

absl::Status SystemError(int number, std::string_view what,
                         std::string_view path) {
  const std::string message = absl::StrCat(
      std::string(what), ": ", std::generic_category().message(number), ": ",
      std::string(path));
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EISDIR:
      return absl::FailedPreconditionError(absl::StrCat(
          "expected a file; found a directory: ", std::string(path)));
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    case ENAMETOOLONG:
    case EINVAL:
    case ELOOP:
      return absl::InvalidArgumentError(message);
    case EIO:
      return absl::DataLossError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace penstock::io
