// A folder for what must not outlive this process.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"

namespace penstock::service {

// Goes with this object. If the process is killed, the next one that makes a
// folder of the same kind removes it: a lock tells which are still used.
class ScratchFolder final {
 public:
  // `kind` and six letters, where temporary files are. Its owner's alone.
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Make(
      const std::string& kind);
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const Descriptor lock_;
};

}  // namespace penstock::service
