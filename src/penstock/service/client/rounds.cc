#include "penstock/service/client/rounds.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/clock.h"
#include "penstock/data/builder.h"
#include "penstock/data/dtype.h"
#include "penstock/service/client/pass.h"

namespace penstock::service {
namespace {

constexpr int64_t kWarnNanos = 10'000'000'000;

// A row of the shapes of row `row`, all of zeros and empty strings.
Chunk ZerosLike(const Chunk& chunk, int64_t row) {
  Chunk zeros;
  zeros.rows = 1;
  for (const Column& column : chunk.columns) {
    const absl::Span<const int64_t> shape = column.RowShape(row);
    Buffer values = Buffer::Allocate(static_cast<size_t>(column.RowItems(row)) *
                                     ItemSize(column.dtype()));
    std::memset(values.MutableAs<std::byte>(), 0, values.size());
    zeros.columns.push_back(Column::Dense(
        column.dtype(), Shape(shape.begin(), shape.end()), 1, values));
  }
  if (chunk.has_lineage()) {
    zeros.lineage = chunk.lineage.Slice(
        static_cast<size_t>(row) * sizeof(uint64_t), sizeof(uint64_t));
  }
  return zeros;
}

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
      "\n  Have as many go on as before, or say load_state_dict(states, "
      "resize=True)."));
}

absl::StatusOr<ConsumerState> StateOfRound(
    const std::vector<ConsumerState>& states) {
  const ConsumerState& first = states[0];
  for (const ConsumerState& state : states) {
    if (state.lanes() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "consumers that read in rounds must go on from states of such; got "
          "one of job '",
          state.job(), "', which does not"));
    }
    if (state.row() != first.row() || state.seed() != first.seed() ||
        state.lanes() != first.lanes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the states of consumers must be of one round; got round ",
          first.row(), " of '", first.job(), "' and round ", state.row(),
          " of '", state.job(), "'\n  Save them after the same step."));
    }
  }
  return first;
}

// --- Pass ---

std::optional<Chunk> Pass::TakeOfRound() {
  const Pool& round = *group_;
  std::optional<Chunk> own;
  const bool pads = options_.distribution.pads_rounds();
  if (round.rows >= lanes() || pads) {
    auto left = static_cast<int64_t>(options_.distribution.consumer());
    for (const Chunk& chunk : round.chunks) {
      if (left < chunk.rows) {
        own = Marked(Slice(chunk, left, 1), 1);
        break;
      }
      left -= chunk.rows;
    }
    if (!own) own = Marked(ZerosLike(round.chunks[0], 0), 0);
    log_.AddStitchedRows(1);
  }
  EndGroup();
  return own;
}

Chunk Pass::KeepOwn(const Chunk& rows, bool is_last) {
  const bool pads = options_.distribution.pads_rounds();
  const uint32_t lane = options_.distribution.consumer();
  std::vector<int32_t> own;
  const bool is_round = pads || group_->rows >= GroupSize();
  for (int64_t i = 0; i < rows.rows; ++i) {
    const uint64_t number = group_->given++;
    if (is_round && number % lanes() == lane) {
      own.push_back(static_cast<int32_t>(i));
    }
  }
  if (pads && rows.rows > 0) group_->like = Slice(rows, rows.rows - 1, 1);
  Chunk kept;
  if (own.size() == 1) {
    kept = Slice(rows, own[0], 1);
  } else if (!own.empty()) {
    kept = Gather(rows, own);
  }
  const auto elements = kept.rows;
  const uint64_t in_last = group_->given % lanes();
  if (pads && is_last && in_last > 0 && lane >= in_last) {
    ChunkBuilder all;
    all.Append(kept, 0, kept.rows);
    all.Append(ZerosLike(*group_->like, 0), 0, 1);
    kept = all.Build();
  }
  return Marked(std::move(kept), elements);
}

Chunk Pass::Marked(Chunk rows, int64_t elements) const {
  if (!options_.distribution.pads_rounds()) return rows;
  Buffer marks = Buffer::Allocate(static_cast<size_t>(rows.rows));
  bool* out = marks.MutableAs<bool>();
  for (int64_t i = 0; i < rows.rows; ++i) out[i] = i < elements;
  rows.columns.push_back(
      Column::Dense(DType::kBool, {}, rows.rows, std::move(marks)));
  return rows;
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
