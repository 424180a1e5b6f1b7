// Bytes of frames that are computed and not yet given away.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/data/buffer.h"
#include "penstock/engine/executor.h"

namespace penstock::service {

// One for a worker, with an account for each run. A run that may not have more
// waits, and is woken when it is worth asking again. Thread-safe.
class OutputBudget final : public std::enable_shared_from_this<OutputBudget> {
 public:
  class Account final {
   public:
    ~Account();
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    // Whether another frame may be made: there is room in all, and this account
    // has less than its even share. Else its run is woken later.
    bool MayAdd();
    // Has its run woken when something was freed.
    void Await();
    // Counts `bytes` as long as the owner that it gives lives, and `memory`
    // with it.
    Owner Hold(Owner memory, int64_t bytes);

   private:
    friend class OutputBudget;
    struct Counts {
      std::weak_ptr<engine::Wakeable> run;
      int64_t bytes = 0;  // guarded by the budget's mutex, like what follows
      bool is_waiting = false;
    };
    Account(std::shared_ptr<OutputBudget> budget,
            std::shared_ptr<Counts> counts)
        : budget_(std::move(budget)), counts_(std::move(counts)) {}

    const std::shared_ptr<OutputBudget> budget_;
    const std::shared_ptr<Counts> counts_;
  };

  static std::shared_ptr<OutputBudget> Make(int64_t limit_bytes) {
    return std::shared_ptr<OutputBudget>(new OutputBudget(limit_bytes));
  }

  std::unique_ptr<Account> Open(std::weak_ptr<engine::Wakeable> run)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Asked for bytes when there is no room, before a run is made to wait. It may
  // free some, and is called by any thread. Before any account is opened.
  void SetReclaim(std::function<void(int64_t bytes)> reclaim) {
    reclaim_ = std::move(reclaim);
  }

  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return used_bytes_;
  }

 private:
  explicit OutputBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  void Release(Account::Counts& counts, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeWaiting() ABSL_LOCKS_EXCLUDED(mutex_);

  const int64_t limit_bytes_;
  std::function<void(int64_t bytes)> reclaim_;
  mutable Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::shared_ptr<Account::Counts>> accounts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
