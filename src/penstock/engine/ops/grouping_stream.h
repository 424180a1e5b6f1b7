// What group_by_window and bucket_by_sequence_length have in common: elements
// gathered by a key, a group at a time. The contract: ops/grouping.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/operator.h"

namespace penstock::engine {

struct GroupingConfig {
  // Element -> integer. Null: the key is the element's last component or, if
  // `has_sizes`, the one before it.
  std::shared_ptr<const Evaluator> key;
  std::string key_name;  // in messages
  // The last component says how many elements a group of its key has.
  bool has_sizes = false;
  // The group that an element with this key belongs to.
  std::function<int64_t(int64_t key)> group_of;
  // How many elements a group of this key has.
  std::function<absl::StatusOr<int64_t>(int64_t key, const Scope& scope)> size;
  // One row of a whole group; `values` are what the key function gave.
  std::function<absl::StatusOr<Chunk>(int64_t key, const Chunk& rows,
                                      absl::Span<const int64_t> values,
                                      NodeStats& stats)>
      assemble;
  // Of lengths. Groups of `budgeted`, the last bucket, go on when they have no
  // room for another.
  std::optional<int64_t> max_tokens;
  plan::TooLong too_long = plan::TOO_LONG_IS_ERROR;
  int64_t budgeted = 0;
  bool drop_remainder = false;
  std::vector<TensorSpec> leaves;  // of what is assembled
  int64_t max_given = kMaxChunkRows;
};

// An integer of at least 1, or why a window cannot be of that size.
absl::StatusOr<int64_t> CheckedSize(int64_t size);

OperatorPtr MakeGrouping(std::shared_ptr<const GroupingConfig> config,
                         OperatorPtr input, const OpInfo& info,
                         Stream::Counts counts);

}  // namespace penstock::engine
