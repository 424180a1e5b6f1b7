// The calls about how a run does: traces, reports, knobs.
#include <time.h>

#include <algorithm>

#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/plan/snapshot_log.h"
#include "penstock/session/apply_knobs.h"
#include "penstock/session/session.h"
#include "penstock/session/take_snapshot.h"
#include "penstock/tuner/report.h"

namespace penstock::session {
namespace {

// More often would cost more than it tells.
constexpr int64_t kMinTraceMillis = 10;

}  // namespace

int64_t Session::ProcessCpuNanos() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

plan::Snapshot Session::SnapshotOf(uint64_t iterator, const Reading& reading) {
  Surroundings around;
  around.run = iterator;
  around.time_ns = SteadyClock().NowNanos() - reading.started_ns;
  around.cores = limits_.cpus;
  around.threads = executor_.num_threads();
  around.memory_limit_bytes = limits_.memory_bytes;
  around.engine_cpu_ns = ProcessCpuNanos() - reading.cpu_ns_before;
  around.python_cpu_ns =
      python_.times().cpu_nanos - reading.python_before.cpu_nanos;
  around.python_processes = python_.parallelism();
  const plan::Options& options = reading.sender->pipeline()->options();
  if (options.python().has_processes()) {
    around.python_processes =
        std::min(around.python_processes, options.python().processes());
  }
  return TakeSnapshot(*reading.sender, around);
}

int Session::Tick() {
  const int64_t now = SteadyClock().NowNanos();
  int64_t next = -1;
  for (auto& [id, reading] : iterators_) {
    if (reading.recording == nullptr) continue;
    if (now >= reading.recording->next_ns()) {
      const absl::Status status =
          reading.recording->Add(SnapshotOf(id, reading), now);
      if (!status.ok()) service_.Log(30, std::string(status.message()));
    }
    const int64_t due = reading.recording->next_ns();
    next = next < 0 ? due : std::min(next, due);
  }
  if (next < 0) return -1;
  return static_cast<int>(std::max<int64_t>(0, next - now + 999'999) /
                          1'000'000);
}

absl::StatusOr<Response> Session::DoTrace(const session::Trace& call) {
  PENSTOCK_ASSIGN_OR_RETURN(Reading * reading, FindReading(call.iterator()));
  const int64_t every_ms = std::max<int64_t>(kMinTraceMillis, call.every_ms());
  auto recording = std::make_unique<Recording>(every_ms * 1'000'000);
  if (!call.path().empty()) {
    PENSTOCK_RETURN_IF_ERROR(recording->Open(call.path()));
  }
  reading->recording = std::move(recording);
  Tick();
  Response response;
  response.set_done(true);
  return response;
}

absl::StatusOr<std::vector<plan::Snapshot>> Session::Recorded(
    uint64_t iterator) {
  PENSTOCK_ASSIGN_OR_RETURN(Reading * reading, FindReading(iterator));
  std::vector<plan::Snapshot> snapshots;
  if (reading->recording != nullptr) {
    snapshots = reading->recording->snapshots();
  }
  snapshots.push_back(SnapshotOf(iterator, *reading));
  return snapshots;
}

absl::StatusOr<Response> Session::DoExplain(const Explain& call) {
  std::vector<plan::Snapshot> snapshots;
  absl::Status status;
  if (call.has_path()) {
    plan::SnapshotLog log = plan::ReadSnapshotFile(call.path());
    if (log.snapshots.empty()) {
      return log.status.ok() ? absl::FailedPreconditionError(absl::StrCat(
                                   "the trace in ", call.path(), " is empty"))
                             : log.status;
    }
    snapshots = std::move(log.snapshots);
    status = log.status;
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(snapshots, Recorded(call.iterator()));
  }
  if (!call.save().empty()) {
    PENSTOCK_RETURN_IF_ERROR(plan::WriteSnapshotFile(call.save(), snapshots));
  }
  Response response;
  PENSTOCK_ASSIGN_OR_RETURN(*response.mutable_explain(),
                            tuner::MakeReport(snapshots, call.budget()));
  if (!status.ok()) {
    response.mutable_explain()->set_trace_status(std::string(status.message()));
  }
  return response;
}

absl::StatusOr<Response> Session::DoWhatIf(const WhatIf& call) {
  std::vector<plan::Snapshot> snapshots;
  if (call.has_path()) {
    plan::SnapshotLog log = plan::ReadSnapshotFile(call.path());
    if (log.snapshots.empty() && !log.status.ok()) return log.status;
    snapshots = std::move(log.snapshots);
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(snapshots, Recorded(call.iterator()));
  }
  const std::vector<plan::Change> changes(call.changes().begin(),
                                          call.changes().end());
  Response response;
  PENSTOCK_ASSIGN_OR_RETURN(*response.mutable_what_if(),
                            tuner::Predict(snapshots, changes));
  return response;
}

absl::StatusOr<Response> Session::DoSetKnobs(const SetKnobs& call) {
  PENSTOCK_ASSIGN_OR_RETURN(FrameSender * sender, FindSender(call.iterator()));
  PENSTOCK_RETURN_IF_ERROR(ApplyKnobs(call.knobs(), *sender));
  Response response;
  response.set_done(true);
  return response;
}

}  // namespace penstock::session
