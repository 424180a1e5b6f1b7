#include "penstock/service/client/rounds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/clock.h"
#include "penstock/service/client/pass.h"

namespace penstock::service {
namespace {

constexpr int64_t kWarnNanos = 10'000'000'000;

}  // namespace

std::optional<Group> GroupOf(const plan::Distribution& distribution,
                             const std::string& plan) {
  using plan::Distribution;
  Group group;
  if (distribution.consumers() > 0) {
    group.set_name(distribution.job());
    group.set_lanes(distribution.consumers());
    group.set_lane(distribution.consumer());
    if (distribution.has_from_round()) {
      group.set_row(distribution.from_round());
    }
    return group;
  }
  if (distribution.share().empty()) return std::nullopt;
  group.set_name(distribution.share());
  if (distribution.share() == kShareAuto) {
    group.set_name(absl::StrCat("auto:", plan));
  }
  const bool skips =
      distribution.share_policy() == Distribution::SKIP ||
      (distribution.share_policy() == Distribution::BY_VISITATION &&
       distribution.visitation() == Distribution::AT_MOST_ONCE);
  group.set_policy(skips ? Sharing::SKIP : Sharing::WAIT);
  return group;
}

std::string JobOfLane(const plan::Distribution& distribution) {
  return absl::StrCat(distribution.job(), "[", distribution.consumer(), "/",
                      distribution.consumers(), "]");
}

absl::StatusOr<std::vector<ConsumerState>> OwnStates(
    const std::vector<ConsumerState>& states, const std::string& job) {
  std::vector<std::string> jobs;
  for (const ConsumerState& state : states) {
    if (state.job() == job) return std::vector<ConsumerState>{state};
    jobs.push_back(state.job());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a consumer that reads in rounds must go on from its own state; this is ",
      job, ", and the states are of ", absl::StrJoin(jobs, ", "),
      "\n  As many consumers as before must go on."));
}

// --- Pass ---

std::optional<Chunk> Pass::TakeOfRound() {
  const Pool& round = *group_;
  std::optional<Chunk> own;
  if (round.rows >= lanes()) {
    auto left = static_cast<int64_t>(options_.distribution.consumer());
    for (const Chunk& chunk : round.chunks) {
      if (left < chunk.rows) {
        own = Slice(chunk, left, 1);
        break;
      }
      left -= chunk.rows;
    }
    log_.AddStitchedRows(1);
  }
  EndGroup();
  return own;
}

Chunk Pass::KeepOwn(Chunk rows) {
  std::vector<int32_t> own;
  const bool is_round = group_->rows >= GroupSize();
  for (int64_t i = 0; i < rows.rows; ++i) {
    const uint64_t number = group_->given++;
    if (is_round && number % lanes() == options_.distribution.consumer()) {
      own.push_back(static_cast<int32_t>(i));
    }
  }
  if (own.size() == 1) return Slice(rows, own[0], 1);
  return Gather(rows, own);
}

void Pass::AddPlace(ClientBeat& beat) const {
  if (!beat.epoch().run() || !GroupOf(options_.distribution, "")) return;
  beat.set_row(log_.begin());
  if (lanes() > 0) *beat.mutable_place() = log_.base();
}

void Pass::WarnOfMissed() {
  const uint64_t missed = client_->missed_items();
  if (missed == warned_missed_ || !options_.environment.warn) return;
  const int64_t now = SteadyClock().NowNanos();
  if (warned_missed_ns_ != 0 && now - warned_missed_ns_ < kWarnNanos) return;
  warned_missed_ns_ = now;
  warned_missed_ = missed;
  options_.environment.warn(
      absl::StrCat("job '", options_.job,
                   "' is slower than others that share its pipeline: "
                   "it has missed ",
                   missed,
                   " elements\n  With share_policy=\"wait\" the "
                   "others wait for it."));
}

}  // namespace penstock::service
