// What storage gives, as a law: from the curve that was measured to the rate
// with other numbers and sizes of reads.
//
//   bytes a second = min( reads * bytes / (latency + bytes / peak),
//                         bytes / (seek + bytes / peak) )
//
// The first is what waiting leaves: reads that are under way overlap. The
// second is what the device has for all of them. Between files that are read in
// turn it seeks; of one file it does not.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace penstock::tuner {

struct DiskPoint {
  double reads = 1;
  double bytes_per_second = 0;
};

struct DiskLaw {
  double peak = 0;     // bytes a second, of all reads together
  double latency = 0;  // seconds of a read in which others go on
  double seek = 0;     // seconds from one file to another, of the device
  double error = 0;    // of the rates, relative: one standard error
};

// The law for points measured with reads of `read_bytes`, each in a file of its
// own. Nothing if there are none.
std::optional<DiskLaw> FitDisk(absl::Span<const DiskPoint> points,
                               double read_bytes);

// A read alone, in seconds.
double ReadTime(const DiskLaw& law, double read_bytes);

// What the device gives at most to reads of so many bytes, of `sources` files
// in turn.
double MostBytesPerSecond(const DiskLaw& law, double read_bytes,
                          double sources);

// The same with so many reads under way.
double BytesPerSecond(const DiskLaw& law, double reads, double read_bytes,
                      double sources);

// How many reads under way give that most: more wait for each other.
double KneeOf(const DiskLaw& law, double read_bytes, double sources);

}  // namespace penstock::tuner
