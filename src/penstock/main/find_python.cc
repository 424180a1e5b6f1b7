#include "penstock/main/find_python.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  const std::vector<std::string> folders =
      absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':');
  for (const std::string& folder : folders) {
    std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return name;
}

std::string FindPython() {
  if (const char* given = std::getenv("PENSTOCK_PYTHON")) {
    return FindProgram(given);
  }
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (size > 0) {
    std::string beside(path, static_cast<size_t>(size));
    beside = beside.substr(0, beside.rfind('/') + 1) + "python3";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return FindProgram("python3");
}

}  // namespace penstock
