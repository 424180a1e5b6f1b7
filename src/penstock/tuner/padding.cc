#include "penstock/tuner/padding.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "penstock/tuner/bound.h"
#include "penstock/tuner/bucket_boundaries.h"

namespace penstock::tuner {
namespace {

using plan::PaddingCounts;
using plan::Report;

// Batches that say something about those to come.
constexpr uint64_t kEnoughBatches = 8;
// Padding that is worth a word, and what must go away of it.
constexpr double kMuch = 0.2;
constexpr double kGoesAway = 0.3;
// Few enough for a compiler that has to know shapes.
constexpr int64_t kUsualShapes = 8;
constexpr int64_t kUsualWindow = 1024;

std::string WhereOf(const Report::Node& node) {
  if (node.made_at().file().empty()) return node.name();
  return absl::StrCat(node.name(), " at ", node.made_at().file(), ":",
                      node.made_at().line());
}

// The best boundaries for what was seen; none if there is nothing to choose.
Buckets BestOf(const PaddingCounts& counts) {
  std::vector<LengthCount> lengths;
  for (const PaddingCounts::Length& each : counts.lengths()) {
    lengths.push_back({static_cast<int64_t>(each.length()),
                       static_cast<double>(each.rows())});
  }
  BucketOptions options;
  options.shapes = std::max<int64_t>(kUsualShapes,
                                     static_cast<int64_t>(counts.boundaries()));
  if (counts.has_max_tokens()) {
    options.max_tokens = static_cast<int64_t>(counts.max_tokens());
  }
  return ChooseBoundaries(lengths, options).value_or(Buckets());
}

// What to do about it; an empty title: nothing.
Report::Fix FixOf(const plan::Snapshot::Node& measured, Report::Node& node) {
  Report::Padding& padding = *node.mutable_padding();
  Report::Fix fix;
  fix.set_needs_the_user(true);
  const std::string now = absl::StrFormat("%.0f %% of what it gives is padding",
                                          100 * padding.share());
  if (measured.op() == plan::Node::kBatchByTokens) {
    fix.set_title(absl::StrCat("set window=", kUsualWindow, " of ",
                               WhereOf(node), ", or a larger one"));
    fix.set_why(absl::StrCat(
        now, "; more elements to choose from make batches of one length"));
    return fix;
  }
  const Buckets best = BestOf(measured.padding());
  const bool is_better =
      !best.boundaries.empty() &&
      best.padding_share <= (1 - kGoesAway) * padding.share();
  if (!is_better) return fix;
  *padding.mutable_boundaries() = {best.boundaries.begin(),
                                   best.boundaries.end()};
  padding.set_best_share(best.padding_share);
  const std::string boundaries = absl::StrCat(
      "bucket_boundaries=[", absl::StrJoin(best.boundaries, ", "), "]");
  fix.set_title(measured.op() == plan::Node::kPaddedBatch
                    ? absl::StrCat("use bucket_by_sequence_length with ",
                                   boundaries, " in place of ", WhereOf(node))
                    : absl::StrCat("set ", boundaries, " of ", WhereOf(node)));
  fix.set_why(absl::StrFormat(
      "would lower padding from %.0f %% to about %.0f %% of what it gives: "
      "less work for who takes it",
      100 * padding.share(), 100 * best.padding_share));
  return fix;
}

// How many times as fast it would be with less padding. A consumer's work is
// taken to be that of the items that it gets; the node's own to be that of the
// items that it gives.
double GainOf(const Report& report, const Report::Node& node) {
  const Report::Padding& padding = node.padding();
  if (!padding.has_best_share()) return 1;
  const double left = (1 - padding.share()) / (1 - padding.best_share());
  const Report::Wall& wall = report.wall();
  if (wall.kind() == WallName(Wall::kConsumer)) {
    const double most = report.next_wall().rate() / report.possible().middle();
    return report.next_wall().rate() > 0
               ? std::clamp(1 / left, 1.0, std::max(1.0, most))
               : 1 / left;
  }
  double share = 0;  // of what limits it, that is the node's
  if (wall.kind() == WallName(Wall::kCores)) share = node.cpu_share();
  if (wall.node() == node.name()) share = 1;
  return 1 / (1 - share * (1 - left));
}

// Among those that are the user's to do, where its gain puts it.
void Insert(Report::Fix fix, Report& report) {
  const double gain = fix.expected().middle();
  *report.add_fixes() = std::move(fix);
  auto& fixes = *report.mutable_fixes();
  for (int i = fixes.size() - 1; i > 0; --i) {
    const Report::Fix& before = fixes[i - 1];
    if (!before.needs_the_user() || before.expected().middle() >= gain) break;
    fixes.SwapElements(i, i - 1);
  }
}

}  // namespace

void AddPadding(const plan::Snapshot& last, plan::Report& report) {
  for (const plan::Snapshot::Node& measured : last.nodes()) {
    const PaddingCounts& counts = measured.padding();
    const bool is_counted =
        counts.padded_items() > 0 && counts.items() <= counts.padded_items();
    if (!is_counted) continue;
    const auto node = std::find_if(report.mutable_nodes()->begin(),
                                   report.mutable_nodes()->end(),
                                   [&](const Report::Node& each) {
                                     return each.node() == measured.node();
                                   });
    if (node == report.mutable_nodes()->end()) continue;
    Report::Padding& padding = *node->mutable_padding();
    padding.set_share(1 - static_cast<double>(counts.items()) /
                              static_cast<double>(counts.padded_items()));
    padding.set_shapes(counts.shapes());
    padding.set_batches(counts.batches());
    padding.set_items(counts.items());
    padding.set_padded_items(counts.padded_items());
    if (counts.batches() < kEnoughBatches || padding.share() < kMuch) continue;
    Report::Fix fix = FixOf(measured, *node);
    if (fix.title().empty()) continue;
    const double gain = GainOf(report, *node);
    Report::Interval& expected = *fix.mutable_expected() = report.possible();
    expected.set_middle(gain * expected.middle());
    expected.set_high(gain * expected.high());
    Insert(std::move(fix), report);
  }
}

}  // namespace penstock::tuner
