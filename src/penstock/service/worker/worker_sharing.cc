// What a worker computes for several readers at once.
#include <memory>
#include <optional>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/service/worker/beater.h"
#include "penstock/service/worker/worker_server.h"

namespace penstock::service {

absl::StatusOr<std::shared_ptr<Productions>> WorkerServer::MakeProductions() {
  Productions::Options options;
  options.executor = &executor_;
  options.memory = shared_memory_;
  options.first_segment = kFirstSharedSegment;
  options.instances = &instances_;
  options.budget = output_;
  options.patience = options_.sharing_patience;
  options.pool = &io_pool_;
  if (options_.spill_bytes > 0) {
    PENSTOCK_ASSIGN_OR_RETURN(options.spill,
                              SpillFile::Make(options_.spill_bytes));
  }
  options.on_computed = [this](uint64_t production) {
    OnProductionComputed(production);
  };
  options.on_stalled = [this](uint64_t production, bool is_stalled) {
    OnProductionStalled(production, is_stalled);
  };
  std::shared_ptr<Productions> made = Productions::Make(std::move(options));
  output_->SetReclaim([weak = std::weak_ptr<Productions>(made)](int64_t bytes) {
    if (const auto productions = weak.lock()) productions->MakeRoom(bytes);
  });
  return made;
}

std::vector<WorkerServer::Held*> WorkerServer::ReadersOf(uint64_t production) {
  std::vector<Held*> readers;
  for (auto& [key, held] : runs_) {
    if (held.lease.has_sharing() &&
        held.lease.sharing().production() == production) {
      readers.push_back(&held);
    }
  }
  return readers;
}

void WorkerServer::AddReader(const Lease& lease) {
  const uint64_t production = lease.sharing().production();
  Productions::Joined joined = productions_->Join(lease);
  if (joined.is_ready) state_->OnComputed(lease);
  Held held;
  held.lease = lease;
  held.run = std::move(joined.frames);
  held.serial = next_serial_++;
  held.is_started = state_->IsStarted(lease);
  held.is_computed = joined.is_ready;
  runs_[KeyOf(lease)] = std::move(held);
  // Another lease of it was begun, and there was nothing to compute.
  if (joined.needs_setup && state_->IsStarted(lease) &&
      preparing_.insert(production).second) {
    errands_.Submit([this, lease] { PrepareProduction(lease); });
  }
}

void WorkerServer::PrepareProduction(const Lease& lease) {
  const uint64_t production = lease.sharing().production();
  std::optional<absl::StatusOr<RunSetup>> setup;
  for (int tries = 0; productions_->IsWanted(production); ++tries) {
    absl::StatusOr<RunSetup> made = MakeSetup(lease);
    if (WaitToRetry(made.status(), tries)) continue;
    setup = std::move(made);
    break;
  }
  {
    MutexLock lock(&mutex_);
    preparing_.erase(production);
  }
  if (setup.has_value()) productions_->Begin(production, *std::move(setup));
}

void WorkerServer::OnProductionComputed(uint64_t production) {
  {
    MutexLock lock(&mutex_);
    for (Held* held : ReadersOf(production)) {
      held->is_computed = true;
      state_->OnComputed(held->lease);
    }
    StartNext();
  }
  beater_->Poke();  // there is room for another
}

void WorkerServer::OnProductionStalled(uint64_t production, bool is_stalled) {
  MutexLock lock(&mutex_);
  for (Held* held : ReadersOf(production)) {
    state_->OnStalled(held->lease, is_stalled);
  }
  if (is_stalled) StartNext();
  changed_.SignalAll();  // somebody may be late one day
}

}  // namespace penstock::service
