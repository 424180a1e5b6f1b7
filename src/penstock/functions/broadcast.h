// Shapes that meet: numpy's broadcasting, and walking over strided items.
//
// Rows are an implicit leading axis: shapes here are those of one row, and two
// rows' shapes are aligned at the right.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/shape.h"
#include "penstock/data/spec.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// The most dimensions of a value, as in numpy 1.
inline constexpr int kMaxRank = 32;

// What is known of the shape that arguments broadcast to.
absl::StatusOr<PartialShape> BroadcastShape(absl::Span<const ArgSpec> args);

// Widens `shape`, whose rank is at least other's, by `other`. False if the two
// do not fit.
bool BroadcastInto(absl::Span<int64_t> shape, absl::Span<const int64_t> other);

absl::Status BroadcastError(absl::Span<const absl::Span<const int64_t>> shapes);

// A walk over up to kMaxOperands strided inputs and a contiguous output.
struct Walk {
  static constexpr int kMaxOperands = 3;

  int operands = 0;
  int rank = 0;
  int64_t dims[kMaxRank + 1];
  int64_t strides[kMaxOperands][kMaxRank + 1];  // in bytes

  // Adds an inner dimension. Dimensions of size 1 are left out, and those that
  // continue the one before become one with it.
  void Add(int64_t dim, const int64_t* stride_of_operand);
};

// Computes `count` items. The output is contiguous.
using Loop = void (*)(const std::byte* const* in, const int64_t* strides,
                      std::byte* out, int64_t count);

void RunWalk(const Walk& walk, const std::byte* const* in, std::byte* out,
             size_t out_item_size, Loop loop);

// Copies items from strided places to contiguous ones.
void CopyStrided(const std::byte* in, absl::Span<const int64_t> dims,
                 absl::Span<const int64_t> strides, size_t item_size,
                 std::byte* out);

// Strides in bytes of contiguous items.
Shape ContiguousStrides(absl::Span<const int64_t> dims, size_t item_size);

}  // namespace penstock::functions
