// The calls about how a run does: traces, reports, knobs.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/cpu_clock.h"
#include "penstock/base/status.h"
#include "penstock/engine/receiver.h"
#include "penstock/plan/snapshot_log.h"
#include "penstock/session/apply_knobs.h"
#include "penstock/session/look_pace.h"
#include "penstock/session/machine_cpu.h"
#include "penstock/session/session.h"
#include "penstock/session/take_snapshot.h"
#include "penstock/tuner/bucket_boundaries.h"
#include "penstock/tuner/report.h"

namespace penstock::session {
namespace {

constexpr int64_t kMillion = 1'000'000;
// A run is looked at more often while it is new: much is decided then.
constexpr int64_t kFirstSeconds = 10;
constexpr int64_t kFirstMillis = 250;
// What was measured for less time says less than all since the beginning.
constexpr int64_t kLeastNanos = 500 * kMillion;
// The node nearest to the root whose rows may be kept, or -1.
int LastKeepable(const engine::Pipeline& pipeline) {
  const engine::OpInfo* info = &pipeline.root_info();
  while (!pipeline.WhyNotKept(info->id).empty()) {
    if (info->inputs.size() != 1) return -1;
    info = &pipeline.ops()[info->inputs[0]];
  }
  return info->id;
}

// Until the run's own reads have ended, which they do as nobody takes its rows:
// they would be measured, too. No longer than two seconds.
void AwaitRest(const engine::Run& run) {
  const int64_t until = SteadyClock().NowNanos() + 2000 * kMillion;
  int quiet = 0;
  while (quiet < 3 && SteadyClock().NowNanos() < until) {
    int64_t under_way = 0;
    for (const engine::NodeStats& stats : run.stats) {
      if (stats.io != nullptr) under_way += stats.io->under_way;
    }
    quiet = under_way == 0 ? quiet + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool HasCache(const plan::Knobs& knobs) {
  return std::any_of(knobs.nodes().begin(), knobs.nodes().end(),
                     [](const auto& node) { return node.second.has_cache(); });
}

// Reads under way, on average, from which on storage may matter.
constexpr double kLeastReads = 0.05;
// Files that storage is measured with.
constexpr size_t kMaxProbed = 256;

// More often would cost more than it tells.
constexpr int64_t kMinTraceMillis = 10;

}  // namespace

plan::Snapshot Session::SnapshotOf(uint64_t iterator, const Reading& reading,
                                   Sees sees) {
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
  if (sees == Sees::kMachine && reading.machine_cpu_before.has_value()) {
    const std::optional<int64_t> now = MachineCpuNanos(limits_.cpus);
    if (now.has_value()) {
      around.machine_cpu_ns =
          std::max<int64_t>(0, *now - *reading.machine_cpu_before);
    }
  }
  const plan::Options& options = reading.sender->pipeline()->options();
  if (options.python().has_processes()) {
    around.python_processes =
        std::min(around.python_processes, options.python().processes());
  }
  plan::Snapshot snapshot = TakeSnapshot(*reading.sender, around);
  if (reading.kept_on_trial >= 0) {
    // As if it were not there.
    const auto id = static_cast<uint32_t>(reading.kept_on_trial);
    for (plan::Snapshot::Node& node : *snapshot.mutable_nodes()) {
      if (node.node() == id) node.clear_cache();
    }
    auto& knobs = *snapshot.mutable_knobs()->mutable_nodes();
    if (const auto it = knobs.find(id); it != knobs.end()) {
      it->second.clear_cache();
      if (it->second.ByteSizeLong() == 0) knobs.erase(it);
    }
  }
  // As they were given: a cache's share, what is ready for the trainer.
  for (const auto& [id, knobs] : reading.knobs.nodes()) {
    if (!knobs.has_cache()) continue;
    *(*snapshot.mutable_knobs()->mutable_nodes())[id].mutable_cache() =
        knobs.cache();
  }
  if (reading.knobs.has_output_rows()) {
    *snapshot.mutable_knobs()->mutable_output_rows() =
        reading.knobs.output_rows();
  }
  if (reading.speeds.has_value()) {
    snapshot.mutable_machine()->MergeFrom(*reading.speeds);
  }
  return snapshot;
}

plan::Snapshot::Machine Session::SpeedsFor(const Reading& reading,
                                           const plan::Snapshot& snapshot) {
  namespace fs = std::filesystem;
  plan::Snapshot::Machine machine;
  const engine::Run& run = reading.sender->run();
  const fs::path directory = run.environment.directory;
  double reads_ns = 0, reads = 0, bytes = 0;
  std::vector<std::string> paths;
  for (const plan::Snapshot::Node& node : snapshot.nodes()) {
    reads_ns += static_cast<double>(node.io_ns());
    reads += static_cast<double>(node.io_ops());
    bytes += static_cast<double>(node.io_bytes());
    const auto log = run.file_logs.find(static_cast<int>(node.node()));
    if (node.io_bytes() == 0 || log == run.file_logs.end()) continue;
    const auto records = log->second->Since(0);
    if (!records.has_value()) continue;
    for (const auto& [name, stamp] : *records) {
      if (name.is_pattern || stamp.size < 0) continue;
      if (paths.size() == kMaxProbed) break;
      paths.push_back((directory / name.name).string());
    }
  }
  const auto time_ns = static_cast<double>(snapshot.time_ns());
  if (reads > 0 && reads_ns >= kLeastReads * time_ns) {
    AwaitRest(run);
    const auto curve =
        speeds_.OfFiles(*run.environment.files, paths, bytes / reads);
    if (curve.has_value()) {
      machine.set_disk_read_bytes(static_cast<double>(curve->read_bytes));
      for (const io::DiskCurve::Point& point : curve->points) {
        plan::Snapshot::DiskPoint* to = machine.add_disk_curve();
        to->set_reads(static_cast<uint32_t>(point.reads));
        to->set_bytes_per_second(point.bytes_per_second);
      }
    }
  }
  const plan::Options& options = reading.sender->pipeline()->options();
  if (options.has_kept_directory() && run.environment.kept_disk != nullptr) {
    const fs::path kept = directory / options.kept_directory();
    std::error_code error;
    const fs::space_info space = fs::space(kept, error);
    if (!error) {
      // Half is for others: as much as is ever kept.
      machine.set_disk_free_bytes(space.available / 2);
      if (const auto speed = speeds_.OfDirectory(kept.string())) {
        machine.set_kept_bytes_per_second(*speed);
      }
    }
  }
  machine.set_memory_bytes_per_second(
      speeds_.OfMemory(static_cast<int>(limits_.cpus)));
  return machine;
}

void Session::BeginTuning(Reading& reading) {
  const engine::Pipeline& pipeline = *reading.sender->pipeline();
  const plan::Options& options = pipeline.options();
  const bool is_on = !options.has_autotune() || options.autotune();
  const bool is_chosen =
      !reading.knobs.nodes().empty() || reading.knobs.has_output_rows();
  if (!is_on || is_chosen || !reading.sender->run().environment.has_counters) {
    return;
  }
  tuner::OnlineOptions online;
  online.budget.memory_bytes = static_cast<double>(
      options.has_memory_budget_bytes() ? options.memory_budget_bytes()
                                        : memory_->limit());
  online.window_seconds = kFirstMillis / 1e3 / 2;
  online.budget.disk_bytes = 0;  // decided in seconds, not in epochs
  // Memory that nobody has offered is not for rows that could be computed.
  online.budget.may_cache = options.has_memory_budget_bytes();
  if (const Tuning* found = tunings_.Find(pipeline.fingerprint())) {
    plan::Knobs knobs = found->knobs;
    if (!online.budget.may_cache) {
      for (auto& [id, node] : *knobs.mutable_nodes()) node.clear_cache();
    }
    if (ApplyKnobs(knobs, *reading.sender).ok()) reading.knobs = knobs;
  }
  reading.tuning = tunings_.Begin(pipeline.fingerprint(), online);
  reading.tune_at_ns = reading.started_ns + kFirstMillis * kMillion;
  const bool is_first = reading.tuning != nullptr &&
                        reading.tuning->knobs.nodes().empty() &&
                        reading.tuning->log.empty();
  if (is_first && online.budget.may_cache) {
    reading.kept_on_trial = LastKeepable(pipeline);
    SetTrialCache(reading, static_cast<int64_t>(*online.budget.memory_bytes));
  }
}

void Session::SetTrialCache(const Reading& reading, int64_t bytes) {
  if (reading.kept_on_trial < 0) return;
  reading.sender->mutable_run().knobs[reading.kept_on_trial].keep_bytes.store(
      bytes, std::memory_order_relaxed);
}

void Session::Tune(uint64_t iterator, Reading& reading, int64_t now) {
  const bool is_new =
      now - reading.started_ns < kFirstSeconds * 1000 * kMillion;
  Tuning& tuning = *reading.tuning;
  if (!is_new && reading.kept_on_trial >= 0) {
    SetTrialCache(reading, 0);
    reading.kept_on_trial = -1;
  }
  const tuner::Online::Step step =
      tuning.online.Advance(SnapshotOf(iterator, reading, Sees::kItself));
  for (const tuner::Decision& decision : step.log) {
    std::string line = tuner::ToString(decision);
    service_.Log(20, absl::StrCat("autotune: ", line));
    tuning.Note(std::move(line));
  }
  if (!step.knobs.has_value()) return;
  const absl::Status status = ApplyKnobs(*step.knobs, *reading.sender);
  if (!status.ok()) {
    service_.Log(30, absl::StrCat("autotune: ", std::string(status.message())));
    return;
  }
  reading.knobs = *step.knobs;
  tuning.knobs = *step.knobs;
  if (reading.begun.has_value()) {
    reading.begun = SnapshotOf(iterator, reading, Sees::kMachine);
  }
  if (HasCache(*step.knobs)) {
    reading.kept_on_trial = -1;  // decided
  } else if (reading.kept_on_trial >= 0) {
    SetTrialCache(reading, memory_->limit());
  }
}

void Session::TuneInTurn(uint64_t iterator, Reading& reading, int64_t now) {
  const int64_t before = ThreadCpuNanos();
  Tune(iterator, reading, now);
  Look look;
  look.cpu = ThreadCpuNanos() - before;
  reading.tuning_cpu_ns += look.cpu;
  const int64_t process = ProcessCpuNanos();
  if (reading.tuned_at_ns > 0) {
    look.elapsed = now - reading.tuned_at_ns;
    look.run_cpu = process - reading.tuned_cpu_ns;
  }
  reading.tuned_at_ns = now;
  reading.tuned_cpu_ns = process;
  reading.tune_at_ns = now + NanosToNextLook(now - reading.started_ns, look);
}

void Session::LookWhetherBegun(uint64_t iterator, Reading& reading,
                               int64_t now) {
  if (reading.sender->consumer().rows > 0) {
    reading.begun = SnapshotOf(iterator, reading, Sees::kMachine);
  } else {
    reading.begun_at_ns = now + kFirstMillis * kMillion;
  }
}

int Session::Tick() {
  const int64_t now = SteadyClock().NowNanos();
  int64_t next = -1;
  const auto due_at = [&next](int64_t due) {
    next = next < 0 ? due : std::min(next, due);
  };
  for (auto& [id, reading] : iterators_) {
    if (reading.tuning != nullptr) {
      if (now >= reading.tune_at_ns) TuneInTurn(id, reading, now);
      due_at(reading.tune_at_ns);
    }
    if (!reading.begun.has_value()) {
      if (now >= reading.begun_at_ns) LookWhetherBegun(id, reading, now);
      if (!reading.begun.has_value()) due_at(reading.begun_at_ns);
    }
    if (reading.recording == nullptr) continue;
    if (now >= reading.recording->next_ns()) {
      const absl::Status status =
          reading.recording->Add(SnapshotOf(id, reading, Sees::kMachine), now);
      if (!status.ok()) service_.Log(30, std::string(status.message()));
    }
    due_at(reading.recording->next_ns());
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
  plan::Snapshot now = SnapshotOf(iterator, *reading, Sees::kMachine);
  if (snapshots.empty() && reading->begun.has_value() &&
      now.time_ns() > reading->begun->time_ns() + kLeastNanos) {
    snapshots.push_back(*reading->begun);
  }
  snapshots.push_back(std::move(now));
  if (!reading->speeds.has_value()) {
    reading->speeds = SpeedsFor(*reading, snapshots.back());
    snapshots.back().mutable_machine()->MergeFrom(*reading->speeds);
  }
  return snapshots;
}

absl::StatusOr<plan::SnapshotLog> Session::ReadTrace(const std::string& path) {
  plan::SnapshotLog log = plan::ReadSnapshotFile(path);
  if (!log.snapshots.empty()) return log;
  PENSTOCK_RETURN_IF_ERROR(log.status);
  return absl::FailedPreconditionError(
      absl::StrCat("the trace in ", path, " is empty"));
}

absl::StatusOr<Response> Session::DoExplain(const Explain& call) {
  plan::SnapshotLog log;
  if (call.has_path()) {
    PENSTOCK_ASSIGN_OR_RETURN(log, ReadTrace(call.path()));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(log.snapshots, Recorded(call.iterator()));
  }
  if (!call.save().empty()) {
    PENSTOCK_RETURN_IF_ERROR(
        plan::WriteSnapshotFile(call.save(), log.snapshots));
  }
  Response response;
  PENSTOCK_ASSIGN_OR_RETURN(*response.mutable_explain(),
                            tuner::MakeReport(log.snapshots, call.budget()));
  if (!log.status.ok()) {
    response.mutable_explain()->set_trace_status(
        std::string(log.status.message()));
  }
  if (!call.has_path()) {
    PENSTOCK_ASSIGN_OR_RETURN(const Reading* reading,
                              FindReading(call.iterator()));
    if (const auto& receiver = reading->sender->run().environment.receiver) {
      for (plan::Offer& offer : receiver->Offers()) {
        *response.mutable_explain()->add_offers() = std::move(offer);
      }
    }
    if (reading->tuning != nullptr) {
      for (const std::string& line : reading->tuning->log) {
        response.mutable_explain()->add_decisions(line);
      }
    }
  }
  return response;
}

absl::StatusOr<Response> Session::DoWhatIf(const WhatIf& call) {
  plan::SnapshotLog log;
  if (call.has_path()) {
    PENSTOCK_ASSIGN_OR_RETURN(log, ReadTrace(call.path()));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(log.snapshots, Recorded(call.iterator()));
  }
  const std::vector<plan::Change> changes(call.changes().begin(),
                                          call.changes().end());
  Response response;
  PENSTOCK_ASSIGN_OR_RETURN(*response.mutable_what_if(),
                            tuner::Predict(log.snapshots, changes));
  return response;
}

absl::StatusOr<Response> Session::DoSetKnobs(const SetKnobs& call) {
  PENSTOCK_ASSIGN_OR_RETURN(Reading * reading, FindReading(call.iterator()));
  PENSTOCK_RETURN_IF_ERROR(ApplyKnobs(call.knobs(), *reading->sender));
  reading->knobs = call.knobs();
  reading->tuning = nullptr;  // somebody else chooses now
  Response response;
  response.set_done(true);
  return response;
}

absl::StatusOr<Response> Session::DoChooseBoundaries(
    const ChooseBoundaries& call) {
  if (call.lengths_size() != call.rows_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("as many rows as lengths are expected, ",
                     call.lengths_size(), "; got ", call.rows_size()));
  }
  std::vector<tuner::LengthCount> lengths;
  for (int i = 0; i < call.lengths_size(); ++i) {
    lengths.push_back({call.lengths(i), call.rows(i)});
  }
  tuner::BucketOptions options;
  options.shapes = call.shapes();
  options.multiple_of = call.multiple_of();
  if (call.has_max_tokens()) options.max_tokens = call.max_tokens();
  PENSTOCK_ASSIGN_OR_RETURN(const tuner::Buckets buckets,
                            tuner::ChooseBoundaries(lengths, options));
  Response response;
  ChosenBoundaries* reply = response.mutable_choose_boundaries();
  *reply->mutable_boundaries() = {buckets.boundaries.begin(),
                                  buckets.boundaries.end()};
  reply->set_padding_share(buckets.padding_share);
  return response;
}

}  // namespace penstock::session
