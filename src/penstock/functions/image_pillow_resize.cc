#include "penstock/functions/image_pillow_resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "penstock/functions/image_jpeg.h"

namespace penstock::functions {
namespace {

// ---- Where the weights come from

double Box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double Bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double Hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x = x * M_PI;
  // Floats, rounded as Pillow's are.
  return std::sin(x) / x * (0.54F + 0.46F * std::cos(x));
}

double Bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double Sinc(double x) {
  if (x == 0.0) return 1.0;
  x = x * M_PI;
  return std::sin(x) / x;
}

double Lanczos(double x) {
  return -3.0 <= x && x < 3.0 ? Sinc(x) * Sinc(x / 3) : 0.0;
}

struct Kernel {
  double (*weight)(double x);
  double support;
};

Kernel KernelOf(PillowFilter filter) {
  switch (filter) {
    case PillowFilter::kBox:
      return {Box, 0.5};
    case PillowFilter::kBilinear:
      return {Bilinear, 1.0};
    case PillowFilter::kHamming:
      return {Hamming, 1.0};
    case PillowFilter::kBicubic:
      return {Bicubic, 2.0};
    case PillowFilter::kLanczos:
    case PillowFilter::kNearest:
      break;
  }
  return {Lanczos, 3.0};
}

// Rounded away from zero at the half.
int32_t Fixed(double weight) {
  constexpr double kOne = 1 << kPillowBits;
  return static_cast<int32_t>(weight < 0 ? -0.5 + weight * kOne
                                         : 0.5 + weight * kOne);
}

void AddPairs(const std::vector<double>& weights, PillowResizer::Axis& axis) {
  for (size_t i = 0; i < weights.size(); i += 2) {
    PillowPair pair = {};
    for (size_t k = 0; k < 2 && i + k < weights.size(); ++k) {
      const int32_t fixed = Fixed(weights[i + k]);
      pair.high[k] = static_cast<int16_t>(fixed >> kPillowLowBits);
      pair.low[k] = static_cast<int16_t>(fixed & ((1 << kPillowLowBits) - 1));
    }
    axis.weights.push_back(pair);
  }
}

void WeightedAxis(PillowFilter filter, PillowResizer::Axis& axis) {
  const Kernel kernel = KernelOf(filter);
  const double scale =
      static_cast<double>(axis.from) / static_cast<double>(axis.to);
  const double filter_scale = std::max(scale, 1.0);
  const double support = kernel.support * filter_scale;
  const double step = 1.0 / filter_scale;
  axis.runs.clear();
  axis.weights.clear();
  std::vector<double> weights;
  for (int64_t i = 0; i < axis.to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    // Cut, not rounded down: they may be negative.
    const auto begin =
        std::max(static_cast<int32_t>(center - support + 0.5), int32_t{0});
    const auto end = std::min(static_cast<int32_t>(center + support + 0.5),
                              static_cast<int32_t>(axis.from));
    weights.clear();
    double sum = 0.0;
    for (int32_t x = 0; x < end - begin; ++x) {
      const double weight = kernel.weight((x + begin - center + 0.5) * step);
      weights.push_back(weight);
      sum += weight;
    }
    if (sum != 0.0) {
      for (double& weight : weights) weight /= sum;
    }
    const auto first = static_cast<int32_t>(axis.weights.size());
    AddPairs(weights, axis);
    axis.runs.push_back(
        {begin, first, static_cast<int32_t>(axis.weights.size()) - first});
  }
}

// Positions are added up, as Pillow does.
void NearestAxis(PillowResizer::Axis& axis) {
  const double scale =
      static_cast<double>(axis.from) / static_cast<double>(axis.to);
  axis.nearest.clear();
  double at = scale * 0.5;
  for (int64_t i = 0; i < axis.to; ++i, at += scale) {
    const auto input = static_cast<int64_t>(at);
    axis.nearest.push_back(input < axis.from ? input : -1);
  }
}

}  // namespace

void PillowResizer::Prepare(Axis& axis, int64_t from, int64_t to) const {
  if (axis.from == from && axis.to == to) return;
  axis.from = from;
  axis.to = to;
  if (filter_ == PillowFilter::kNearest) {
    NearestAxis(axis);
  } else {
    WeightedAxis(filter_, axis);
  }
}

bool PillowResizer::Fits(Size from, int channels, Size to) {
  return (from.height + kPillowRows) * std::max(from.width, to.width) *
             channels <=
         kMaxImageItems;
}

void PillowResizer::Begin(Size from, int channels, Size to, uint8_t* out) {
  from_ = from;
  to_ = to;
  channels_ = channels;
  out_ = out;
  row_ = 0;
  given_ = 0;
  Prepare(x_, from.width, to.width);
  Prepare(y_, from.height, to.height);
  const int64_t lost_y = from.height - to.height;
  const int64_t lost_x = from.width - to.width;
  is_y_first_ = lost_x == 0 ||
                (order_ == Order::kBySize && lost_y > 0 && lost_y > 2 * lost_x);
  line_bytes_ = from.width * channels + kPillowSlack;
  lines_.resize(kPillowRows * line_bytes_);
  if (filter_ == PillowFilter::kNearest) return;
  // SumRgb writes a byte more, SumRows reads up to a multiple of 64.
  made_bytes_ = to.width * channels + 1;
  made_.resize(kPillowRows * made_bytes_);
  row_bytes_ =
      ((is_y_first_ ? from.width : to.width) * channels + 1 + 63) / 64 * 64;
  rows_.resize((from.height + kPillowRows) * row_bytes_);
}

absl::Span<uint8_t* const> PillowResizer::places() {
  const int64_t count = std::min<int64_t>(kPillowRows, from_.height - row_);
  const bool are_lines = filter_ == PillowFilter::kNearest || !is_y_first_;
  for (int64_t i = 0; i < count; ++i) {
    places_[i] = are_lines ? lines_.data() + i * line_bytes_
                           : rows_.data() + (row_ + i) * row_bytes_;
  }
  return {places_, static_cast<size_t>(count)};
}

void PillowResizer::Commit() {
  const int64_t count = std::min<int64_t>(kPillowRows, from_.height - row_);
  if (filter_ == PillowFilter::kNearest) {
    CommitNearest(count);
    row_ += count;
    return;
  }
  if (!is_y_first_) {
    uint8_t* to[kPillowRows];
    for (int64_t i = 0; i < kPillowRows; ++i) {
      to[i] = rows_.data() + (row_ + i) * row_bytes_;
    }
    ResizeLines(to, count);
  }
  row_ += count;
  GiveRows();
}

void PillowResizer::ResizeLines(uint8_t* const out[kPillowRows],
                                int64_t count) {
  const uint8_t* from[kPillowRows];
  for (int64_t i = 0; i < kPillowRows; ++i) {
    from[i] = lines_.data() + i * line_bytes_;
  }
  if (channels_ == 3) {
    SumRgb(from, x_.runs.data(), x_.weights.data(), to_.width, out);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    SumGray(from[i], x_.runs.data(), x_.weights.data(), to_.width, out[i]);
  }
}

void PillowResizer::GiveRows() {
  const int64_t bytes = to_.width * channels_;
  const bool is_x_left = is_y_first_ && from_.width != to_.width;
  int64_t lines = 0;  // that x is left of
  for (int64_t row = given_; row < to_.height; ++row) {
    if (from_.height == to_.height) {
      if (row >= row_) break;
      std::memcpy(out_ + row * bytes, rows_.data() + row * row_bytes_, bytes);
      ++given_;
      continue;
    }
    const PillowRun& run = y_.runs[row];
    const int64_t last = run.start + int64_t{2} * run.pairs;
    if (last > row_ && row_ < from_.height) break;
    const uint8_t* first = rows_.data() + run.start * row_bytes_;
    if (!is_x_left) {
      SumRows(first, row_bytes_, run, y_.weights.data(), bytes,
              out_ + row * bytes);
      ++given_;
      continue;
    }
    SumRows(first, row_bytes_, run, y_.weights.data(), from_.width * channels_,
            lines_.data() + lines * line_bytes_);
    if (++lines == kPillowRows) GiveLines(std::exchange(lines, 0));
  }
  if (lines > 0) GiveLines(lines);
}

void PillowResizer::GiveLines(int64_t count) {
  const int64_t bytes = to_.width * channels_;
  uint8_t* made[kPillowRows];
  for (int64_t i = 0; i < kPillowRows; ++i) {
    made[i] = made_.data() + i * made_bytes_;
  }
  ResizeLines(made, count);
  for (int64_t i = 0; i < count; ++i, ++given_) {
    std::memcpy(out_ + given_ * bytes, made[i], bytes);
  }
}

void PillowResizer::CommitNearest(int64_t count) {
  const int64_t bytes = to_.width * channels_;
  for (; given_ < to_.height; ++given_) {
    const int64_t y = y_.nearest[given_];
    if (y >= row_ + count) return;
    uint8_t* out = out_ + given_ * bytes;
    if (y < 0) {
      // Beyond the last row: those after it are too.
      if (row_ + count < from_.height) return;
      std::memset(out, 0, bytes);
      continue;
    }
    const uint8_t* line = lines_.data() + (y - row_) * line_bytes_;
    for (int64_t x = 0; x < to_.width; ++x, out += channels_) {
      const int64_t from = x_.nearest[x];
      for (int c = 0; c < channels_; ++c) {
        out[c] = from < 0 ? uint8_t{0} : line[from * channels_ + c];
      }
    }
  }
}

}  // namespace penstock::functions
