// Where an epoch is, as the states of its consumers say.
#pragma once

#include <cstdint>
#include <map>
#include <string>

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

// What a generation began with.
Progress Inherited(const ConsumerState& state);

// Of one checkpoint: the states of all its consumers, each once, in any order.
// InvalidArgument says what does not go together or is missing.
absl::StatusOr<Progress> Merge(absl::Span<const ConsumerState> states);

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
