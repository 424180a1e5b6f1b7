#include "penstock/tuner/online.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/plan/snapshot.h"
#include "penstock/tuner/demand.h"
#include "penstock/tuner/number_text.h"

namespace penstock::tuner {
namespace {

using plan::Snapshot;

constexpr size_t kMaxSnapshots = 9;
constexpr double kHour = 3600;
// A cache need not be sure of costs, only of sizes.
constexpr int kWindowsForCache = 2;
// After so long without an element it is said that none comes.
constexpr double kSilence = 30;
// A knob that is not in force after so many windows never will be.
constexpr double kWindowsToObey = 10;

double SecondsOf(const Snapshot& snapshot) {
  return static_cast<double>(snapshot.time_ns()) * 1e-9;
}

uint64_t RootRows(const Snapshot& snapshot) {
  for (const Snapshot::Node& node : snapshot.nodes()) {
    if (node.node() == snapshot.root()) return node.rows();
  }
  return 0;
}

// Whether caches are there, and full, in the same nodes.
bool HasSameCaches(const Snapshot& a, const Snapshot& b) {
  if (a.nodes_size() != b.nodes_size()) return false;
  for (int i = 0; i < a.nodes_size(); ++i) {
    if (a.nodes(i).has_cache() != b.nodes(i).has_cache() ||
        a.nodes(i).cache().is_complete() != b.nodes(i).cache().is_complete()) {
      return false;
    }
  }
  return true;
}

bool IsCacheFull(const Snapshot& snapshot, uint32_t id) {
  return std::any_of(snapshot.nodes().begin(), snapshot.nodes().end(),
                     [id](const Snapshot::Node& node) {
                       return node.node() == id && node.cache().is_complete();
                     });
}

void KeepUsers(const plan::Knob& from, plan::Knob* to) {
  if (from.chosen_by() == plan::USER) *to = from;
}

// Puts the user's knobs of `from` into `to`.
void KeepUsers(const plan::Knobs& from, plan::Knobs& to) {
  if (from.output_rows().chosen_by() == plan::USER) {
    *to.mutable_output_rows() = from.output_rows();
  }
  for (const auto& [id, knobs] : from.nodes()) {
    plan::NodeKnobs& node = (*to.mutable_nodes())[id];
    if (knobs.has_parallelism()) {
      KeepUsers(knobs.parallelism(), node.mutable_parallelism());
    }
    if (knobs.has_reorder_rows()) {
      KeepUsers(knobs.reorder_rows(), node.mutable_reorder_rows());
    }
    if (knobs.has_buffer_rows()) {
      KeepUsers(knobs.buffer_rows(), node.mutable_buffer_rows());
    }
    if (knobs.has_read_depth()) {
      KeepUsers(knobs.read_depth(), node.mutable_read_depth());
    }
    if (knobs.cache().chosen_by() == plan::USER) {
      *node.mutable_cache() = knobs.cache();
    }
  }
}

Decision Noted(double seconds, std::string what, std::string why) {
  Decision decision;
  decision.seconds = seconds;
  decision.what = std::move(what);
  decision.why = std::move(why);
  return decision;
}

}  // namespace

std::string ToString(const Decision& decision) {
  static constexpr const char* kVerbs[] = {"try ", "kept ", "rolled back ", ""};
  std::string text =
      absl::StrFormat("%.1f s: %s%s", decision.seconds,
                      kVerbs[static_cast<int>(decision.kind)], decision.what);
  if (!decision.to.empty()) {
    absl::StrAppend(&text, ": ", decision.from, " -> ", decision.to);
  }
  if (!decision.why.empty()) absl::StrAppend(&text, " (", decision.why, ")");
  if (decision.predicted > 0) {
    absl::StrAppend(&text, "; predicted ", NumberText(decision.predicted),
                    "/s");
  }
  if (decision.after > 0) {
    absl::StrAppend(&text, ", seen ", NumberText(decision.after), "/s");
  }
  if (decision.before > 0) {
    absl::StrAppend(&text, ", before ", NumberText(decision.before), "/s");
  }
  return text;
}

bool Online::GoesOn(const Snapshot& snapshot) const {
  return snapshot.run() == last_->run() &&
         snapshot.time_ns() >= last_->time_ns() &&
         snapshot.nodes_size() == last_->nodes_size() &&
         RootRows(snapshot) >= RootRows(*last_);
}

void Online::BeginWindows(const Snapshot& snapshot) {
  windows_ = {snapshot};
  last_ = snapshot;
  rates_ = {};
  measured_windows_ = 0;
}

// Of many snapshots, every second one is enough.
void Online::Gather(const Snapshot& snapshot) {
  windows_.push_back(snapshot);
  if (windows_.size() <= kMaxSnapshots) return;
  std::vector<Snapshot> kept;
  for (size_t i = 0; i < windows_.size(); i += 2) {
    kept.push_back(std::move(windows_[i]));
  }
  if (windows_.size() % 2 == 0) kept.push_back(std::move(windows_.back()));
  windows_ = std::move(kept);
}

bool Online::AddWindow(const Snapshot& snapshot) {
  const double seconds = SecondsOf(snapshot) - SecondsOf(*last_);
  if (seconds < 0.99 * options_.window_seconds) return false;
  rates_.Add(static_cast<double>(RootRows(snapshot) - RootRows(*last_)) /
             seconds);
  last_ = snapshot;
  Gather(snapshot);
  return true;
}

std::optional<Model> Online::MakeModel() {
  ++num_models_;
  measured_windows_ = static_cast<int>(rates_.count());
  absl::StatusOr<Model> model = tuner::Measure(windows_);
  if (!model.ok()) {
    // A total that fell, or no element: what is to come may be better.
    BeginWindows(*last_);
    return std::nullopt;
  }
  return *std::move(model);
}

Budget Online::BudgetNow() const {
  Budget budget = options_.budget;
  budget.may_cache &= !cache_.has_value();
  for (const auto& [id, knobs] : last_->knobs().nodes()) {
    budget.may_cache &= !knobs.has_cache();
  }
  return budget;
}

bool Online::MayProbe() const {
  return static_cast<int>(probes_.size()) < options_.max_probes_per_hour;
}

bool Online::WasTried(const Proposal& proposal) const {
  return std::any_of(tried_.begin(), tried_.end(), [&](const Proposal& other) {
    return IsSameTrial(proposal, other);
  });
}

Decision Online::DecisionOf(const Proposal& proposal, Decision::Kind kind,
                            double before, double after) const {
  Decision decision;
  decision.kind = kind;
  decision.seconds = now_;
  decision.what = KnobName(proposal.family);
  decision.from = proposal.from;
  decision.to = proposal.to;
  decision.why = proposal.why;
  decision.predicted = proposal.predicted;
  decision.before = before;
  decision.after = after;
  return decision;
}

Online::Step Online::Advance(const Snapshot& snapshot) {
  Step step;
  if (!plan::ValidateSnapshot(snapshot).ok()) return step;
  if (last_.has_value() && snapshot.fingerprint() != last_->fingerprint()) {
    *this = Online(options_);
  }
  if (last_.has_value() && !GoesOn(snapshot)) {
    if (snapshot.run() != last_->run()) GoOnWith(snapshot, step);
    // What was learnt stays; time goes on from where it was.
    passed_ = now_;
    trial_.reset();
    state_ = State::kMeasuring;
    last_.reset();
  }
  if (!last_.has_value()) begin_ = SecondsOf(snapshot);
  now_ = passed_ + SecondsOf(snapshot) - begin_;
  while (!probes_.empty() && probes_.front() < now_ - kHour) {
    probes_.pop_front();
  }
  if (!last_.has_value() || now_ < quiet_until_) {
    BeginWindows(snapshot);
    return step;
  }
  if (!plan::SameKnobs(snapshot.knobs(), last_->knobs()) ||
      !HasSameCaches(snapshot, *last_)) {
    // A trial is judged by what came before it: if that has changed, it cannot
    // be.
    if (!HasSameCaches(snapshot, *last_)) {
      trial_.reset();
      reference_.reset();
      state_ = State::kMeasuring;
    }
    BeginWindows(snapshot);
    return step;
  }
  if (!AddWindow(snapshot)) return step;
  switch (state_) {
    case State::kMeasuring:
      Measure(step);
      break;
    case State::kTrying:
      Judge(step);
      break;
    case State::kResting:
      Look(step);
      break;
  }
  return step;
}

void Online::GoOnWith(const Snapshot& snapshot, Step& step) {
  plan::Knobs knobs = trial_.has_value() ? trial_->before : last_->knobs();
  KeepUsers(snapshot.knobs(), knobs);
  if (snapshot.nodes_size() != last_->nodes_size() ||
      plan::SameKnobs(knobs, snapshot.knobs())) {
    return;
  }
  step.knobs = std::move(knobs);
  step.log.push_back(
      Noted(now_, "another run", "it begins with the knobs of the last one"));
  quiet_until_ = now_ + options_.settle_seconds;
}

void Online::Measure(Step& step) {
  const int windows = static_cast<int>(rates_.count());
  if (rates_.mean() <= 0) {
    if (now_ - passed_ >= kSilence && !has_said_nothing_comes_) {
      has_said_nothing_comes_ = true;
      step.log.push_back(Noted(now_, "no element has come out", ""));
    }
    return;
  }
  const bool is_enough = windows >= options_.min_windows;
  const bool is_early = now_ - passed_ < options_.cache_seconds &&
                        windows >= kWindowsForCache && BudgetNow().may_cache;
  if (!is_enough && !is_early) return;
  const std::optional<Model> model = MakeModel();
  if (!model.has_value()) return;
  const absl::StatusOr<Choice> choice = Choose(*model, BudgetNow());
  if (!choice.ok()) return;
  if (TryCache(*model, *choice, step) || !is_enough) return;
  JudgeCache(step);
  if (step.knobs.has_value()) return;

  const Demands demands = DemandsOf(*model);
  if (reference_.has_value() &&
      Compare(*reference_, demands).moved == Moved::kCrowded) {
    is_interrupted_ = true;
    return Rest(*reference_, step);
  }
  is_limited_ = !MayProbe();
  if (is_limited_) return Rest(demands, step);
  for (Proposal& proposal : Propose(*model, *choice, last_->knobs())) {
    if (WasTried(proposal)) continue;
    return Try(std::move(proposal), demands, step);
  }
  Rest(demands, step);
}

bool Online::TryCache(const Model& model, const Choice& choice, Step& step) {
  if (!choice.cache.has_value() || !MayProbe()) return false;
  const CacheAfter& cache = *choice.cache->cache;
  Proposal proposal;
  proposal.family = KnobKind::kCache;
  proposal.knobs = last_->knobs();
  plan::CacheKnob* knob =
      (*proposal.knobs.mutable_nodes())[cache.node].mutable_cache();
  knob->set_tier(cache.tier);
  knob->set_fraction(cache.fraction);
  knob->set_chosen_by(plan::TUNER);
  proposal.values = {{cache.node, 1}};
  proposal.from = "none";
  proposal.to = absl::StrFormat(
      "after %s, %s", (*model.measured)[choice.cache->node].name,
      cache.tier == plan::DISK ? "on disk" : "in memory");
  proposal.why =
      absl::StrFormat("%.0f %% of at most %.3g MB, read again in each epoch",
                      100 * cache.fraction, cache.size_bytes / 1e6);
  proposal.predicted = choice.cache->rate.middle;
  if (WasTried(proposal)) return false;
  step.log.push_back(
      DecisionOf(proposal, Decision::Kind::kTried, rates_.mean(), 0));
  step.knobs = proposal.knobs;
  tried_.push_back(proposal);
  cache_ = PendingCache{std::move(proposal), rates_};
  probes_.push_back(now_);
  quiet_until_ = now_ + options_.settle_seconds;
  return true;
}

void Online::JudgeCache(Step& step) {
  if (!cache_.has_value()) return;
  const uint32_t id = cache_->proposal.values[0].first;
  if (!IsCacheFull(*last_, id)) return;
  const bool is_worse = Compare(cache_->rates, rates_) == Verdict::kWorse;
  step.log.push_back(
      DecisionOf(cache_->proposal,
                 is_worse ? Decision::Kind::kRolledBack : Decision::Kind::kKept,
                 cache_->rates.mean(), rates_.mean()));
  cache_.reset();
  if (!is_worse) return;
  step.knobs = last_->knobs();
  (*step.knobs->mutable_nodes())[id].clear_cache();
  quiet_until_ = now_ + options_.settle_seconds;
}

void Online::Try(Proposal proposal, const Demands& demands, Step& step) {
  step.log.push_back(
      DecisionOf(proposal, Decision::Kind::kTried, rates_.mean(), 0));
  step.knobs = proposal.knobs;
  trial_ = Trial{std::move(proposal), last_->knobs(), rates_, demands, now_};
  state_ = State::kTrying;
  probes_.push_back(now_);
  quiet_until_ = now_ + options_.settle_seconds;
}

void Online::RollBack(const Trial& trial, Step& step) {
  step.knobs = trial.before;
  step.log.push_back(DecisionOf(trial.proposal, Decision::Kind::kRolledBack,
                                trial.rates.mean(), rates_.mean()));
  quiet_until_ = now_ + options_.settle_seconds;
}

void Online::Judge(Step& step) {
  if (plan::SameKnobs(last_->knobs(), trial_->before)) {
    const double patience =
        options_.settle_seconds + kWindowsToObey * options_.window_seconds;
    if (now_ - trial_->began < patience) return;
    step.log.push_back(Noted(
        now_,
        absl::StrCat(KnobName(trial_->proposal.family), " did not change"),
        "the engine has not put it in force"));
    tried_.push_back(trial_->proposal);
    trial_.reset();
    state_ = State::kMeasuring;
    return;
  }
  const Verdict verdict = Compare(trial_->rates, rates_);
  if (verdict == Verdict::kUnclear) return;
  const Trial trial = *std::exchange(trial_, std::nullopt);
  state_ = State::kMeasuring;
  if (verdict == Verdict::kWorse) {
    // Was it the change, or somebody who came at the same time?
    const std::optional<Model> model = MakeModel();
    if (model.has_value() &&
        Compare(trial.demands, DemandsOf(*model)).moved == Moved::kCrowded) {
      RollBack(trial, step);
      is_interrupted_ = true;
      return Rest(trial.demands, step);
    }
  }
  tried_.push_back(trial.proposal);
  const bool is_good =
      verdict == Verdict::kBetter ||
      (verdict == Verdict::kSame &&
       (trial.proposal.gives_back || trial.proposal.is_support));
  if (!is_good) return RollBack(trial, step);
  step.log.push_back(DecisionOf(trial.proposal, Decision::Kind::kKept,
                                trial.rates.mean(), rates_.mean()));
}

void Online::Rest(const Demands& demands, Step& step) {
  state_ = State::kResting;
  reference_ = demands;
  next_look_ = now_ + options_.look_seconds;
  moved_looks_ = 0;
  std::string why = "no change is worth a trial";
  if (is_limited_) {
    why = absl::StrCat(options_.max_probes_per_hour,
                       " trials in an hour are enough");
  }
  if (is_interrupted_) why = "others use the cores";
  step.log.push_back(Noted(now_, "at rest", std::move(why)));
  BeginWindows(*last_);
}

void Online::Look(Step& step) {
  if (now_ < next_look_ || rates_.count() < options_.min_windows) return;
  next_look_ = now_ + options_.look_seconds;
  const std::optional<Model> model = MakeModel();
  BeginWindows(*last_);  // each look has windows of its own
  if (!model.has_value()) return;
  const Demands demands = DemandsOf(*model);
  const Movement movement = Compare(*reference_, demands);
  if (movement.moved == Moved::kCrowded) {
    moved_looks_ = 0;
    if (!crowded_since_.has_value()) {
      crowded_since_ = now_;
      step.log.push_back(
          Noted(now_, "others use the cores",
                absl::StrFormat("%.2g of %.2g were had, not %.2g; nothing is "
                                "changed",
                                demands.used_cores, demands.cores,
                                reference_->used_cores)));
    }
    if (now_ - *crowded_since_ < options_.patience_seconds) return;
  } else if (movement.moved == Moved::kDrifted) {
    // Once may be chance.
    if (++moved_looks_ < 2) return;
    step.log.push_back(Noted(now_, "demands have moved", movement.what));
  } else {
    moved_looks_ = 0;
    if (crowded_since_.has_value()) {
      step.log.push_back(Noted(now_, "the cores are back", ""));
    }
    crowded_since_.reset();
    // What could not be tried or judged can be now.
    if (!is_interrupted_ && !(is_limited_ && MayProbe())) return;
    is_interrupted_ = false;
    state_ = State::kMeasuring;
    return;
  }
  crowded_since_.reset();
  is_interrupted_ = false;
  reference_.reset();
  tried_.clear();
  moved_looks_ = 0;
  state_ = State::kMeasuring;
}

}  // namespace penstock::tuner
