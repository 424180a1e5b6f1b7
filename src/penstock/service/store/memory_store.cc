#include "penstock/service/store/memory_store.h"

#include <utility>

#include "penstock/base/status.h"

namespace penstock::store {
namespace {

bool IsWritten(std::optional<Fault> fault) {
  return fault != Fault::kErrorBefore && fault != Fault::kCrashBefore;
}

bool IsCrash(Fault fault) {
  return fault == Fault::kCrashBefore || fault == Fault::kCrashAfter;
}

absl::Status Crashed() {
  return absl::UnavailableError("the process of this store has died");
}

}  // namespace

void MemoryDisk::FailCommit(int n, Fault fault) {
  MutexLock lock(&mutex_);
  commits_to_fault_ = n;
  fault_ = fault;
}

void MemoryDisk::SetFull(bool is_full) {
  MutexLock lock(&mutex_);
  is_full_ = is_full;
}

uint64_t MemoryDisk::num_commits() const {
  MutexLock lock(&mutex_);
  return num_commits_;
}

MemoryStore::MemoryStore(std::shared_ptr<MemoryDisk> disk)
    : disk_(std::move(disk)) {}

void MemoryStore::Crash() {
  MutexLock lock(&disk_->mutex_);
  broken_ = Crashed();
}

std::optional<Fault> MemoryStore::NextFault() {
  if (!disk_->fault_ || --disk_->commits_to_fault_ > 0) return std::nullopt;
  return std::exchange(disk_->fault_, std::nullopt);
}

absl::Status MemoryStore::Fail(Fault fault) {
  broken_ = IsCrash(fault) ? Crashed()
                           : absl::InternalError("input or output failed");
  return broken_;
}

absl::StatusOr<uint64_t> MemoryStore::Campaign(std::string_view holder) {
  PENSTOCK_RETURN_IF_ERROR(ValidateHolder(holder));
  MutexLock lock(&disk_->mutex_);
  PENSTOCK_RETURN_IF_ERROR(broken_);
  const std::optional<Fault> fault = NextFault();
  if (IsWritten(fault)) {
    ++disk_->term_;
    ++disk_->num_commits_;
  }
  if (fault) return Fail(*fault);
  return disk_->term_;
}

absl::Status MemoryStore::Commit(const WriteBatch& batch, uint64_t term) {
  PENSTOCK_RETURN_IF_ERROR(ValidateBatch(batch));
  MutexLock lock(&disk_->mutex_);
  PENSTOCK_RETURN_IF_ERROR(broken_);
  PENSTOCK_RETURN_IF_ERROR(CheckTerm(term, disk_->term_));
  if (disk_->is_full_ && !OnlyDeletes(batch)) {
    return absl::ResourceExhaustedError("the disk of the store is full");
  }
  const std::optional<Fault> fault = NextFault();
  if (IsWritten(fault)) {
    for (const Write& write : batch) {
      if (write.value) {
        disk_->records_[write.key] = *write.value;
      } else {
        disk_->records_.erase(write.key);
      }
    }
    ++disk_->num_commits_;
  }
  return fault ? Fail(*fault) : absl::OkStatus();
}

absl::StatusOr<std::vector<Record>> MemoryStore::Scan(std::string_view prefix) {
  MutexLock lock(&disk_->mutex_);
  PENSTOCK_RETURN_IF_ERROR(broken_);
  std::vector<Record> found;
  const std::string first(prefix);
  for (auto it = disk_->records_.lower_bound(first);
       it != disk_->records_.end() &&
       it->first.compare(0, first.size(), first) == 0;
       ++it) {
    found.push_back({it->first, it->second});
  }
  return found;
}

}  // namespace penstock::store
