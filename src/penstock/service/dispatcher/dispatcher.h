// The dispatcher: its state under a lock, and a store that hears of every
// decision before anybody else does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/service.pb.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/service/store/group_commit.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::service {

// Thread-safe. Answers come when all that was decided before them is durable,
// from any thread, and in the order of the calls.
//
// While the disk is full nothing new is decided that would have to be written:
// jobs are refused (ResourceExhausted), beats are heard and not answered
// (Unavailable: try again), and who has leases goes on with them. When space is
// back, so is the rest. After any other failure of the store nothing is
// answered any more, and the process must end (on_failure): whether a decision
// was written is not known, and the next dispatcher will find out.
class DurableDispatcher final {
 public:
  template <typename Reply>
  using Done = std::function<void(const absl::StatusOr<Reply>&)>;

  struct Options {
    DispatcherState::Settings settings;
    std::string holder;  // who writes, for people
    // Called once, from any thread.
    std::function<void(const absl::Status&)> on_failure;
    // Called under the lock, whenever something was decided.
    std::function<void(const News&)> on_news;
  };

  // Begins a term, and reads what the terms before have written. `store` and
  // `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<DurableDispatcher>> Make(
      store::MetaStore& store, const Clock& clock, Options options);

  // What waits for the store hears Cancelled.
  ~DurableDispatcher() { has_failed_ = true; }
  DurableDispatcher(const DurableDispatcher&) = delete;
  DurableDispatcher& operator=(const DurableDispatcher&) = delete;

  uint64_t term() const { return term_; }
  // Has a thread write what is due. Without it, Poll() does, in simulations.
  void Start() { commits_.Start(); }
  bool Poll() { return commits_.Poll(); }

  void AddPlan(const std::string& id, const std::string& plan, bool keep,
               Done<bool> done) ABSL_LOCKS_EXCLUDED(mutex_) {
    AddPlan(id, plan, keep, "", std::move(done));
  }
  // `name`: what it may be called besides; empty: nothing.
  void AddPlan(const std::string& id, const std::string& plan, bool keep,
               const std::string& name, Done<bool> done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Unregister(const std::string& called, Done<bool> done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<const std::string>> FindPlan(
      const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The id of a plan that is called by its id, or by a name.
  std::string PlanOf(const std::string& called) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Manifest> FindManifest(uint64_t hash) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Open(const OpenRequest& request, Done<OpenReply> done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `heard_ms`: when it came, by NowMillis(); a beat may be looked at again
  // later, when there is news.
  void OnClient(const ClientBeat& beat, int64_t heard_ms,
                Done<ClientReply> done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(const ReleaseRequest& request, Done<ReleaseReply> done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWorker(const WorkerBeat& beat, int64_t heard_ms,
                Done<WorkerReply> done) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Drain(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(const std::string& job, Done<bool> done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // To be called every 100 ms or so.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // For windows: sees the state as it is now.
  void Look(const std::function<void(const DispatcherState&)>& look) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  State Describe() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_disk_full() const { return is_full_; }
  int64_t NowMillis() const { return clock_.NowNanos() / 1'000'000; }

 private:
  DurableDispatcher(store::MetaStore& store, const Clock& clock,
                    Options options, std::unique_ptr<DispatcherState> state);

  // Queues what was decided; `done` hears once it is durable. What needs no
  // write is said at once, unless the store is to agree that the term is still
  // this one's.
  void Enqueue(Writes writes, std::function<void(const absl::Status&)> done,
               bool is_term_checked = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a batch that was to be durable. Not called under the lock.
  void OnCommitted(const store::WriteBatch& batch, const absl::Status& status,
                   const std::function<void(const absl::Status&)>& done)
      ABSL_LOCKS_EXCLUDED(unwritten_mutex_);
  void TellNews() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryUnwritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const Options options_;
  const uint64_t term_;
  mutable Mutex mutex_;
  std::unique_ptr<DispatcherState> state_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> pending_{0};  // batches that are not durable yet
  // Decided, and refused by a full disk: to be written before all else.
  Mutex unwritten_mutex_;
  store::WriteBatch unwritten_ ABSL_GUARDED_BY(unwritten_mutex_);
  std::atomic<bool> is_full_{false};
  std::atomic<bool> is_retrying_{false};
  std::atomic<bool> has_failed_{false};
  store::GroupCommit commits_;  // last: its thread calls back until it ends
};

}  // namespace penstock::service
