#include "penstock/service/worker/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::service {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "/lock";
constexpr int kTries = 8;

fs::path TemporaryFiles() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && given[0] == '/' ? given : "/tmp";
}

// Open and locked, unless somebody else has it or it is not this user's.
Descriptor Lock(const std::string& folder, int flags) {
  Descriptor lock(open((folder + kLock).c_str(),
                       O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  struct stat found;
  if (!lock.is_open() || fstat(lock.get(), &found) != 0 ||
      found.st_uid != geteuid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      fstat(lock.get(), &found) != 0 || found.st_nlink == 0) {
    return {};
  }
  return lock;
}

void RemoveLeftOver(const fs::path& in, const std::string& kind) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(in, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, kind) || !entry.is_directory(ignored) ||
        entry.is_symlink(ignored)) {
      continue;
    }
    const Descriptor lock = Lock(entry.path().string(), 0);
    if (lock.is_open()) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Make(
    const std::string& kind) {
  const fs::path in = TemporaryFiles();
  RemoveLeftOver(in, kind);
  for (int i = 0; i < kTries; ++i) {
    std::string path = (in / absl::StrCat(kind, "XXXXXX")).string();
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot make the folder ", path, ": ",
                       std::strerror(errno), "\n  TMPDIR says where."));
    }
    Descriptor lock = Lock(path, O_CREAT);
    if (!lock.is_open()) continue;  // it was taken for one that is left over
    return std::unique_ptr<ScratchFolder>(
        new ScratchFolder(std::move(path), std::move(lock)));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot keep a folder in ", in.string()));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace penstock::service
