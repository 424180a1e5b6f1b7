#include "penstock/io/glob.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "penstock/base/status.h"
#include "penstock/io/system_error.h"

namespace penstock::io {
namespace {

bool HasWildcard(std::string_view component) {
  return component.find_first_of("*?[") != std::string_view::npos;
}

std::string WithoutEscapes(std::string_view component) {
  std::string name;
  for (size_t i = 0; i < component.size(); ++i) {
    if (component[i] == '\\' && i + 1 < component.size()) ++i;
    name.push_back(component[i]);
  }
  return name;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<std::vector<std::string>> MatchingNames(
    const std::string& directory, const std::string& component) {
  std::vector<std::string> names;
  const char* path = directory.empty() ? "." : directory.c_str();
  std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(path), closedir);
  if (listing == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return names;
    return SystemError(errno, "cannot list the directory", path);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(listing.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (fnmatch(component.c_str(), entry->d_name, 0) == 0) {
      names.emplace_back(name);
    }
  }
  if (errno != 0) return SystemError(errno, "cannot list the directory", path);
  return names;
}

// Appends the paths that begin with `prefix`, taken as it is, and go on as the
// pattern `rest` says.
absl::Status Expand(std::string prefix, std::string_view rest,
                    std::vector<std::string>& paths) {
  while (!rest.empty() && rest.front() == '/') {
    prefix.push_back('/');
    rest.remove_prefix(1);
  }
  const std::string component(rest.substr(0, rest.find('/')));
  rest.remove_prefix(component.size());
  if (!HasWildcard(component)) {
    prefix += WithoutEscapes(component);
    if (!rest.empty()) return Expand(std::move(prefix), rest, paths);
    struct stat info;
    if (!prefix.empty() && lstat(prefix.c_str(), &info) == 0) {
      paths.push_back(std::move(prefix));
    }
    return absl::OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            MatchingNames(prefix, component));
  for (const std::string& name : names) {
    std::string path = prefix + name;
    if (rest.empty()) {
      paths.push_back(std::move(path));
    } else if (IsDirectory(path)) {
      PENSTOCK_RETURN_IF_ERROR(Expand(std::move(path), rest, paths));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LocalGlob(std::string_view pattern) {
  std::vector<std::string> paths;
  PENSTOCK_RETURN_IF_ERROR(Expand("", pattern, paths));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace penstock::io
