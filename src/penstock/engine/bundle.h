// A bundle: a share of a divided pipeline (plan/divide.h), run to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/run.h"
#include "penstock/plan/divide.h"

namespace penstock::engine {

// The rows [begin, end) of the division's source, in a pass of it (0 unless it
// has several) that is itself run for repetition `iteration` of what follows.
RunPart PartOf(const plan::Division& division, int64_t begin, int64_t end,
               uint64_t pass = 0, uint64_t iteration = 0);

// One run of a share. It gives items, at positions 0, 1, 2, …: rows of the
// remote plan, and after them the loose rows (Division::Stitch) that are left.
// The same share with the same seed and epoch has the same items at the same
// positions, whoever runs it and however often. One caller at a time.
class Bundle final {
 public:
  struct Items {
    Pull pull;
    // Rows of what the stitched node reads, not of the remote plan.
    bool is_loose = false;
  };

  // `pipeline` is of the division's remote plan; `seed` and `epoch` are those
  // of all its shares. From the item at `position` on: what is before it is
  // computed again as far as it must be.
  static absl::StatusOr<std::unique_ptr<Bundle>> Start(
      std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
      Instances& instances, uint64_t epoch, uint64_t seed, const RunPart& part,
      int64_t position = 0);

  // Where `state` (of Save()) says, and `skip_items` items later.
  // InvalidArgument if it is of another share, DataLoss if it is damaged.
  static absl::StatusOr<std::unique_ptr<Bundle>> Resume(
      std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
      Instances& instances, std::string_view state, const RunPart& part,
      int64_t skip_items = 0);

  // A failure is returned again by every later call.
  absl::StatusOr<Items> Next(const Request& request);
  // The next call gives the end (Stream::IsOver). Streams that leave loose rows
  // behind do not know it before.
  bool IsOver() const {
    return !has_ended_ && to_skip_ == 0 && iterator_->IsOver();
  }
  // Of the next item.
  int64_t position() const { return position_ + to_skip_; }
  // Small, as states are: cursors, not rows.
  std::string Save() const;

  std::shared_ptr<Run> run() const { return iterator_->run(); }

 private:
  Bundle(std::unique_ptr<Iterator> iterator, int64_t position,
         int64_t loose_given)
      : iterator_(std::move(iterator)),
        position_(position),
        loose_given_(loose_given) {}
  void Skip(int64_t items);

  const std::unique_ptr<Iterator> iterator_;
  int64_t position_;  // of the next item that is computed
  int64_t loose_given_;
  int64_t to_skip_ = 0;     // items to compute and leave out
  bool has_ended_ = false;  // the remote plan
};

}  // namespace penstock::engine
