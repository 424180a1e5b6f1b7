#include "penstock/tuner/disk.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock::tuner {
namespace {

// A fall to less than this share of the most is a seek, and not chance.
constexpr double kDeclines = 0.75;
// Up to this share of the most, reads do not yet wait for each other.
constexpr double kIsFree = 0.7;
constexpr double kLeastError = 0.03;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double ErrorOf(const DiskLaw& law, absl::Span<const DiskPoint> points,
               double read_bytes) {
  double squares = 0;
  for (const DiskPoint& point : points) {
    // Where several read, each has a file.
    const double says =
        BytesPerSecond(law, point.reads, read_bytes, point.reads);
    const double away = says / point.bytes_per_second - 1;
    squares += away * away;
  }
  return std::clamp(std::sqrt(squares / static_cast<double>(points.size())),
                    kLeastError, 0.5);
}

}  // namespace

std::optional<DiskLaw> FitDisk(absl::Span<const DiskPoint> given,
                               double read_bytes) {
  std::vector<DiskPoint> points;
  for (const DiskPoint& point : given) {
    // Within what any disk could be; no NaN.
    const bool is_usable = point.reads > 0 && point.reads < 1e6 &&
                           point.bytes_per_second > 1 &&
                           point.bytes_per_second < 1e15;
    if (is_usable) points.push_back(point);
  }
  if (points.empty() || !(read_bytes > 0) || !(read_bytes < 1e12)) {
    return std::nullopt;
  }
  std::sort(
      points.begin(), points.end(),
      [](const DiskPoint& a, const DiskPoint& b) { return a.reads < b.reads; });
  DiskLaw law;
  size_t most = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].bytes_per_second > points[most].bytes_per_second) most = i;
  }
  law.peak = points[most].bytes_per_second;
  std::vector<double> falling;
  for (size_t i = most + 1; i < points.size(); ++i) {
    falling.push_back(points[i].bytes_per_second);
  }
  if (!falling.empty() && Median(falling) < kDeclines * law.peak) {
    law.seek = read_bytes / Median(falling) - read_bytes / law.peak;
  }
  std::vector<double> alone;
  for (size_t i = 0; i <= most; ++i) {
    if (i > 0 && points[i].bytes_per_second > kIsFree * law.peak) continue;
    alone.push_back(points[i].reads * read_bytes / points[i].bytes_per_second);
  }
  law.latency = std::max(0.0, Median(alone) - read_bytes / law.peak);
  law.error = ErrorOf(law, points, read_bytes);
  return law;
}

double ReadTime(const DiskLaw& law, double read_bytes) {
  return law.latency + read_bytes / law.peak;
}

double MostBytesPerSecond(const DiskLaw& law, double read_bytes,
                          double sources) {
  if (sources <= 1 || law.seek <= 0 || read_bytes <= 0) return law.peak;
  return read_bytes / (law.seek + read_bytes / law.peak);
}

double BytesPerSecond(const DiskLaw& law, double reads, double read_bytes,
                      double sources) {
  if (read_bytes <= 0) return law.peak;
  return std::min(reads * read_bytes / ReadTime(law, read_bytes),
                  MostBytesPerSecond(law, read_bytes, sources));
}

double KneeOf(const DiskLaw& law, double read_bytes, double sources) {
  if (read_bytes <= 0) return 1;
  return std::max(1.0, MostBytesPerSecond(law, read_bytes, sources) *
                           ReadTime(law, read_bytes) / read_bytes);
}

}  // namespace penstock::tuner
