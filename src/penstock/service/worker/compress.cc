#include "penstock/service/worker/compress.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>

namespace penstock::service {
namespace {

// Frames that the drain is measured by before anything is tried.
constexpr uint64_t kFirstFrames = 4;
// Between two trials of what does not pay now.
constexpr uint64_t kTrialFrames = 256;
// Compressing takes processors that others may want, here and at the reader: it
// must gain more than this.
constexpr double kWorth = 0.9;
// What was seen counts for less as more is seen.
constexpr double kWeight = 0.25;

void Update(double& mean, double value) {
  mean = mean == 0 ? value : mean + kWeight * (value - mean);
}

}  // namespace

std::optional<std::string> Compress(Compression compression,
                                    std::string_view bytes) {
  // Only what gets smaller is worth it.
  if (bytes.size() < 2 || bytes.size() > LZ4_MAX_INPUT_SIZE) {
    return std::nullopt;
  }
  std::string out(bytes.size() - 1, '\0');
  size_t size = 0;
  if (compression == COMPRESSION_LZ4) {
    size = static_cast<size_t>(
        std::max(0, LZ4_compress_default(bytes.data(), out.data(),
                                         static_cast<int>(bytes.size()),
                                         static_cast<int>(out.size()))));
  } else if (compression == COMPRESSION_ZSTD) {
    size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(),
                         /*compressionLevel=*/1);
    if (ZSTD_isError(size) != 0) size = 0;
  }
  if (size == 0) return std::nullopt;
  out.resize(size);
  return out;
}

double CompressionChoice::Cost(const Seen& seen, uint32_t parallel) const {
  return std::max(seen.nanos_per_byte / std::max<uint32_t>(1, parallel),
                  seen.ratio * drain_nanos_per_byte_);
}

Compression CompressionChoice::Next(absl::Span<const Compression> allowed,
                                    uint32_t parallel) {
  const auto may = [&](const Seen& seen) {
    return std::find(allowed.begin(), allowed.end(), seen.compression) !=
           allowed.end();
  };
  if (std::none_of(seen_.begin(), seen_.end(), may)) return COMPRESSION_NONE;
  const uint64_t frame = frames_++;
  if (frame < kFirstFrames || drain_nanos_per_byte_ == 0) {
    return COMPRESSION_NONE;
  }
  for (const Seen& seen : seen_) {
    if (seen.nanos_per_byte == 0 && may(seen)) return seen.compression;
  }
  if (const size_t trial = frame % kTrialFrames;
      trial < seen_.size() && may(seen_[trial])) {
    return seen_[trial].compression;
  }
  const Seen* best = nullptr;
  for (const Seen& seen : seen_) {
    if (!may(seen)) continue;
    if (best == nullptr || Cost(seen, parallel) < Cost(*best, parallel)) {
      best = &seen;
    }
  }
  return Cost(*best, parallel) < kWorth * drain_nanos_per_byte_
             ? best->compression
             : COMPRESSION_NONE;
}

void CompressionChoice::OnCompressed(Compression compression,
                                     size_t plain_bytes, size_t frame_bytes,
                                     int64_t nanos) {
  if (plain_bytes == 0) return;
  const auto bytes = static_cast<double>(plain_bytes);
  for (Seen& seen : seen_) {
    if (seen.compression != compression) continue;
    Update(seen.nanos_per_byte,
           static_cast<double>(std::max<int64_t>(nanos, 1)) / bytes);
    Update(seen.ratio, static_cast<double>(frame_bytes) / bytes);
  }
}

double CompressionChoice::drain_bytes_per_second() const {
  return drain_nanos_per_byte_ == 0 ? 0 : 1e9 / drain_nanos_per_byte_;
}

void CompressionChoice::OnDrained(size_t bytes, int64_t nanos) {
  if (bytes == 0) return;
  Update(drain_nanos_per_byte_,
         static_cast<double>(std::max<int64_t>(nanos, 1)) /
             static_cast<double>(bytes));
}

}  // namespace penstock::service
