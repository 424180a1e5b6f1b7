// For tests: directories that go away, files as bytes, and bodies of tests that
// run in a process of their own.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "penstock/service/store/meta_store.h"

namespace penstock::store {

// Removed at the end, with all that is in it.
class ScratchDirectory final {
 public:
  // In `parent`; empty: the tests' usual place, on a disk.
  explicit ScratchDirectory(const std::string& parent = "");
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Memory, where an fsync costs nothing, if the machine has such a place.
std::string FastParent();

// Files of a directory by their names. Empty where there is none.
using Files = std::map<std::string, std::string>;
Files ReadFiles(const std::string& directory);
// Makes `directory` hold exactly `files`.
void WriteFiles(const std::string& directory, const Files& files);

// What `store` holds; fails the test if it cannot be read.
std::vector<Record> AllRecords(MetaStore& store);

// Runs `body` in a forked process and returns what it returned: an empty string
// if all was well. A death is a message, too.
std::string RunInChild(const std::function<std::string()>& body);

}  // namespace penstock::store
