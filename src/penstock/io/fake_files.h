// For tests: files in memory whose storage can be slow, shut or broken.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/mutex.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

// A door that blocking reads stop at. Thread-safe.
class Gate final {
 public:
  void Open() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    is_open_ = true;
    changed_.SignalAll();
  }
  void Pass() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++num_arrived_;
    changed_.SignalAll();
    while (!is_open_) changed_.Wait(&mutex_);
  }
  // Returns when `n` reads have come to the gate.
  void AwaitArrivals(int n) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (num_arrived_ < n) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  int num_arrived_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Settings may change between reads, not during them.
class FakeFiles final : public FileSystem {
 public:
  struct Settings {
    bool is_cached = true;              // else TryReadAt always would wait
    std::shared_ptr<Gate> gate;         // where ReadAt stops, if set
    std::shared_ptr<Gate> open_gate;    // where Open stops, if set
    std::optional<int64_t> broken_at;   // reads that touch this byte fail
    std::optional<int64_t> shrinks_to;  // bytes left once it is open
  };

  Settings settings;
  std::map<std::string, std::string> contents;

  absl::StatusOr<std::unique_ptr<File>> Open(std::string_view path) override {
    if (settings.open_gate != nullptr) settings.open_gate->Pass();
    const auto found = contents.find(std::string(path));
    if (found == contents.end()) {
      return absl::NotFoundError(std::string(path));
    }
    return std::make_unique<FakeFile>(found->second, settings);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      std::string_view path) override {
    std::string& bytes = contents[std::string(path)];
    bytes.clear();
    return std::make_unique<FakeWritableFile>(bytes);
  }

  absl::Status Rename(std::string_view from, std::string_view to) override {
    contents[std::string(to)] = contents[std::string(from)];
    return Remove(from);
  }
  absl::Status Remove(std::string_view path) override {
    contents.erase(std::string(path));
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(std::string_view) override {
    return absl::UnimplementedError("FakeFiles has no locks");
  }

  absl::StatusOr<std::vector<std::string>> Glob(std::string_view) override {
    return absl::UnimplementedError("FakeFiles has no patterns");
  }
  absl::StatusOr<bool> Exists(std::string_view path) override {
    return contents.contains(std::string(path));
  }
  absl::StatusOr<bool> IsDirectory(std::string_view) override { return false; }

 private:
  class FakeFile final : public File {
   public:
    FakeFile(std::string bytes, Settings settings)
        : bytes_(std::move(bytes)), settings_(std::move(settings)) {}

    int64_t size() const override {
      return static_cast<int64_t>(bytes_.size());
    }

    absl::StatusOr<size_t> ReadAt(int64_t offset, char* dst,
                                  size_t num_bytes) override {
      if (settings_.gate != nullptr) settings_.gate->Pass();
      const std::string_view visible = std::string_view(bytes_).substr(
          0, settings_.shrinks_to.value_or(size()));
      const auto start = std::min(static_cast<size_t>(offset), visible.size());
      const std::string_view read = visible.substr(start, num_bytes);
      const int64_t end = offset + static_cast<int64_t>(read.size());
      if (settings_.broken_at.has_value() && offset <= *settings_.broken_at &&
          *settings_.broken_at < end) {
        return absl::DataLossError(
            absl::StrCat("broken at ", *settings_.broken_at));
      }
      std::memcpy(dst, read.data(), read.size());
      return read.size();
    }

    absl::StatusOr<std::optional<size_t>> TryReadAt(int64_t offset, char* dst,
                                                    size_t n) override {
      if (!settings_.is_cached) return std::nullopt;
      absl::StatusOr<size_t> read = ReadAt(offset, dst, n);
      if (!read.ok()) return read.status();
      return *read;
    }

   private:
    const std::string bytes_;
    const Settings settings_;
  };

  class FakeWritableFile final : public WritableFile {
   public:
    explicit FakeWritableFile(std::string& bytes) : bytes_(bytes) {}
    absl::Status Append(std::string_view bytes) override {
      bytes_.append(bytes);
      return absl::OkStatus();
    }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    std::string& bytes_;
  };
};

}  // namespace penstock::io
