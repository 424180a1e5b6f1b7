// How fast storage is, by how many reads are under way: a short benchmark of
// the files themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/base/clock.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

struct DiskCurve {
  struct Point {
    int reads = 1;  // under way
    double bytes_per_second = 0;
  };

  size_t read_bytes = 0;
  std::vector<Point> points;  // reads rise
};

struct DiskCurveOptions {
  size_t read_bytes = size_t{256} << 10;  // of each read
  // All of it together is at most this: what is over is left out.
  int64_t max_bytes = int64_t{64} << 20;
  int64_t max_nanos = 1'000'000'000;
  std::vector<int> reads = {1, 2, 4, 8, 16, 32};
};

// Reads parts of `paths` with 1, 2, 4, … threads, each of which goes on in a
// part of its own: of another file if there are enough. No part is read twice
// if the files are large enough, and the kernel is made to forget it first.
// Waits for storage, at most a read longer than the options say.
//
// NotFound if no file has a read's bytes; errors of opening and reading.
absl::StatusOr<DiskCurve> MeasureDisk(FileSystem& files,
                                      absl::Span<const std::string> paths,
                                      const DiskCurveOptions& options,
                                      const Clock& clock = SteadyClock());

}  // namespace penstock::io
