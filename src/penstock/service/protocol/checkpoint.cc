#include "penstock/service/protocol/checkpoint.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::service {

absl::StatusOr<Progress> Merge(absl::Span<const ConsumerState> states) {
  if (states.empty()) {
    return absl::InvalidArgumentError("a checkpoint without a state");
  }
  const ConsumerState& first = states.front();
  if (first.slots() == 0 || states.size() != first.slots()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected the states of all ", first.slots(), " consumers of job '",
        first.job(), "'; got ", states.size()));
  }
  Progress all = Inherited(first);
  const Progress inherited = all;
  std::vector<bool> seen(states.size(), false);
  for (const ConsumerState& state : states) {
    if (!IsSame(state.epoch(), first.epoch()) || state.job() != first.job() ||
        state.plan() != first.plan() || state.manifest() != first.manifest() ||
        state.slots() != first.slots()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected states of one checkpoint; got one of job '", first.job(),
          "' (", ToString(first.epoch()), ") and one of job '", state.job(),
          "' (", ToString(state.epoch()), ")"));
    }
    if (state.slot() >= seen.size() || seen[state.slot()]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected one state of each consumer; got ",
          "another one of consumer ", state.slot(), " of ", state.slots()));
    }
    seen[state.slot()] = true;
    const Progress its = Inherited(state);
    if (!(its.done == inherited.done) || its.open != inherited.open) {
      return absl::InvalidArgumentError(
          "expected states of one generation; they began with different "
          "bundles");
    }
    all.done.AddAll(BundleSet(state.done()));
    // One that was released may be in the states of two.
    for (const Cursor& cursor : state.open()) {
      uint64_t& position = all.open[cursor.bundle()];
      position = std::max<uint64_t>(position, cursor.position());
    }
  }
  std::erase_if(all.open,
                [&](const auto& entry) { return all.done.Has(entry.first); });
  return all;
}

Progress ProgressOf(const ConsumerState& state) {
  Progress progress = Inherited(state);
  progress.done.AddAll(BundleSet(state.done()));
  for (const Cursor& cursor : state.open()) {
    progress.open[cursor.bundle()] = cursor.position();
  }
  std::erase_if(progress.open, [&](const auto& each) {
    return progress.done.Has(each.first);
  });
  return progress;
}

std::vector<Split> SplitsOf(const ConsumerState& state) {
  std::vector<Split> splits;
  for (const auto& [bundle, position] : ProgressOf(state).open) {
    if (position == 0) continue;
    const auto before =
        std::ranges::find(state.splits(), bundle, &Split::bundle);
    if (before != state.splits().end()) {
      splits.push_back(*before);
      continue;
    }
    Split& split = splits.emplace_back();
    split.set_bundle(bundle);
    split.set_lanes(state.lanes());
    split.set_position(position);
  }
  return splits;
}

std::string ToString(const EpochId& id) {
  return absl::StrCat("run ", id.run(), ", epoch ", id.epoch(), ", generation ",
                      id.generation());
}

}  // namespace penstock::service
