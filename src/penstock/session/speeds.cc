#include "penstock/session/speeds.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "penstock/base/clock.h"
#include "penstock/base/hash.h"

namespace penstock::session {
namespace {

// Changes when what is measured, or how it is written, does.
constexpr absl::string_view kFirstLine = "penstock speeds 1";
constexpr size_t kMaxText = 4096;
constexpr double kLeastRead = 4 << 10;
constexpr double kMostRead = 1 << 20;
constexpr int64_t kProbeBytes = int64_t{16} << 20;
// In memory, by all threads together and by one.
constexpr size_t kCopyBytes = size_t{64} << 20;
constexpr size_t kMostCopied = size_t{16} << 20;
constexpr size_t kLeastCopied = size_t{2} << 20;
constexpr int kCopies = 3;

// Sizes within a factor of two are one.
size_t SizeClass(double bytes) {
  double size = kLeastRead;
  while (size * 1.5 < std::min(bytes, kMostRead)) size *= 2;
  return static_cast<size_t>(size);
}

std::string Checksum(absl::string_view text) {
  return absl::StrFormat("%016x",
                         HashBytes(std::string_view(text.data(), text.size())));
}

}  // namespace

std::optional<std::string> DeviceOf(const std::string& path,
                                    const ReadText& read) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  const std::string number =
      absl::StrCat(major(info.st_dev), ":", minor(info.st_dev));
  const std::string mounts = read("/proc/self/mountinfo").value_or("");
  for (absl::string_view line : absl::StrSplit(mounts, '\n')) {
    // id parent major:minor root mountpoint options… - type source …
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
    if (parts.size() < 5 || parts[2] != number) continue;
    const auto dash = std::find(parts.begin(), parts.end(), "-");
    if (parts.end() - dash < 3) continue;
    return absl::StrCat(number, " ", parts[4], " ", dash[1], " ", dash[2]);
  }
  return number;
}

std::string SpeedsDirectory(const ReadVariable& variable) {
  const std::string cache = variable("XDG_CACHE_HOME").value_or("");
  if (!cache.empty() && cache[0] == '/') {
    return absl::StrCat(cache, "/penstock/speeds");
  }
  const std::string home = variable("HOME").value_or("");
  if (home.empty() || home[0] != '/') return "";
  return absl::StrCat(home, "/.cache/penstock/speeds");
}

std::string CurveText(const std::string& key, int64_t seconds,
                      const io::DiskCurve& curve) {
  std::string text = absl::StrCat(kFirstLine, "\n", key, "\n", seconds, "\n",
                                  curve.read_bytes, "\n");
  for (const io::DiskCurve::Point& point : curve.points) {
    absl::StrAppend(&text, point.reads, " ", point.bytes_per_second, "\n");
  }
  return absl::StrCat(text, Checksum(text), "\n");
}

std::optional<io::DiskCurve> CurveOf(const std::string& text,
                                     const std::string& key,
                                     int64_t least_seconds) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.size() < 7 || !lines.back().empty()) return std::nullopt;
  const absl::string_view sum = lines[lines.size() - 2];
  const absl::string_view all(text);
  if (Checksum(all.substr(0, static_cast<size_t>(sum.data() - all.data()))) !=
      sum) {
    return std::nullopt;
  }
  lines.resize(lines.size() - 2);
  int64_t seconds;
  io::DiskCurve curve;
  if (lines[0] != kFirstLine || lines[1] != key ||
      !absl::SimpleAtoi(lines[2], &seconds) || seconds < least_seconds ||
      !absl::SimpleAtoi(lines[3], &curve.read_bytes)) {
    return std::nullopt;
  }
  for (size_t i = 4; i < lines.size(); ++i) {
    const std::vector<absl::string_view> parts = absl::StrSplit(lines[i], ' ');
    io::DiskCurve::Point point;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &point.reads) ||
        !absl::SimpleAtod(parts[1], &point.bytes_per_second) ||
        point.reads < 1 || !(point.bytes_per_second > 0)) {
      return std::nullopt;
    }
    curve.points.push_back(point);
  }
  return curve;
}

Speeds::Options Speeds::RealOptions() {
  Options options;
  options.directory = SpeedsDirectory([](const std::string& name) {
    const char* text = std::getenv(name.c_str());
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  });
  options.read = [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  options.now_seconds = [] { return static_cast<int64_t>(time(nullptr)); };
  options.measure = [](io::FileSystem& files,
                       absl::Span<const std::string> paths,
                       const io::DiskCurveOptions& how) {
    return io::MeasureDisk(files, paths, how);
  };
  return options;
}

std::string Speeds::FileOf(const std::string& key) const {
  return absl::StrCat(options_.directory, "/", Checksum(key));
}

std::optional<io::DiskCurve> Speeds::Find(const std::string& key) {
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  if (options_.directory.empty()) return std::nullopt;
  const std::string path = FileOf(key);
  if (options_.files->Stamp(path).size > static_cast<int64_t>(kMaxText)) {
    return std::nullopt;
  }
  const absl::StatusOr<std::string> text = io::ReadFile(*options_.files, path);
  if (!text.ok()) return std::nullopt;
  const int64_t least = options_.now_seconds() - options_.max_age_seconds;
  std::optional<io::DiskCurve> curve = CurveOf(*text, key, least);
  if (curve.has_value()) known_[key] = *curve;
  return curve;
}

void Speeds::Keep(const std::string& key, const io::DiskCurve& curve) {
  known_[key] = curve;
  if (options_.directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  // Written beside it and renamed; who cannot keep it measures again.
  const std::string path = FileOf(key);
  const std::string beside = absl::StrCat(path, ".", getpid());
  const absl::Status written = io::WriteFile(
      *options_.files, beside, CurveText(key, options_.now_seconds(), curve));
  if (!written.ok() || !options_.files->Rename(beside, path).ok()) {
    options_.files->Remove(beside).IgnoreError();
  }
  Forget();
}

// Of disks that are mounted no more, nobody asks again.
void Speeds::Forget() const {
  namespace fs = std::filesystem;
  const auto oldest = fs::file_time_type::clock::now() -
                      std::chrono::seconds(2 * options_.max_age_seconds);
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator it(options_.directory, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const auto written = it->last_write_time(ignored);
    if (!ignored && written < oldest) old.push_back(it->path());
  }
  for (const fs::path& path : old) fs::remove(path, error);
}

std::optional<io::DiskCurve> Speeds::OfFiles(
    io::FileSystem& files, absl::Span<const std::string> paths,
    double read_bytes) {
  if (paths.empty() || !(read_bytes > 0)) return std::nullopt;
  const std::optional<std::string> device = DeviceOf(paths[0], options_.read);
  if (!device.has_value()) return std::nullopt;
  io::DiskCurveOptions how;
  how.read_bytes = SizeClass(read_bytes);
  const std::string key = absl::StrCat(how.read_bytes, " of ", *device);
  if (std::optional<io::DiskCurve> known = Find(key)) return known;
  const absl::StatusOr<io::DiskCurve> curve =
      options_.measure(files, paths, how);
  if (!curve.ok() || curve->points.empty()) return std::nullopt;
  Keep(key, *curve);
  return *curve;
}

std::optional<double> Speeds::OfDirectory(const std::string& directory) {
  const std::optional<std::string> device = DeviceOf(directory, options_.read);
  if (!device.has_value()) return std::nullopt;
  const std::string key = absl::StrCat("kept on ", *device);
  if (const std::optional<io::DiskCurve> known = Find(key)) {
    return known->points[0].bytes_per_second;
  }
  const std::string path = absl::StrCat(directory, "/.speed.", getpid());
  const std::string synced = absl::StrCat(path, ".synced");
  std::string bytes(static_cast<size_t>(kProbeBytes), '\0');
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = Mix(i);  // nothing that a file system makes smaller
    std::memcpy(bytes.data() + i, &word, sizeof(word));
  }
  absl::Status status = io::WriteFile(*options_.files, path, bytes);
  // Renaming waits until it is on storage: else it could not be forgotten.
  if (status.ok()) status = options_.files->Rename(path, synced);
  std::optional<double> speed;
  if (status.ok()) {
    io::DiskCurveOptions how;
    how.read_bytes = static_cast<size_t>(kMostRead);
    how.max_bytes = kProbeBytes;
    how.reads = {1};
    const absl::StatusOr<io::DiskCurve> curve =
        options_.measure(*options_.files, {synced}, how);
    if (curve.ok() && !curve->points.empty()) {
      Keep(key, *curve);
      speed = curve->points[0].bytes_per_second;
    }
  }
  options_.files->Remove(path).IgnoreError();
  options_.files->Remove(synced).IgnoreError();
  return speed;
}

double Speeds::OfMemory(int threads) {
  if (memory_.has_value()) return *memory_;
  const std::string key = absl::StrCat("memory by ", threads);
  if (const std::optional<io::DiskCurve> known = Find(key)) {
    return *(memory_ = known->points[0].bytes_per_second);
  }
  std::vector<double> rates(static_cast<size_t>(std::max(1, threads)));
  const size_t bytes =
      std::clamp(kCopyBytes / rates.size(), kLeastCopied, kMostCopied);
  std::vector<std::thread> all;
  for (double& rate : rates) {
    all.emplace_back([&rate, bytes] {
      const auto from = std::make_unique<char[]>(bytes);
      const auto to = std::make_unique<char[]>(bytes);
      std::memset(from.get(), 1, bytes);
      std::memset(to.get(), 2, bytes);
      for (int i = 0; i < kCopies; ++i) {
        const int64_t begin = SteadyClock().NowNanos();
        std::memcpy(to.get(), from.get(), bytes);
        const int64_t nanos = SteadyClock().NowNanos() - begin;
        // The best: others only ever take away.
        rate = std::max(rate,
                        static_cast<double>(bytes) * 1e9 /
                            static_cast<double>(std::max<int64_t>(1, nanos)));
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  double sum = 0;
  for (double rate : rates) sum += rate;
  memory_ = sum;
  io::DiskCurve curve;
  curve.read_bytes = bytes;
  curve.points = {{threads, sum}};
  Keep(key, curve);
  return sum;
}

}  // namespace penstock::session
