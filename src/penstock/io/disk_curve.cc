#include "penstock/io/disk_curve.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::io {
namespace {

constexpr size_t kMaxFiles = 64;
// Few reads at once get as many bytes in all as this many.
constexpr int kLeastShare = 8;

// Some bytes of a file, for one thread.
struct Part {
  File* file = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

// What a thread did.
struct Done {
  int64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  absl::Status status;
};

// `is_alone`: the first read is not counted where there are others. It has to
// find its place, which is no part of going on.
Done ReadPart(const Part& part, size_t read_bytes, int64_t max_nanos,
              bool is_alone, const Clock& clock, char* memory) {
  Done done;
  done.begin_ns = done.end_ns = clock.NowNanos();
  for (int64_t at = part.begin; at < part.end;) {
    const auto bytes = static_cast<size_t>(
        std::min<int64_t>(part.end - at, static_cast<int64_t>(read_bytes)));
    const absl::StatusOr<size_t> read = part.file->ReadAt(at, memory, bytes);
    done.end_ns = clock.NowNanos();
    if (!read.ok()) {
      done.status = read.status();
      break;
    }
    const bool is_first = at == part.begin;
    at += static_cast<int64_t>(bytes);
    if (is_alone && is_first && at < part.end && *read == bytes &&
        done.end_ns - done.begin_ns < max_nanos / 2) {
      done.begin_ns = done.end_ns;
      continue;
    }
    done.bytes += static_cast<int64_t>(*read);
    if (*read < bytes || done.end_ns - done.begin_ns >= max_nanos) break;
  }
  return done;
}

class Measurement final {
 public:
  Measurement(const DiskCurveOptions& options, const Clock& clock)
      : options_(options), clock_(clock) {
    for (int reads : options_.reads) all_reads_ += std::max(reads, kLeastShare);
  }

  absl::Status Open(FileSystem& files, absl::Span<const std::string> paths) {
    // From all over the list: neighbours may lie on one disk of several.
    const size_t step = std::max<size_t>(1, paths.size() / kMaxFiles);
    for (size_t i = 0; i < paths.size() && files_.size() < kMaxFiles;
         i += step) {
      PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                                files.Open(paths[i]));
      if (file->size() < static_cast<int64_t>(options_.read_bytes)) continue;
      files_.push_back({std::move(file), 0});
    }
    if (!files_.empty()) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat("expected a file of at least ", options_.read_bytes,
                     " bytes among ", paths.size(), "; found none"));
  }

  absl::StatusOr<DiskCurve> Run() {
    DiskCurve curve;
    curve.read_bytes = options_.read_bytes;
    const int64_t begin = clock_.NowNanos();
    for (size_t i = 0; i < options_.reads.size(); ++i) {
      const int64_t left = options_.max_nanos - (clock_.NowNanos() - begin);
      const int64_t steps = static_cast<int64_t>(options_.reads.size() - i);
      if (left <= 0) break;
      PENSTOCK_ASSIGN_OR_RETURN(const double rate,
                                Step(options_.reads[i], left / steps));
      if (rate <= 0) break;
      curve.points.push_back({options_.reads[i], rate});
    }
    return curve;
  }

 private:
  struct Source {
    std::unique_ptr<File> file;
    int64_t used = 0;
  };

  // The next bytes of the next file that has some left; from its beginning
  // again if none has.
  Part NextPart(int64_t bytes) {
    const auto least = static_cast<int64_t>(options_.read_bytes);
    for (size_t tried = 0; tried < files_.size(); ++tried) {
      Source& source = files_[next_++ % files_.size()];
      if (source.used + least <= source.file->size())
        return Take(source, bytes);
    }
    Source& source = files_[next_++ % files_.size()];
    source.used = 0;
    return Take(source, bytes);
  }

  static Part Take(Source& source, int64_t bytes) {
    Part part = {source.file.get(), source.used,
                 std::min(source.used + bytes, source.file->size())};
    source.used = part.end;
    part.file->Forget(part.begin, part.end - part.begin);
    return part;
  }

  // Bytes a second with `reads` under way; 0 if there are no bytes left.
  absl::StatusOr<double> Step(int reads, int64_t max_nanos) {
    const auto read_bytes = static_cast<int64_t>(options_.read_bytes);
    const int64_t share =
        options_.max_bytes / all_reads_ * std::max(reads, kLeastShare) / reads;
    const int64_t each = std::max(read_bytes, share / read_bytes * read_bytes);
    if (used_ + read_bytes * reads > options_.max_bytes) return 0;
    used_ += each * reads;
    std::vector<Part> parts;
    for (int i = 0; i < reads; ++i) parts.push_back(NextPart(each));
    std::vector<Done> done(parts.size());
    std::vector<std::unique_ptr<char[]>> memory;
    for (int i = 0; i < reads; ++i) {
      memory.push_back(std::make_unique<char[]>(options_.read_bytes));
    }
    {
      std::vector<std::thread> threads;
      for (size_t i = 0; i < parts.size(); ++i) {
        threads.emplace_back([&, i] {
          done[i] = ReadPart(parts[i], options_.read_bytes, max_nanos,
                             reads == 1, clock_, memory[i].get());
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    int64_t bytes = 0;
    int64_t begin = done[0].begin_ns;
    int64_t end = done[0].end_ns;
    for (const Done& each_done : done) {
      PENSTOCK_RETURN_IF_ERROR(each_done.status);
      bytes += each_done.bytes;
      begin = std::min(begin, each_done.begin_ns);
      end = std::max(end, each_done.end_ns);
    }
    return static_cast<double>(bytes) * 1e9 /
           static_cast<double>(std::max<int64_t>(1, end - begin));
  }

  const DiskCurveOptions& options_;
  const Clock& clock_;
  int64_t all_reads_ = 0;
  std::vector<Source> files_;
  size_t next_ = 0;
  int64_t used_ = 0;
};

}  // namespace

absl::StatusOr<DiskCurve> MeasureDisk(FileSystem& files,
                                      absl::Span<const std::string> paths,
                                      const DiskCurveOptions& options,
                                      const Clock& clock) {
  if (options.read_bytes < 1 || options.reads.empty() ||
      *std::min_element(options.reads.begin(), options.reads.end()) < 1) {
    return absl::InvalidArgumentError(
        "a disk must be measured with reads of at least a byte, at least one "
        "at once");
  }
  Measurement measurement(options, clock);
  PENSTOCK_RETURN_IF_ERROR(measurement.Open(files, paths));
  return measurement.Run();
}

}  // namespace penstock::io
