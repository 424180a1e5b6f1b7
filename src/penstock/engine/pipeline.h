// A plan made ready to run, and its iterators.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/engine/operator.h"
#include "penstock/engine/run.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

// A plan as operators. Constant once built; shared by its iterators.
class Pipeline final {
 public:
  // `defaults`: what the plan's own options leave unset. `sources`: where the
  // constants are that functions capture, if any do.
  // REQUIRES: the plan is valid (plan::Validate, or made by plan::Append).
  static absl::StatusOr<std::shared_ptr<const Pipeline>> Build(
      const plan::Plan& plan, const plan::Options& defaults = {},
      RowSources* sources = nullptr);

  const Operator& root() const { return *root_; }
  const OpInfo& root_info() const { return *root_info_; }
  // Every operator, sub-plans' included, by id.
  const std::deque<OpInfo>& ops() const { return infos_; }
  const plan::Options& options() const { return options_; }
  const std::string& fingerprint() const { return fingerprint_; }
  // Whether rows need a lineage: something random depends on it.
  bool needs_lineage() const { return needs_lineage_; }
  // Whether somebody could see rows being computed early (Python's), and
  // said how early they may be (a prefetch size, or run_ahead).
  bool is_row_exact() const { return is_row_exact_; }
  // Operators that read files, by id.
  const std::vector<int>& file_ops() const { return file_ops_; }
  // The op that node `node` of the plan became, by id; options are that of the
  // node before them. -1: none, since nobody reads it.
  int OpOfNode(int node) const { return op_of_node_[node]; }
  int num_nodes() const { return static_cast<int>(op_of_node_.size()); }
  // Why rows after op `id` are never kept, as a sentence; empty: a knob may
  // have them kept.
  const std::string& WhyNotKept(int id) const { return why_not_kept_[id]; }
  // Seed that the user gave to op `id`, where one was given.
  std::optional<uint64_t> GivenSeed(int id) const { return seeds_[id]; }

 private:
  friend class Builder;
  Pipeline() = default;

  std::deque<OpInfo> infos_;
  std::vector<std::optional<uint64_t>> seeds_;
  std::vector<std::string> why_not_kept_;
  std::vector<int> file_ops_;
  std::vector<int> op_of_node_;
  OperatorPtr root_;
  const OpInfo* root_info_ = nullptr;
  plan::Options options_;
  std::string fingerprint_;
  bool needs_lineage_ = false;
  bool is_row_exact_ = false;
};

// What is kept of nodes that have an instance, between the iterators of one
// dataset: how many there were, and the seed drawn for the first. Thread-safe.
class Instances final {
 public:
  explicit Instances(std::function<uint64_t()> random)
      : random_(std::move(random)) {}

  // The state for the next iterator of `instance`.
  RandomState Next(uint64_t instance, std::optional<uint64_t> given_seed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A resumed iterator of `instance` has this state: the next one's follows it.
  // With `is_recovery`, unless there was a later one.
  void Resume(uint64_t instance, const RandomState& state, bool is_recovery)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(uint64_t instance) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::function<uint64_t()> random_;
  Mutex mutex_;
  std::map<uint64_t, RandomState> states_ ABSL_GUARDED_BY(mutex_);
};

// One run over a pipeline.
class Iterator final {
 public:
  // At the beginning. `epoch`: of all random nodes, instead of the count of
  // iterators. `seed`: what the nodes without a seed of their own are seeded
  // from, instead of numbers drawn here: then several engines agree, and
  // `instances` counts nothing. `part`: of the pipeline's rows these alone.
  // InvalidArgument if there is no such part.
  static absl::StatusOr<std::unique_ptr<Iterator>> Start(
      std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
      Instances& instances, std::optional<uint64_t> epoch,
      std::optional<uint64_t> seed = std::nullopt,
      const std::optional<RunPart>& part = std::nullopt);

  // Where `state` (of Save()) says, and `skip_rows` rows later.
  // InvalidArgument if it is of another pipeline or part, DataLoss if it is
  // damaged.
  static absl::StatusOr<std::unique_ptr<Iterator>> Resume(
      std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
      Instances& instances, std::string_view state, int64_t skip_rows,
      bool is_recovery = false,
      const std::optional<RunPart>& part = std::nullopt);

  // Leaves out the next `rows` rows.
  void SkipRows(int64_t rows) { root_->SkipRows(rows); }
  // A failure is returned again by every later call.
  absl::StatusOr<Pull> Next(const Request& request);
  // The next call gives the end (Stream::IsOver).
  bool IsOver() const { return root_->IsOver(); }
  // The position before the next row: version, fingerprint, seeds and epochs,
  // every node's state, and a checksum.
  std::string Save() const;
  // `state`, of Save(), with what rows of other engines need besides: whoever
  // resumes there has the same rows again that have been given since. `ticket`
  // is the receiver's name for it.
  struct Sealed {
    std::string state;
    uint64_t ticket = 0;
  };
  Sealed Seal(std::string state) const;
  // What a sealed state is made of. DataLoss if it is damaged.
  struct Parts {
    std::string_view state;    // as Save() gave it
    std::string_view journal;  // the receiver's
  };
  static absl::StatusOr<Parts> TakeApart(std::string_view sealed);

  const std::shared_ptr<const Pipeline>& pipeline() const { return pipeline_; }
  // What it has counted so far; may be read while it runs.
  std::shared_ptr<Run> run() const { return run_; }

 private:
  Iterator(std::shared_ptr<const Pipeline> pipeline, std::shared_ptr<Run> run)
      : pipeline_(std::move(pipeline)), run_(std::move(run)) {}
  absl::Status Open();

  const std::shared_ptr<const Pipeline> pipeline_;
  const std::shared_ptr<Run> run_;
  std::unique_ptr<Stream> root_;
  absl::Status failure_;
};

}  // namespace penstock::engine
