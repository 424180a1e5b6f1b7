// The best knobs for a pipeline within a budget, in closed form.
//
// First the rate to reach: what cores, disk and the consumer allow. Then, for
// that rate and no more: tasks per node, reads under way, ordered windows,
// buffers; and a cache where it raises the rate. What the consumer cannot take
// is given back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/knobs.pb.h"
#include "penstock/tuner/bound.h"
#include "penstock/tuner/cache_place.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Less than the machine has; unset is all of it.
struct Budget {
  std::optional<double> cores = {};
  std::optional<double> memory_bytes = {};  // of all that the engine holds
  // For caches; unset: what is free where rows may be kept.
  std::optional<double> disk_bytes = {};
  bool may_cache = true;
  bool may_cache_in_memory = true;
};

enum class KnobKind {
  kParallelism,
  kReorderRows,
  kBufferRows,
  kReadDepth,
  kReadBytes,
  kOutputRows,
  kCache,
};

// "parallelism", "buffer_rows", …: the field's name.
const char* KnobName(KnobKind kind);

// One knob and why. Values that are as they were are not listed.
struct Setting {
  KnobKind kind = KnobKind::kParallelism;
  int node = -1;                // place; -1 of kOutputRows
  std::optional<int64_t> from;  // unset: not known
  int64_t to = 0;
  std::string why;
  // The user's: advice for a person, not in Choice::knobs.
  bool is_pinned = false;
};

struct Choice {
  plan::Knobs knobs;  // all that is to be in force, the user's as they are
  std::vector<Setting> settings;
  std::optional<CacheCandidate> cache;
  std::optional<CacheCandidate> second_cache;  // in the other tier
  std::vector<CacheCandidate> candidates;
  Bound bound;              // with these knobs
  double cores = 0;         // in use at that rate
  double memory_bytes = 0;  // that tasks, windows, buffers and caches hold
  // The least that would run does not fit either; all knobs are at their least.
  bool is_over_memory = false;
};

// Tasks of a node are at most what gives each a core, whatever their number
// gains. Never over the memory budget, unless is_over_memory.
absl::StatusOr<Choice> Choose(const Model& model, const Budget& budget = {});

}  // namespace penstock::tuner
