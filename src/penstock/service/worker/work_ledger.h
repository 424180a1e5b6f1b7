// What this worker has computed, job by job: for whoever looks at jobs, and for
// offers to keep what is computed again and again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/engine/padding_stats.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/run.h"
#include "penstock/plan/divide.h"
#include "penstock/service.pb.h"

namespace penstock::service {

// Where rows of a divided plan could be kept.
struct WorkPlace {
  Work::Place described;  // but for what is counted
  int op = 0;             // whose rows they are
  int end = 0;            // ops before this one are it and all before it
};
std::vector<WorkPlace> FindWorkPlaces(const plan::Division& division,
                                      const engine::Pipeline& pipeline);

// The passes that were last computed for. Thread-safe.
class WorkLedger final {
 public:
  static constexpr size_t kMaxPasses = 16;

  // A pass, open as long as somebody computes for it.
  class Account final {
   public:
    // Another share has ended. `is_whole`: it was computed from its first row
    // to its last.
    void Add(const std::vector<WorkPlace>& places, const engine::Run& run,
             bool is_whole) ABSL_LOCKS_EXCLUDED(mutex_);
    // What is padded for it is to be added here.
    const std::shared_ptr<engine::PaddingStats>& padding() const {
      return padding_;
    }
    Work Get() const ABSL_LOCKS_EXCLUDED(mutex_);

   private:
    friend class WorkLedger;
    Account(Work named, std::shared_ptr<engine::PaddingStats> total)
        : work_(std::move(named)) {
      padding_->AddTo(std::move(total));
    }

    const std::shared_ptr<engine::PaddingStats> padding_ =
        std::make_shared<engine::PaddingStats>();
    mutable Mutex mutex_;
    Work work_ ABSL_GUARDED_BY(mutex_);
  };

  // `padding`: what is padded for all of them is added there; null: nowhere.
  explicit WorkLedger(std::shared_ptr<engine::PaddingStats> padding)
      : padding_(std::move(padding)) {}

  // `named`: its run, epoch, iteration and pass, and how many bundles that has.
  std::shared_ptr<Account> Open(const Work& named) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Work> Report() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::shared_ptr<engine::PaddingStats> padding_;
  mutable Mutex mutex_;
  // The one that was opened last comes first.
  std::list<std::shared_ptr<Account>> passes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
