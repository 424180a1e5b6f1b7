#include "penstock/tuner/bucket_boundaries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/expect.h"

namespace penstock::tuner {
namespace {

constexpr int64_t kMaxShapes = 1024;
constexpr int64_t kMaxLength = int64_t{1} << 40;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Buckets over the places of a rising list of targets, what elements may be
// padded to. A bucket that ends at place j pads all its elements to target j.
class Search final {
 public:
  // rows[j]: elements that target j is the first to hold; cost[j]: of one
  // element that is padded to it, rising.
  Search(const std::vector<double>& rows, std::vector<double> cost)
      : cost_(std::move(cost)), below_(rows.size() + 1, 0) {
    for (size_t j = 0; j < rows.size(); ++j)
      below_[j + 1] = below_[j] + rows[j];
  }

  // The last places of at most `buckets` buckets that cost least together.
  std::vector<size_t> Run(size_t buckets) {
    const size_t places = cost_.size();
    best_.assign(places + 1, kInfinity);
    best_[0] = 0;
    std::vector<std::vector<uint32_t>> begins;
    std::vector<double> totals;
    for (size_t k = 0; k < std::min(buckets, places); ++k) {
      next_.assign(places + 1, kInfinity);
      begin_.assign(places + 1, 0);
      Fill(k + 1, places, k, places - 1);
      best_ = next_;
      begins.push_back(begin_);
      totals.push_back(best_[places]);
    }
    // No more buckets than help.
    size_t used = totals.size();
    while (used > 1 && totals[used - 2] <= totals[used - 1] * (1 + 1e-12)) {
      --used;
    }
    std::vector<size_t> ends;
    for (size_t at = places, k = used; k-- > 0; at = begins[k][at]) {
      ends.push_back(at - 1);
    }
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

 private:
  // The cost of a bucket of places [i, j).
  double Cost(size_t i, size_t j) const {
    return (below_[j] - below_[i]) * cost_[j - 1];
  }

  // Ends first…last, whose best last bucket begins between low and high. Costs
  // rise with the target, so that where the best one begins rises with where it
  // ends: half of the ends bounds the other half.
  void Fill(size_t first, size_t last, size_t low, size_t high) {
    if (first > last) return;
    const size_t middle = first + (last - first) / 2;
    size_t at = low;
    for (size_t i = low; i <= std::min(high, middle - 1); ++i) {
      const double total = best_[i] + Cost(i, middle);
      if (total < next_[middle]) {
        next_[middle] = total;
        at = i;
      }
    }
    begin_[middle] = static_cast<uint32_t>(at);
    Fill(first, middle - 1, low, at);
    Fill(middle + 1, last, at, high);
  }

  const std::vector<double> cost_;
  std::vector<double> below_;  // rows of all places before
  // Of places [0, j): the least cost, with one bucket less and with as many.
  std::vector<double> best_;
  std::vector<double> next_;
  std::vector<uint32_t> begin_;  // where the last bucket of that begins
};

absl::Status Check(const BucketOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(
      plan::InRange("shapes", options.shapes, 1, kMaxShapes));
  PENSTOCK_RETURN_IF_ERROR(
      plan::InRange("multiple_of", options.multiple_of, 1, kMaxLength));
  if (!options.max_tokens.has_value()) return absl::OkStatus();
  return plan::InRange("max_tokens", *options.max_tokens, 1, kMaxLength);
}

// What an element of this length is padded to, if it is alone.
int64_t TargetOf(int64_t length, const BucketOptions& options) {
  const int64_t step = options.multiple_of;
  const int64_t target =
      (std::max<int64_t>(1, length) + step - 1) / step * step;
  return std::min(target, options.max_tokens.value_or(target));
}

// Of an element that is padded to `target`: what it takes of the batches.
double CostOf(int64_t target, const BucketOptions& options) {
  const auto tokens = static_cast<double>(target);
  if (!options.max_tokens.has_value()) return tokens;
  const int64_t rows = *options.max_tokens / target;
  // Of those that need as many batches, the ones with less padding.
  return static_cast<double>(*options.max_tokens) / static_cast<double>(rows) +
         1e-6 * tokens;
}

}  // namespace

absl::StatusOr<Buckets> ChooseBoundaries(absl::Span<const LengthCount> lengths,
                                         const BucketOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(Check(options));
  std::map<int64_t, double> rows_of;  // by target
  double items = 0;
  for (const LengthCount& given : lengths) {
    PENSTOCK_RETURN_IF_ERROR(
        plan::InRange("a length", given.length, 0, kMaxLength));
    if (!(given.rows >= 0) || !std::isfinite(given.rows)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a length's rows must be at least 0; got ", given.rows));
    }
    const bool is_left_out =
        given.rows == 0 ||
        given.length > options.max_tokens.value_or(kMaxLength);
    if (is_left_out) continue;
    rows_of[TargetOf(given.length, options)] += given.rows;
    items += given.rows * static_cast<double>(given.length);
  }
  if (rows_of.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "boundaries are chosen from lengths; got ",
        lengths.empty() ? "none" : "none that max_tokens has room for"));
  }
  std::vector<int64_t> targets;
  std::vector<double> rows;
  std::vector<double> costs;
  for (const auto& [target, count] : rows_of) {
    targets.push_back(target);
    rows.push_back(count);
    costs.push_back(CostOf(target, options));
  }
  Buckets buckets;
  double padded = 0;
  size_t begin = 0;
  for (size_t end :
       Search(rows, costs).Run(static_cast<size_t>(options.shapes))) {
    buckets.boundaries.push_back(targets[end] + 1);
    for (; begin <= end; ++begin) {
      padded += rows[begin] * static_cast<double>(targets[end]);
    }
  }
  buckets.padding_share = padded > 0 ? 1 - items / padded : 0;
  return buckets;
}

}  // namespace penstock::tuner
