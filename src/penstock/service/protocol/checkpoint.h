// Where an epoch is, as the states of its consumers say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/service.pb.h"
#include "penstock/service/protocol/bundle_set.h"

namespace penstock::service {

// What of an epoch is done, and what was begun.
struct Progress {
  BundleSet done;
  std::map<uint64_t, uint64_t> open;  // bundle -> position of its next item
};

// What a generation began with, as a message has it in `inherited_done` and
// `inherited_open`: a consumer's state, an answer to an opening, a record.
template <typename Message>
Progress Inherited(const Message& message) {
  Progress progress;
  progress.done = BundleSet(message.inherited_done());
  for (const Cursor& cursor : message.inherited_open()) {
    progress.open[cursor.bundle()] = cursor.position();
  }
  return progress;
}

template <typename Message>
void SetInherited(const Progress& progress, Message& message) {
  *message.mutable_inherited_done() = progress.done.ToRuns();
  message.clear_inherited_open();
  for (const auto& [bundle, position] : progress.open) {
    Cursor* cursor = message.add_inherited_open();
    cursor->set_bundle(bundle);
    cursor->set_position(position);
  }
}

// Of one checkpoint: the states of all its consumers, each once, in any order.
// InvalidArgument says what does not go together or is missing.
absl::StatusOr<Progress> Merge(absl::Span<const ConsumerState> states);

// Where a consumer is that reads all of its epoch.
Progress ProgressOf(const ConsumerState& state);

// Of the state of a consumer that read in rounds: what was begun in them, for
// others that go on from there in rounds of another size.
std::vector<Split> SplitsOf(const ConsumerState& state);

// "run 4294967297, epoch 2, generation 1".
std::string ToString(const EpochId& id);

inline bool IsSame(const EpochId& a, const EpochId& b) {
  return a.run() == b.run() && a.epoch() == b.epoch() &&
         a.generation() == b.generation();
}

inline bool IsSame(const Opener& a, const Opener& b) {
  return a.consumer() == b.consumer() && a.request() == b.request();
}

}  // namespace penstock::service
