#include "penstock/service/dispatcher/dispatcher.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::service {
namespace {

absl::Status FullError() {
  return absl::ResourceExhaustedError(
      "the dispatcher's disk is full: make room in its state directory");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DurableDispatcher>> DurableDispatcher::Make(
    store::MetaStore& store, const Clock& clock, Options options) {
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t term,
                            store.Campaign(options.holder));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                            store.Scan(""));
  PENSTOCK_ASSIGN_OR_RETURN(
      auto state, DispatcherState::Make(options.settings, term,
                                        clock.NowNanos() / 1'000'000, records));
  return std::unique_ptr<DurableDispatcher>(new DurableDispatcher(
      store, clock, std::move(options), std::move(state)));
}

DurableDispatcher::DurableDispatcher(store::MetaStore& store,
                                     const Clock& clock, Options options,
                                     std::unique_ptr<DispatcherState> state)
    : clock_(clock),
      options_(std::move(options)),
      term_(state->term()),
      state_(std::move(state)),
      commits_(store, clock) {}

void DurableDispatcher::Enqueue(Writes writes,
                                std::function<void(const absl::Status&)> done,
                                bool is_term_checked) {
  if (!writes.lazy.empty()) {
    commits_.CommitLazily(std::move(writes.lazy), term_,
                          [](const absl::Status&) {});
  }
  // Nothing that anybody was not told yet.
  if (writes.durable.empty() && pending_ == 0 && !is_full_ && !has_failed_ &&
      !is_term_checked) {
    return done(absl::OkStatus());
  }
  ++pending_;
  commits_.Commit(
      writes.durable, term_,
      [this, batch = writes.durable, done = std::move(done)](
          const absl::Status& status) { OnCommitted(batch, status, done); });
}

void DurableDispatcher::OnCommitted(
    const store::WriteBatch& batch, const absl::Status& status,
    const std::function<void(const absl::Status&)>& done) {
  absl::Status result = status;
  if (absl::IsResourceExhausted(status)) {
    is_full_ = true;
    result = FullError();
    MutexLock lock(&unwritten_mutex_);
    unwritten_.insert(unwritten_.end(), batch.begin(), batch.end());
  } else if (!status.ok()) {
    if (!has_failed_.exchange(true) && options_.on_failure) {
      options_.on_failure(status);
    }
    // It ends. Who asks again is answered by the one in its place.
    if (absl::IsInternal(status)) {
      result = absl::UnavailableError(
          absl::StrCat("the dispatcher ends: ", status.message()));
    }
  }
  // What it says may rest on something that is not written.
  if (status.ok() && is_full_) result = absl::UnavailableError("try again");
  --pending_;
  done(result);
}

void DurableDispatcher::RetryUnwritten() {
  if (!is_full_ || is_retrying_.exchange(true)) return;
  store::WriteBatch batch;
  {
    MutexLock lock(&unwritten_mutex_);
    batch = unwritten_;
  }
  ++pending_;
  commits_.Commit(
      batch, term_, [this, count = batch.size()](const absl::Status& status) {
        if (status.ok()) {
          MutexLock lock(&unwritten_mutex_);
          unwritten_.erase(unwritten_.begin(),
                           unwritten_.begin() + static_cast<int64_t>(count));
          if (unwritten_.empty()) is_full_ = false;
        }
        --pending_;
        is_retrying_ = false;
      });
}

void DurableDispatcher::TellNews() {
  const News news = state_->TakeNews();
  if (options_.on_news) options_.on_news(news);
}

void DurableDispatcher::AddPlan(const std::string& id, const std::string& plan,
                                bool keep, const std::string& name,
                                Done<bool> done) {
  if (is_full_) return done(FullError());
  MutexLock lock(&mutex_);
  if (!name.empty()) {
    const absl::Status status = state_->CheckName(name, id);
    if (!status.ok()) return done(status);
  }
  Writes writes;
  state_->AddPlan(id, plan, keep, NowMillis(), writes);
  if (!name.empty()) state_->SetName(name, id, writes);
  Enqueue(std::move(writes), [done](const absl::Status& status) {
    status.ok() ? done(true) : done(status);
  });
}

void DurableDispatcher::Unregister(const std::string& called, Done<bool> done) {
  if (is_full_) return done(FullError());
  MutexLock lock(&mutex_);
  Writes writes;
  const absl::Status status = state_->Unregister(called, NowMillis(), writes);
  if (!status.ok()) return done(status);
  Enqueue(std::move(writes), [done](const absl::Status& written) {
    written.ok() ? done(true) : done(written);
  });
}

std::string DurableDispatcher::PlanOf(const std::string& called) const {
  MutexLock lock(&mutex_);
  return state_->PlanOf(called);
}

absl::StatusOr<std::shared_ptr<const std::string>> DurableDispatcher::FindPlan(
    const std::string& id) const {
  MutexLock lock(&mutex_);
  auto plan = state_->FindPlan(id);
  if (plan != nullptr) return plan;
  return absl::NotFoundError(
      absl::StrCat("no pipeline ", id, " is registered"));
}

absl::StatusOr<Manifest> DurableDispatcher::FindManifest(uint64_t hash) const {
  MutexLock lock(&mutex_);
  const Manifest* manifest = state_->FindManifest(hash);
  if (manifest != nullptr) return *manifest;
  return absl::NotFoundError("there is no such manifest");
}

void DurableDispatcher::Open(const OpenRequest& request, Done<OpenReply> done) {
  if (is_full_) return done(FullError());
  MutexLock lock(&mutex_);
  Writes writes;
  absl::StatusOr<OpenReply> reply = state_->Open(request, NowMillis(), writes);
  TellNews();
  // A refusal is final for whoever asks: one whose term is over, and who does
  // not know what came since, must not say it.
  const bool is_refused = !reply.ok();
  Enqueue(
      std::move(writes),
      [done, reply = std::move(reply)](const absl::Status& status) {
        status.ok() ? done(reply) : done(status);
      },
      is_refused);
}

void DurableDispatcher::OnClient(const ClientBeat& beat, int64_t heard_ms,
                                 Done<ClientReply> done) {
  MutexLock lock(&mutex_);
  Writes writes;
  absl::StatusOr<ClientReply> reply = state_->OnClient(beat, heard_ms, writes);
  TellNews();
  Enqueue(std::move(writes),
          [done, reply = std::move(reply)](const absl::Status& status) {
            status.ok() ? done(reply) : done(status);
          });
}

void DurableDispatcher::Release(const ReleaseRequest& request,
                                Done<ReleaseReply> done) {
  MutexLock lock(&mutex_);
  Writes writes;
  absl::StatusOr<ReleaseReply> reply =
      state_->Release(request, NowMillis(), writes);
  TellNews();
  Enqueue(std::move(writes),
          [done, reply = std::move(reply)](const absl::Status& status) {
            status.ok() ? done(reply) : done(status);
          });
}

void DurableDispatcher::OnWorker(const WorkerBeat& beat, int64_t heard_ms,
                                 Done<WorkerReply> done) {
  MutexLock lock(&mutex_);
  if (const absl::Status status = state_->CheckWorker(beat.address());
      !status.ok()) {
    return done(status);
  }
  Writes writes;
  std::optional<WorkerBeat> modest;
  if (is_full_) {
    modest = beat;
    modest->set_room(0);
  }
  absl::StatusOr<WorkerReply> reply =
      state_->OnWorker(modest ? *modest : beat, heard_ms, writes);
  TellNews();
  Enqueue(std::move(writes),
          [done, reply = std::move(reply)](const absl::Status& status) {
            status.ok() ? done(reply) : done(status);
          });
}

absl::Status DurableDispatcher::Drain(const std::string& address) {
  MutexLock lock(&mutex_);
  PENSTOCK_RETURN_IF_ERROR(state_->Drain(address));
  TellNews();
  return absl::OkStatus();
}

void DurableDispatcher::Cancel(const std::string& job, Done<bool> done) {
  MutexLock lock(&mutex_);
  Writes writes;
  const absl::Status cancelled = state_->Cancel(job, writes);
  TellNews();
  Enqueue(std::move(writes), [done, cancelled](const absl::Status& status) {
    if (!cancelled.ok()) return done(cancelled);
    status.ok() ? done(true) : done(status);
  });
}

State DurableDispatcher::Describe() const {
  State state;
  MutexLock lock(&mutex_);
  state_->Describe(NowMillis(), state);
  state.set_is_disk_full(is_full_);
  return state;
}

void DurableDispatcher::Tick() {
  MutexLock lock(&mutex_);
  RetryUnwritten();
  Writes writes;
  state_->Tick(NowMillis(), writes);
  TellNews();
  Enqueue(std::move(writes), [](const absl::Status&) {});
}

void DurableDispatcher::Look(
    const std::function<void(const DispatcherState&)>& look) const {
  MutexLock lock(&mutex_);
  look(*state_);
}

}  // namespace penstock::service
