// Columns made of the feature lists of many SequenceExamples: a list has a
// Feature for each of some frames.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "penstock/functions/example_columns.h"

namespace penstock::functions {

// InvalidArgument if `feature` cannot be one of a list.
absl::Status CheckListFeature(const FeatureSpec& feature);

// The spec of its parts, frames being one more dimension. A sequence in a batch
// has a second part: how many frames each has.
void AppendListSpecs(const FeatureSpec& feature, bool is_batch,
                     std::optional<int64_t> batch,
                     std::vector<TensorSpec>& specs);

// As FeatureWriter, for a list. REQUIRES: CheckListFeature().
class ListWriter final {
 public:
  ListWriter(const FeatureSpec& spec, const KeyTable& keys,
             const ExampleRows& rows);

  absl::Status Add(const FeatureFinder& finder);
  void FailRow(int64_t begin, int64_t end);
  void Finish(const Pins& pins, std::vector<Column>& columns) &&;

 private:
  absl::Status AddFrame(const Wire& feature);
  void FinishSequence(const Pins& pins, std::vector<Column>& columns);
  void FinishVar(const Pins& pins, std::vector<Column>& columns);
  void FinishRagged(const Pins& pins, std::vector<Column>& columns);
  Column Padded(const Pins& pins);
  // Of rows: where each begins, in values.
  std::vector<int64_t> ValueBegins() const;
  int64_t num_frames() const {
    return static_cast<int64_t>(frame_ends_.size()) - 1;
  }

  const FeatureSpec& spec_;
  const KeyTable& keys_;
  const ExampleRows& rows_;
  GrowingItems values_;
  std::vector<int64_t> frame_ends_;    // in values_, after each frame; first 0
  std::vector<int64_t> example_ends_;  // in frames, after each; first 0
};

}  // namespace penstock::functions
