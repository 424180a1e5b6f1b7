// Where to part lengths into buckets so that padding costs least.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock::tuner {

// Elements of one length.
struct LengthCount {
  int64_t length = 0;
  double rows = 0;
};

struct BucketOptions {
  int64_t shapes = 8;       // buckets, at most
  int64_t multiple_of = 1;  // what elements are padded to
  // Of a batch. Then what is least is the number of batches, that is, what is
  // padding together with what is too little for one more element. Longer
  // elements are left out.
  std::optional<int64_t> max_tokens = std::nullopt;
};

struct Buckets {
  // As bucket_by_sequence_length takes them: one above what a bucket's elements
  // are padded to. The last is above all lengths.
  std::vector<int64_t> boundaries;
  // Of what batches have, if all elements are padded to their boundary less
  // one.
  double padding_share = 0;
};

// The best buckets there are: exact, by dynamic programming over the lengths.
// InvalidArgument for options or lengths that have no meaning, and if there is
// no element.
absl::StatusOr<Buckets> ChooseBoundaries(absl::Span<const LengthCount> lengths,
                                         const BucketOptions& options);

}  // namespace penstock::tuner
