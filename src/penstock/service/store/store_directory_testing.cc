#include "penstock/service/store/store_directory_testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::store {

namespace fs = std::filesystem;

ScratchDirectory::ScratchDirectory(const std::string& parent)
    : path_((parent.empty() ? testing::TempDir() : parent) +
            "/penstock_store_XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) std::abort();
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string FastParent() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : testing::TempDir();
}

Files ReadFiles(const std::string& directory) {
  Files files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = std::string(
        std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

void WriteFiles(const std::string& directory, const Files& files) {
  fs::create_directory(directory);
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (files.count(entry.path().filename()) == 0) fs::remove(entry.path());
  }
  for (const auto& [name, bytes] : files) {
    std::ofstream out(absl::StrCat(directory, "/", name),
                      std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

std::vector<Record> AllRecords(MetaStore& store) {
  absl::StatusOr<std::vector<Record>> records = store.Scan("");
  EXPECT_TRUE(records.ok()) << records.status();
  return records.ok() ? *std::move(records) : std::vector<Record>();
}

std::string RunInChild(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "cannot make a pipe";
  const pid_t child = fork();
  if (child < 0) return "cannot fork";
  if (child == 0) {
    close(ends[0]);
    const std::string said = body();
    (void)!write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char bytes[4096];
  ssize_t n;
  while ((n = read(ends[0], bytes, sizeof(bytes))) > 0) {
    said.append(bytes, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) absl::StrAppend(&said, " (ended with ", status, ")");
  return said;
}

}  // namespace penstock::store
