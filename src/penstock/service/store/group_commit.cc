#include "penstock/service/store/group_commit.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::store {
namespace {

// Whether a batch that failed with `status` was surely not written, and others
// may still be.
bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status);
}

}  // namespace

GroupCommit::GroupCommit(MetaStore& store, const Clock& clock,
                         const GroupCommitOptions& options)
    : store_(store), clock_(clock), options_(options) {}

GroupCommit::~GroupCommit() {
  std::deque<Entry> left;
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    if (failed_.ok()) {
      failed_ = absl::CancelledError("the queue of commits has ended");
    }
    left.swap(queue_);
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  for (const Entry& entry : left) {
    if (entry.done) {
      entry.done(absl::CancelledError("the queue of commits has ended"));
    }
  }
}

void GroupCommit::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void GroupCommit::Commit(WriteBatch batch, uint64_t term, Callback done) {
  Queue(std::move(batch), term, std::move(done), /*is_lazy=*/false);
}

void GroupCommit::CommitLazily(WriteBatch batch, uint64_t term, Callback done) {
  Queue(std::move(batch), term, std::move(done), /*is_lazy=*/true);
}

void GroupCommit::Queue(WriteBatch batch, uint64_t term, Callback done,
                        bool is_lazy) {
  const size_t num_bytes = BatchBytes(batch);
  const int64_t wait_ns =
      is_lazy ? options_.max_lazy_wait_ns : options_.max_wait_ns;
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    if (!failed_.ok()) {
      refused = failed_;
    } else if (queued_bytes_ + num_bytes > options_.max_queued_bytes &&
               !queue_.empty()) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          "expected at most ", options_.max_queued_bytes,
          " bytes that wait to be written; found ", queued_bytes_, " and ",
          num_bytes, " more: the disk is slower than the writers"));
    } else {
      const int64_t due_ns = clock_.NowNanos() + wait_ns;
      queue_.push_back({std::move(batch), term, std::move(done), num_bytes,
                        due_ns, is_lazy});
      queued_bytes_ += num_bytes;
      num_eager_ += is_lazy ? 0 : 1;
      ++num_queued_;
      // Others only make the group larger: its time is the first one's.
      if (IsDue() || queue_.size() == 1 || num_eager_ == 1) {
        changed_.SignalAll();
      }
      return;
    }
  }
  if (done) done(refused);
}

std::optional<int64_t> GroupCommit::Due() const {
  if (queue_.empty()) return std::nullopt;
  if (queue_.size() >= options_.max_group_batches ||
      queued_bytes_ >= options_.max_group_bytes ||
      (num_eager_ > 0 && num_eager_ >= expected_)) {
    return queue_.front().due_ns - (queue_.front().is_lazy
                                        ? options_.max_lazy_wait_ns
                                        : options_.max_wait_ns);
  }
  // Times grow within each kind, and the first of each kind is near the front.
  std::optional<int64_t> due_ns;
  bool has_lazy = false;
  bool has_eager = false;
  for (const Entry& entry : queue_) {
    bool& seen = entry.is_lazy ? has_lazy : has_eager;
    if (!seen) due_ns = std::min(due_ns.value_or(entry.due_ns), entry.due_ns);
    seen = true;
    if (has_lazy && (has_eager || num_eager_ == 0)) break;
    if (has_eager && num_eager_ == queue_.size()) break;
  }
  return due_ns;
}

bool GroupCommit::IsDue() const {
  const std::optional<int64_t> due_ns = Due();
  return due_ns && *due_ns <= clock_.NowNanos();
}

std::optional<int64_t> GroupCommit::DueNanos() const {
  MutexLock lock(&mutex_);
  return Due();
}

bool GroupCommit::Poll() {
  MutexLock lock(&mutex_);
  if (is_writing_ || !IsDue()) return false;
  WriteGroup();
  return true;
}

absl::Status GroupCommit::Flush() {
  MutexLock lock(&mutex_);
  const uint64_t target = num_queued_;
  while (num_finished_ < target && failed_.ok()) {
    if (is_writing_) {
      changed_.Wait(&mutex_);
    } else {
      WriteGroup();
    }
  }
  // Those that failed with the queue have heard of it when this returns.
  while (is_writing_) changed_.Wait(&mutex_);
  return failed_;
}

std::vector<GroupCommit::Entry> GroupCommit::TakeGroup() {
  std::vector<Entry> group;
  size_t num_bytes = 0;
  while (!queue_.empty() && group.size() < options_.max_group_batches) {
    Entry& entry = queue_.front();
    num_bytes += entry.num_bytes;
    if (!group.empty() &&
        (entry.term != group[0].term || num_bytes > options_.max_group_bytes)) {
      break;
    }
    queued_bytes_ -= entry.num_bytes;
    num_eager_ -= entry.is_lazy ? 0 : 1;
    group.push_back(std::move(entry));
    queue_.pop_front();
  }
  return group;
}

std::vector<absl::Status> GroupCommit::CommitTogether(
    std::vector<Entry>& group) {
  if (group.size() == 1) return {store_.Commit(group[0].batch, group[0].term)};
  WriteBatch all;
  std::vector<size_t> sizes;
  for (Entry& entry : group) {
    sizes.push_back(entry.batch.size());
    std::move(entry.batch.begin(), entry.batch.end(), std::back_inserter(all));
  }
  const absl::Status together = store_.Commit(all, group[0].term);
  if (!IsRefusal(together)) {
    return std::vector<absl::Status>(group.size(), together);
  }
  // Some of them would pass alone: deletes where the disk is full.
  std::vector<absl::Status> results;
  auto next = std::make_move_iterator(all.begin());
  for (size_t i = 0; i < group.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    if (results.empty() || results.back().ok() || IsRefusal(results.back())) {
      results.push_back(store_.Commit(WriteBatch(next, end), group[0].term));
    } else {
      results.push_back(results.back());
    }
    next = end;
  }
  return results;
}

void GroupCommit::WriteGroup() {
  std::vector<Entry> group = TakeGroup();
  if (group.empty()) return;
  is_writing_ = true;
  mutex_.Unlock();
  std::vector<absl::Status> results = CommitTogether(group);
  const absl::Status last = results.back();
  const bool is_failed = !last.ok() && !IsRefusal(last);
  mutex_.Lock();
  const size_t num_written = static_cast<size_t>(
      std::count_if(group.begin(), group.end(),
                    [](const Entry& entry) { return !entry.is_lazy; }));
  expected_ = std::clamp<size_t>(num_written + num_eager_, 1,
                                 options_.max_group_batches);
  if (is_failed) {
    if (failed_.ok()) failed_ = last;
    for (Entry& entry : queue_) {
      group.push_back(std::move(entry));
      results.push_back(last);
    }
    queue_.clear();
    queued_bytes_ = 0;
    num_eager_ = 0;
  }
  mutex_.Unlock();
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i].done) group[i].done(results[i]);
  }
  mutex_.Lock();
  num_finished_ += group.size();
  is_writing_ = false;
  changed_.SignalAll();
}

void GroupCommit::Loop() {
  MutexLock lock(&mutex_);
  while (!is_stopping_) {
    const std::optional<int64_t> due_ns = Due();
    const int64_t now_ns = clock_.NowNanos();
    if (is_writing_ || !due_ns) {
      changed_.Wait(&mutex_);
    } else if (*due_ns > now_ns) {
      changed_.WaitFor(&mutex_, *due_ns - now_ns);
    } else {
      WriteGroup();
    }
  }
}

}  // namespace penstock::store
