#include "penstock/service/worker/kept_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace penstock::service {

absl::Status CheckKeptFolder(const std::string& filename) {
  const std::string mark = filename + ".shares";
  struct stat found = {};
  const bool is_there =
      lstat(mark.c_str(), &found) == 0 && S_ISREG(found.st_mode);
  if (is_there && found.st_uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "a worker writes snapshots where its own user has made them: expected '",
      mark, "', a file of user ", geteuid(), "; found ",
      is_there ? absl::StrCat("one of user ", found.st_uid) : "none",
      "\n  Give snapshot() a folder that workers see under the same name, and "
      "run the trainer as the workers' user; or start workers with --snapshots "
      "for the folder."));
}

}  // namespace penstock::service
