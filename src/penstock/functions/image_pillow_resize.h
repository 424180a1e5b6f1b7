// Resampling of 8-bit images as Pillow's Image.resize does it, bit for bit.
//
// Weights are made in double, normalized, and rounded to 22 bits. Images are
// resized along one side, rounded to bytes, and then resized along the other.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "penstock/functions/image_pillow_sums.h"

namespace penstock::functions {

// The values are those of PIL.Image.Resampling.
enum class PillowFilter : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5,
};
inline constexpr int kPillowFilters = 6;

// Resizes one image after another; weights and scratch memory are kept from one
// to the next. One thread at a time.
//
// An image comes row by row, from the first to the last:
//   Begin(…); while (more) { write to places(); Commit(); }
class PillowResizer final {
 public:
  struct Size {
    int64_t height = 0;
    int64_t width = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };

  // Which side comes first is visible, and depends on Pillow's version.
  enum class Order : uint8_t {
    kX,       // before 13.0
    kBySize,  // y, if it loses more than twice as many pixels as x
  };

  PillowResizer(PillowFilter filter, Order order)
      : filter_(filter), order_(order) {}

  // Whether the rows between the one side and the other are not too many: they
  // can be as long as the result's and as many as the image's.
  static bool Fits(Size from, int channels, Size to);

  // An image of `channels` bytes a pixel; `out` has room for the result.
  // REQUIRES: 1 or 3 channels, sizes above 0 and below 2^31; Fits().
  void Begin(Size from, int channels, Size to, uint8_t* out);
  // Where the next rows go: kPillowRows of them, or fewer at the end, and none
  // when the image, and with it the result, is complete.
  absl::Span<uint8_t* const> places();
  // All of these were written.
  void Commit();

  // Of one axis: outputs are sums of inputs by their weights.
  struct Axis {
    int64_t from = 0;
    int64_t to = 0;
    std::vector<PillowRun> runs;      // by output
    std::vector<PillowPair> weights;  // of all runs
    std::vector<int64_t> nearest;     // kNearest: input by output; -1: none
  };

 private:
  void Prepare(Axis& axis, int64_t from, int64_t to) const;
  void CommitNearest(int64_t count);
  // The rows of `lines_` along x, to where `out` says.
  void ResizeLines(uint8_t* const out[kPillowRows], int64_t count);
  // Rows of the result that can be made of those that are there.
  void GiveRows();
  // The same, of which so many lie in `lines_`, resized along y.
  void GiveLines(int64_t count);

  const PillowFilter filter_;
  const Order order_;
  Size from_;
  Size to_;
  int channels_ = 0;
  uint8_t* out_ = nullptr;
  bool is_y_first_ = false;  // or y alone
  int64_t row_ = 0;          // the next one
  int64_t given_ = 0;        // rows of the result
  Axis x_;
  Axis y_;
  int64_t line_bytes_ = 0;
  std::vector<uint8_t> lines_;  // that are resized along x next
  int64_t row_bytes_ = 0;
  std::vector<uint8_t> rows_;  // that are resized along y
  int64_t made_bytes_ = 0;
  std::vector<uint8_t> made_;  // of the result
  uint8_t* places_[kPillowRows] = {};
};

}  // namespace penstock::functions
