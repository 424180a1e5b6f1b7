#include "penstock/service/worker/output_budget.h"

#include <utility>

namespace penstock::service {

std::unique_ptr<OutputBudget::Account> OutputBudget::Open(
    std::weak_ptr<engine::Wakeable> run) {
  auto counts = std::make_shared<Account::Counts>();
  counts->run = std::move(run);
  MutexLock lock(&mutex_);
  accounts_.insert(counts);
  return std::unique_ptr<Account>(new Account(shared_from_this(), counts));
}

OutputBudget::Account::~Account() {
  {
    MutexLock lock(&budget_->mutex_);
    budget_->accounts_.erase(counts_);
  }
  budget_->WakeWaiting();  // the shares of the others have grown
}

bool OutputBudget::Account::MayAdd() {
  if (budget_->reclaim_) {
    const int64_t excess = budget_->used_bytes() - budget_->limit_bytes_ + 1;
    if (excess > 0) budget_->reclaim_(excess);
  }
  MutexLock lock(&budget_->mutex_);
  const auto accounts = static_cast<int64_t>(budget_->accounts_.size());
  const bool may = budget_->used_bytes_ < budget_->limit_bytes_ &&
                   counts_->bytes * accounts < budget_->limit_bytes_;
  counts_->is_waiting = !may;
  return may;
}

void OutputBudget::Account::Await() {
  MutexLock lock(&budget_->mutex_);
  counts_->is_waiting = true;
}

Owner OutputBudget::Account::Hold(Owner memory, int64_t bytes) {
  {
    MutexLock lock(&budget_->mutex_);
    budget_->used_bytes_ += bytes;
    counts_->bytes += bytes;
  }
  const void* data = memory.get();
  return Owner(data, [budget = budget_, counts = counts_,
                      memory = std::move(memory), bytes](const void*) mutable {
    memory.reset();  // before somebody is told that there is room
    budget->Release(*counts, bytes);
  });
}

void OutputBudget::Release(Account::Counts& counts, int64_t bytes) {
  {
    MutexLock lock(&mutex_);
    used_bytes_ -= bytes;
    counts.bytes -= bytes;
  }
  WakeWaiting();
}

void OutputBudget::WakeWaiting() {
  std::vector<engine::Waker> runs;
  {
    MutexLock lock(&mutex_);
    for (const auto& counts : accounts_) {
      if (!std::exchange(counts->is_waiting, false)) continue;
      if (engine::Waker run = counts->run.lock()) {
        runs.push_back(std::move(run));
      }
    }
  }
  for (const engine::Waker& run : runs) run->Wake();
}

}  // namespace penstock::service
