// What to change next, one family of knobs at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/knobs.pb.h"
#include "penstock/tuner/choose.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

struct Proposal {
  KnobKind family = KnobKind::kParallelism;
  plan::Knobs knobs;  // all that is to be in force
  // Node (its number; of output_rows none, 0) and new value.
  std::vector<std::pair<uint32_t, int64_t>> values;
  std::string from, to;  // "decode 1, crop 1", "decode 6, crop 2"
  std::string why;
  double now = 0;        // the model's rate as it is
  double predicted = 0;  // with this
  // Less is held or run: as good as before is good enough.
  bool gives_back = false;
  // Gains nothing by itself, but another family needs it, or it is against
  // variance, which the model's rate does not show.
  bool is_support = false;
};

// The families of `choice` that are worth a trial, best first: those that raise
// the rate, then what these need, then what can be given back. Knobs of the
// user's are as they are.
std::vector<Proposal> Propose(const Model& model, const Choice& choice,
                              const plan::Knobs& in_force);

// Whether the two would try the same: the same knobs, within a quarter or 1.
bool IsSameTrial(const Proposal& a, const Proposal& b);

}  // namespace penstock::tuner
