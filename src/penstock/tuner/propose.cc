#include "penstock/tuner/propose.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

// A gain that is worth a trial, of the rate.
constexpr double kLeastGain = 1.02;
// Gains of all families together that are worth one that gains nothing alone.
constexpr double kLeastJointGain = 1.03;
// What is given back must be at least this share of what the family has.
constexpr double kLeastGivenBack = 0.25;
constexpr double kAsGood = 0.99;
// A consumer's time that is worth more rows to be ready.
constexpr double kWorthBuffering = 0.03;

constexpr KnobKind kFamilies[] = {
    KnobKind::kParallelism, KnobKind::kReadDepth,  KnobKind::kReadBytes,
    KnobKind::kReorderRows, KnobKind::kBufferRows, KnobKind::kOutputRows};

// In force for its family, in all: tasks, reads or rows.
struct Amount {
  double from = 0;
  double to = 0;
  bool is_known = true;  // the first
};

void Set(plan::Knob* knob, int64_t value) {
  knob->set_value(value);
  knob->set_chosen_by(plan::TUNER);
}

bool IsUsers(const plan::Knob& knob) { return knob.chosen_by() == plan::USER; }

// A window holds at least what its tasks work on.
void KeepWindow(plan::NodeKnobs& knobs) {
  if (knobs.has_reorder_rows() && !IsUsers(knobs.reorder_rows()) &&
      knobs.reorder_rows().value() < knobs.parallelism().value()) {
    Set(knobs.mutable_reorder_rows(), knobs.parallelism().value());
  }
}

void Write(const Setting& setting, uint32_t id, plan::Knobs& knobs) {
  if (setting.kind == KnobKind::kOutputRows) {
    Set(knobs.mutable_output_rows(), setting.to);
    return;
  }
  plan::NodeKnobs& node = (*knobs.mutable_nodes())[id];
  switch (setting.kind) {
    case KnobKind::kParallelism:
      Set(node.mutable_parallelism(), setting.to);
      return KeepWindow(node);
    case KnobKind::kReadDepth:
      return Set(node.mutable_read_depth(), setting.to);
    case KnobKind::kReadBytes:
      return Set(node.mutable_read_bytes(), setting.to);
    case KnobKind::kReorderRows:
      Set(node.mutable_reorder_rows(), setting.to);
      return KeepWindow(node);
    case KnobKind::kBufferRows:
      return Set(node.mutable_buffer_rows(), setting.to);
    case KnobKind::kOutputRows:
    case KnobKind::kCache:
      return;
  }
}

Change ChangeOf(const Setting& setting, uint32_t id) {
  switch (setting.kind) {
    case KnobKind::kReadDepth:
      return SetReadDepth{id, setting.to};
    case KnobKind::kReadBytes:
      return SetReadBytes{id, setting.to};
    case KnobKind::kReorderRows:
      return SetReorderRows{id, setting.to};
    case KnobKind::kBufferRows:
      return SetBufferRows{id, setting.to};
    case KnobKind::kOutputRows:
      return SetOutputRows{setting.to};
    default:
      return SetTasks{id, setting.to};
  }
}

double RateWith(const Model& model, const std::vector<Change>& changes,
                double otherwise) {
  const absl::StatusOr<Bound> bound =
      WhatIf(model, changes, KnobsAre::kInForce);
  return bound.ok() ? bound->rate.middle : otherwise;
}

// What the family would change; nothing if nothing.
Proposal Make(const Model& model, const Choice& choice,
              const plan::Knobs& in_force, KnobKind family, double now,
              Amount& amount) {
  Proposal proposal;
  proposal.family = family;
  proposal.knobs = in_force;
  proposal.now = now;
  std::vector<Change> changes;
  for (const Setting& setting : choice.settings) {
    if (setting.kind != family || setting.is_pinned) continue;
    const bool is_node = setting.node >= 0;
    const uint32_t id = is_node ? (*model.measured)[setting.node].id : 0;
    Write(setting, id, proposal.knobs);
    changes.push_back(ChangeOf(setting, id));
    proposal.values.emplace_back(id, setting.to);
    const std::string name =
        is_node ? absl::StrCat((*model.measured)[setting.node].name, " ") : "";
    absl::StrAppend(&proposal.from, proposal.from.empty() ? "" : ", ", name,
                    setting.from ? absl::StrCat(*setting.from) : "unset");
    absl::StrAppend(&proposal.to, proposal.to.empty() ? "" : ", ", name,
                    setting.to);
    if (proposal.why.empty()) proposal.why = setting.why;
    amount.from += static_cast<double>(setting.from.value_or(0));
    amount.is_known &= setting.from.has_value();
    amount.to += static_cast<double>(setting.to);
  }
  if (!changes.empty()) proposal.predicted = RateWith(model, changes, now);
  return proposal;
}

// The consumer is the slower one, and waits all the same: too little is ready
// when it comes.
bool IsHeldUp(const Model& model, const Bound& now) {
  return now.wall().wall == Wall::kConsumer &&
         model.consumer_wait_share.value_or(0) > kWorthBuffering &&
         model.rate.value < (1 - kWorthBuffering) * now.rate.middle;
}

bool IsAgainstVariance(KnobKind family) {
  return family == KnobKind::kBufferRows || family == KnobKind::kOutputRows ||
         family == KnobKind::kReorderRows;
}

}  // namespace

std::vector<Proposal> Propose(const Model& model, const Choice& choice,
                              const plan::Knobs& in_force) {
  const Bound bound = FindBound(model, KnobsAre::kInForce);
  const double now = bound.rate.middle;
  const bool is_held_up = IsHeldUp(model, bound);
  const bool is_joint = choice.bound.rate.middle >= kLeastJointGain * now;
  // The bound may be far above what is seen, where threads are in each other's
  // way.
  const double seen = model.rate.value;
  std::vector<Proposal> gains, supports, returns;
  for (KnobKind family : kFamilies) {
    Amount amount;
    Proposal proposal = Make(model, choice, in_force, family, now, amount);
    if (proposal.values.empty()) continue;
    if (proposal.predicted >= kLeastGain * now) {
      gains.push_back(std::move(proposal));
    } else if ((amount.is_known && amount.to > amount.from &&
                (is_joint || (IsAgainstVariance(family) &&
                              amount.to >= 2 * amount.from))) ||
               (is_held_up && family == KnobKind::kOutputRows &&
                amount.to > amount.from)) {
      proposal.is_support = true;
      supports.push_back(std::move(proposal));
    } else if (amount.to <= (1 - kLeastGivenBack) * amount.from &&
               proposal.predicted >= kAsGood * std::min(now, seen)) {
      proposal.gives_back = true;
      returns.push_back(std::move(proposal));
    }
  }
  std::stable_sort(gains.begin(), gains.end(),
                   [](const Proposal& a, const Proposal& b) {
                     return a.predicted > b.predicted;
                   });
  for (std::vector<Proposal>* more : {&supports, &returns}) {
    std::move(more->begin(), more->end(), std::back_inserter(gains));
  }
  return gains;
}

bool IsSameTrial(const Proposal& a, const Proposal& b) {
  if (a.family != b.family || a.values.size() != b.values.size()) return false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].first != b.values[i].first) return false;
    const int64_t larger = std::max(a.values[i].second, b.values[i].second);
    const int64_t apart = std::abs(a.values[i].second - b.values[i].second);
    if (apart > 1 && apart * 4 > larger) return false;
  }
  return true;
}

}  // namespace penstock::tuner
