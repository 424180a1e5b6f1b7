// Tuning a pipeline while it runs: a state machine over its snapshots.
//
//   measure   windows under the knobs in force make a model; the model says
//             which family of knobs is worth a trial
//   try       the family is put in force, and rates are compared with those
//             before, window by window; what is worse goes back
//   rest      nothing is worth a trial; begin again when demands have moved
//
// It has no clock and no thread: time is in the snapshots. What was tried is
// not tried again until demands have moved. Where rates fall because others use
// the cores, nothing is changed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "penstock/knobs.pb.h"
#include "penstock/snapshot.pb.h"
#include "penstock/tuner/choose.h"
#include "penstock/tuner/compare.h"
#include "penstock/tuner/drift.h"
#include "penstock/tuner/propose.h"

namespace penstock::tuner {

struct OnlineOptions {
  Budget budget;
  // Snapshots nearer to each other are left out.
  double window_seconds = 0.5;
  // What is not looked at after a change: chunks under way are of before.
  double settle_seconds = 1;
  // Windows that a model is made of, at least.
  int min_windows = 6;
  int max_probes_per_hour = 20;
  // In which a cache may be decided on fewer windows: later rows of the first
  // epoch are kept, earlier ones are not.
  double cache_seconds = 10;
  // At rest, between two looks.
  double look_seconds = 5;
  // After so long, others that use the cores are taken to stay.
  double patience_seconds = 600;
};

// One line of what was done and why.
struct Decision {
  enum class Kind {
    kTried,       // put in force, to be judged
    kKept,        // as good as it should be
    kRolledBack,  // what was before is in force again
    kNoted,       // nothing was changed
  };
  Kind kind = Kind::kNoted;
  double seconds = 0;  // since the run began
  std::string what;    // the family: "parallelism"; or what was noticed
  std::string from, to;
  std::string why;
  // Root elements a second; 0: not known.
  double predicted = 0;
  double before = 0;
  double after = 0;
};

// "12.5 s: kept parallelism: decode 1 -> decode 6 (5.1 tasks' work at 80/s);
//  predicted 78/s, seen 75/s, before 14/s"
std::string ToString(const Decision& decision);

// Not thread-safe.
class Online final {
 public:
  explicit Online(const OnlineOptions& options = {}) : options_(options) {}

  // What to put in force now, if anything.
  struct Step {
    std::optional<plan::Knobs> knobs;
    std::vector<Decision> log;
  };
  // To be called with each snapshot, every 100 ms to 10 s. Snapshots that are
  // not valid, go backwards or are of another run begin everything anew.
  Step Advance(const plan::Snapshot& snapshot);

  // Models made so far: what Advance() costs. At most one a call.
  int64_t num_models() const { return num_models_; }

 private:
  enum class State { kMeasuring, kTrying, kResting };

  struct Trial {
    Proposal proposal;
    plan::Knobs before;
    Rates rates;  // before
    Demands demands;
    double began = 0;
  };

  // A cache that was put in force, judged when it is full.
  struct PendingCache {
    Proposal proposal;
    Rates rates;
  };

  // Whether the snapshot goes on from the last one: the same run, later.
  bool GoesOn(const plan::Snapshot& snapshot) const;
  void BeginWindows(const plan::Snapshot& snapshot);
  // False: no window ends with it.
  bool AddWindow(const plan::Snapshot& snapshot);
  void Gather(const plan::Snapshot& snapshot);
  std::optional<Model> MakeModel();

  // Another run of the plan has begun: with what was found in the last one.
  void GoOnWith(const plan::Snapshot& snapshot, Step& step);
  void Measure(Step& step);
  bool TryCache(const Model& model, const Choice& choice, Step& step);
  void JudgeCache(Step& step);
  void Try(Proposal proposal, const Demands& demands, Step& step);
  void Judge(Step& step);
  void RollBack(const Trial& trial, Step& step);
  void Rest(const Demands& demands, Step& step);
  void Look(Step& step);

  bool MayProbe() const;
  bool WasTried(const Proposal& proposal) const;
  Budget BudgetNow() const;
  Decision DecisionOf(const Proposal& proposal, Decision::Kind kind,
                      double before, double after) const;

  OnlineOptions options_;
  State state_ = State::kMeasuring;
  double now_ = 0;          // seconds, over all runs
  double passed_ = 0;       // of them, before this run
  double begin_ = 0;        // this run's time when it was first seen
  double quiet_until_ = 0;  // after a change
  // Snapshots under the knobs in force; at most 9, over the whole time.
  std::vector<plan::Snapshot> windows_;
  std::optional<plan::Snapshot> last_;  // that ended a window
  Rates rates_;
  int measured_windows_ = 0;  // when the last model was made
  std::optional<Trial> trial_;
  std::optional<PendingCache> cache_;
  std::vector<Proposal> tried_;
  std::deque<double> probes_;  // when, in the last hour
  std::optional<Demands> reference_;
  double next_look_ = 0;
  int moved_looks_ = 0;
  std::optional<double> crowded_since_;
  bool is_interrupted_ = false;  // by them, before all was tried
  bool is_limited_ = false;      // by trials in an hour
  bool has_said_nothing_comes_ = false;
  int64_t num_models_ = 0;
};

}  // namespace penstock::tuner
