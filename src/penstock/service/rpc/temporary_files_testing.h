// A folder of a test's own.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::rpc {

class TemporaryFolder final {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "rpcXXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }
  // The path of a file with that text.
  std::string Write(const std::string& name, const std::string& text,
                    mode_t mode = 0600) const {
    const std::string path = *this / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

 private:
  std::string path_;
};

}  // namespace penstock::rpc
