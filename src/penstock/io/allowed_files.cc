#include "penstock/io/allowed_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "penstock/base/socket.h"
#include "penstock/base/status.h"
#include "penstock/io/opened_file.h"
#include "penstock/io/system_error.h"

namespace penstock::io {
namespace {

// Without symbolic links or dots, as far as it exists; what does not is taken
// as it is written. Unset: that cannot be told.
std::optional<std::string> Canonical(std::string_view path) {
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(std::string(path), error);
  if (error) return std::nullopt;
  std::string found = std::filesystem::weakly_canonical(absolute, error);
  if (error) return std::nullopt;
  while (found.size() > 1 && found.back() == '/') found.pop_back();
  return found;
}

class AllowedFiles final : public FileSystem {
 public:
  struct Folder {
    std::string path;  // canonical
    Descriptor fd;
  };

  AllowedFiles(std::vector<Folder> folders, std::vector<Folder> written,
               std::string flag)
      : folders_(std::move(folders)),
        written_(std::move(written)),
        flag_(std::move(flag)) {}

  absl::StatusOr<std::unique_ptr<File>> Open(std::string_view path) override {
    PENSTOCK_ASSIGN_OR_RETURN(Descriptor fd, OpenBeneath(path));
    return FileOf(std::move(fd), std::string(path));
  }

  absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) override {
    // The folder before the first part that is a pattern.
    const size_t special = pattern.find_first_of("*?[\\");
    const size_t slash = pattern.rfind('/', special);
    const std::string_view folder =
        slash == std::string_view::npos ? "." : pattern.substr(0, slash + 1);
    PENSTOCK_RETURN_IF_ERROR(CheckAs(folder, pattern));
    if (special != std::string_view::npos) {
      for (const absl::string_view part : absl::StrSplit(
               absl::string_view(pattern.data(), pattern.size()), '/')) {
        if (part == "..") return Refused(pattern);
      }
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                              LocalFileSystem().Glob(pattern));
    // Not by their own names: they are none of the caller's business.
    for (const std::string& path : paths) {
      PENSTOCK_RETURN_IF_ERROR(CheckAs(path, pattern));
    }
    return paths;
  }

  absl::StatusOr<bool> Exists(std::string_view path) override {
    PENSTOCK_RETURN_IF_ERROR(CheckAs(path, path));
    return LocalFileSystem().Exists(path);
  }
  absl::StatusOr<bool> IsDirectory(std::string_view path) override {
    PENSTOCK_RETURN_IF_ERROR(CheckAs(path, path));
    return LocalFileSystem().IsDirectory(path);
  }
  FileStamp Stamp(std::string_view path) override {
    if (!CheckAs(path, path).ok()) return {.size = -1};
    return LocalFileSystem().Stamp(path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      std::string_view path) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string found, Written(path));
    return LocalFileSystem().Create(found);
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string found, Written(from));
    PENSTOCK_ASSIGN_OR_RETURN(const std::string named, Written(to));
    return LocalFileSystem().Rename(found, named);
  }
  absl::Status Remove(std::string_view path) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string found, Written(path));
    return LocalFileSystem().Remove(found);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      std::string_view path) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string found, Written(path));
    return LocalFileSystem().Lock(found);
  }

 private:
  absl::Status Refused(std::string_view name) const {
    return absl::PermissionDeniedError(absl::StrCat(
        "files must lie in ",
        absl::StrJoin(folders_, " or ",
                      [](std::string* out, const Folder& folder) {
                        absl::StrAppend(out, folder.path);
                      }),
        ", which ", flag_, " of the worker allows; got '", std::string(name),
        "'\n  Have the worker started with ", flag_, " for its folder."));
  }
  // Where it is, without links, if it may be written.
  absl::StatusOr<std::string> Written(std::string_view path) const {
    const std::optional<std::string> canonical = Canonical(path);
    if (canonical && FolderOf(written_, *canonical) != nullptr) {
      return *canonical;
    }
    return absl::PermissionDeniedError(
        absl::StrCat("nothing is written where ", flag_,
                     " says what is read; got '", std::string(path), "'"));
  }

  // The folder that `canonical` lies in; null: in none.
  const Folder* FolderOf(std::string_view canonical) const {
    return FolderOf(folders_, canonical);
  }
  static const Folder* FolderOf(const std::vector<Folder>& folders,
                                std::string_view canonical) {
    for (const Folder& folder : folders) {
      if (folder.path == "/" || canonical == folder.path ||
          (canonical.starts_with(folder.path) &&
           canonical[folder.path.size()] == '/')) {
        return &folder;
      }
    }
    return nullptr;
  }
  // An error names it `name`.
  absl::Status CheckAs(std::string_view path, std::string_view name) const {
    const std::optional<std::string> canonical = Canonical(path);
    if (canonical && FolderOf(*canonical) != nullptr) return absl::OkStatus();
    return Refused(name);
  }

  absl::StatusOr<Descriptor> OpenBeneath(std::string_view path) const {
    if (path.find('\0') != std::string_view::npos) return Refused(path);
    const std::optional<std::string> canonical = Canonical(path);
    const Folder* folder = canonical ? FolderOf(*canonical) : nullptr;
    if (folder == nullptr) return Refused(path);
    std::string_view rest = *canonical;
    rest.remove_prefix(folder->path.size());
    while (rest.starts_with('/')) rest.remove_prefix(1);
    const std::string below(rest.empty() ? std::string_view(".") : rest);
    // All links were followed: one that is met now was put there since.
    open_how how = {};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    Descriptor fd(static_cast<int>(syscall(SYS_openat2, folder->fd.get(),
                                           below.c_str(), &how, sizeof(how))));
    if (!fd.is_open() && errno == ENOSYS) {
      return OpenAndLookAgain(path, *canonical);
    }
    if (fd.is_open()) return fd;
    if (errno == ELOOP || errno == EXDEV) return Refused(path);
    return SystemError(errno, "cannot open the file", path);
  }

  // For kernels before 5.6.
  absl::StatusOr<Descriptor> OpenAndLookAgain(
      std::string_view path, const std::string& canonical) const {
    Descriptor fd(open(canonical.c_str(),
                       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!fd.is_open()) return SystemError(errno, "cannot open the file", path);
    char opened[4096];
    const ssize_t size =
        readlink(absl::StrCat("/proc/self/fd/", fd.get()).c_str(), opened,
                 sizeof(opened));
    if (size <= 0 || FolderOf(std::string_view(
                         opened, static_cast<size_t>(size))) == nullptr) {
      return Refused(path);
    }
    return fd;
  }

  const std::vector<Folder> folders_;
  const std::vector<Folder> written_;
  const std::string flag_;
};

absl::StatusOr<std::vector<AllowedFiles::Folder>> Opened(
    const std::vector<std::string>& folders, const std::string& flag) {
  std::vector<AllowedFiles::Folder> opened;
  for (const std::string& folder : folders) {
    const std::optional<std::string> path = Canonical(folder);
    Descriptor fd(path ? open(path->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)
                       : -1);
    if (folder.empty() || !fd.is_open()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": expected a folder that is there; got '", folder, "'"));
    }
    opened.push_back({*path, std::move(fd)});
  }
  return opened;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> MakeAllowedFileSystem(
    const std::vector<std::string>& folders, const std::string& flag,
    const std::vector<std::string>& written) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<AllowedFiles::Folder> opened,
                            Opened(folders, flag));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<AllowedFiles::Folder> to_write,
                            Opened(written, flag));
  return std::make_unique<AllowedFiles>(std::move(opened), std::move(to_write),
                                        flag);
}

}  // namespace penstock::io
