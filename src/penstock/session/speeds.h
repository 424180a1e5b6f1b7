// How fast this machine's disks and memory are: measured when somebody asks
// what limits a pipeline, and remembered in a directory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "penstock/io/disk_curve.h"
#include "penstock/io/file_system.h"
#include "penstock/session/host_limits.h"

namespace penstock::session {

// What tells the device of a file from others: its number, and the file system
// that is mounted from it, as /proc/self/mountinfo has it. Numbers alone are
// given again. Nothing if the file is not there.
std::optional<std::string> DeviceOf(const std::string& path,
                                    const ReadText& read);

// $XDG_CACHE_HOME/penstock/speeds, or that of the home directory; empty if
// there is neither.
std::string SpeedsDirectory(const ReadVariable& variable);

// One caller at a time.
class Speeds final {
 public:
  struct Options {
    // Where what was measured is kept for other processes; empty: nowhere.
    std::string directory;
    int64_t max_age_seconds = 24 * 3600;
    ReadText read;
    std::function<int64_t()> now_seconds;            // since 1970
    io::FileSystem* files = &io::LocalFileSystem();  // of the directory
    // What is measured, and how.
    std::function<absl::StatusOr<io::DiskCurve>(io::FileSystem&,
                                                absl::Span<const std::string>,
                                                const io::DiskCurveOptions&)>
        measure;
  };
  // Of this machine.
  static Options RealOptions();

  explicit Speeds(Options options) : options_(std::move(options)) {}

  // Of the device that the first of `paths` is on, with reads of about
  // `read_bytes`. Waits for storage, up to a second, if it is not known;
  // nothing if it cannot be measured. `paths` are absolute.
  std::optional<io::DiskCurve> OfFiles(io::FileSystem& files,
                                       absl::Span<const std::string> paths,
                                       double read_bytes);

  // What reading back gives from a file that is written into `directory` for
  // that, in bytes a second. Waits likewise.
  std::optional<double> OfDirectory(const std::string& directory);

  // What `threads` threads copy in memory, in bytes a second. Takes some
  // hundredths of a second, once.
  double OfMemory(int threads);

 private:
  // Kept under `key`, in this process or in the directory.
  std::optional<io::DiskCurve> Find(const std::string& key);
  void Keep(const std::string& key, const io::DiskCurve& curve);
  std::string FileOf(const std::string& key) const;
  void Forget() const;

  const Options options_;
  std::map<std::string, io::DiskCurve> known_;
  std::optional<double> memory_;
};

// A curve as text, and back; nothing if it is damaged, or of another key.
std::string CurveText(const std::string& key, int64_t seconds,
                      const io::DiskCurve& curve);
std::optional<io::DiskCurve> CurveOf(const std::string& text,
                                     const std::string& key,
                                     int64_t least_seconds);

}  // namespace penstock::session
