// What members of a group are called, and what they have of each other's
// (design note 0027).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"
#include "penstock/service.pb.h"

namespace penstock::service {

inline constexpr std::string_view kShareAuto = "auto";

// The group that a distribution's reader is a member of; unset: none. `plan` is
// its id.
std::optional<Group> GroupOf(const plan::Distribution& distribution,
                             const std::string& plan);

// The run of one consumer of several that read in rounds.
std::string JobOfLane(const plan::Distribution& distribution);

// Of the states of all consumers, that of `job`. InvalidArgument: there is
// none, since there were more or fewer of them.
absl::StatusOr<std::vector<ConsumerState>> OwnStates(
    const std::vector<ConsumerState>& states, const std::string& job);

// Where consumers of any number go on from. `states`: of one or more of those
// before. InvalidArgument: they are not of one round.
absl::StatusOr<ConsumerState> StateOfRound(
    const std::vector<ConsumerState>& states);

}  // namespace penstock::service
