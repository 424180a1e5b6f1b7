#include "penstock/tuner/report.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"
#include "penstock/plan/snapshot.h"
#include "penstock/tuner/demand.h"
#include "penstock/tuner/diagnose.h"
#include "penstock/tuner/legality.h"
#include "penstock/tuner/padding.h"
#include "penstock/tuner/size.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

using plan::Report;

// Windows at the beginning that are left out where there are enough others:
// files are opened, processes started, buffers filled.
constexpr size_t kWarmUp = 2;
constexpr size_t kEnough = 6;
constexpr size_t kMaxMoments = 512;
// From here on it is worth a word that the user's own knobs hold it up.
constexpr double kWorthUnpinning = 1.05;

void Fill(const Interval& from, Report::Interval& to) {
  to.set_low(from.low);
  to.set_middle(from.middle);
  to.set_high(from.high);
}

std::string NameOf(const Model& model, int place) {
  return place < 0 ? "" : (*model.measured)[place].name;
}

void Fill(const Model& model, const Limit& from, Report::Wall& to) {
  to.set_kind(WallName(from.wall));
  to.set_node(NameOf(model, from.node));
  if (from.rate < kUnlimitedRate) to.set_rate(from.rate);
}

void Fill(const Model& model, const Setting& from, Report::Setting& to) {
  to.set_knob(KnobName(from.kind));
  to.set_node(NameOf(model, from.node));
  if (from.from.has_value()) to.set_from(*from.from);
  to.set_to(from.to);
  to.set_why(from.why);
  to.set_is_pinned(from.is_pinned);
  if (from.node >= 0)
    *to.mutable_made_at() = (*model.measured)[from.node].made_at;
}

void FillNodes(const Model& model, const Diagnosis& diagnosis, Report& report) {
  const std::vector<CacheLegality> legality = FindCacheLegality(model);
  for (const NodeEvidence& from : diagnosis.nodes) {
    const Measured& measured = (*model.measured)[from.node];
    const NodeModel& node = model.nodes[from.node];
    Report::Node* to = report.add_nodes();
    to->set_node(measured.id);
    to->set_name(measured.name);
    *to->mutable_made_at() = measured.made_at;
    to->set_cpu_share(from.cpu_share);
    to->set_rate_per_core(from.rate_per_core);
    to->set_visits(from.visits);
    to->set_row_bytes(from.row_bytes);
    to->set_tasks_useful(from.tasks_useful);
    to->set_tasks(static_cast<uint32_t>(from.tasks));
    to->set_wait_input_share(measured.wait_input_share);
    to->set_wait_room_share(measured.wait_room_share);
    to->set_service_p50_ns(from.service_p50_ns);
    to->set_service_p99_ns(from.service_p99_ns);
    to->set_cpu_error(from.cpu_error);
    to->set_may_be_cached(legality[from.node].is_legal);
    to->set_why_not(legality[from.node].why);
    to->set_may_be_cached_if_pure(legality[from.node].is_legal_if_pure);
    to->set_is_python(measured.is_python);
    to->set_cpu_ns(node.cpu.value * 1e9);
    to->set_read_bytes(node.file_bytes.value);
    for (int input : node.inputs) {
      to->add_inputs((*model.measured)[input].id);
    }
    if (const auto size = SizeAfter(model, from.node)) {
      if (size->bytes.high) to->set_cache_bytes(*size->bytes.high);
    }
  }
}

double RootRows(const plan::Snapshot& snapshot) {
  for (const plan::Snapshot::Node& node : snapshot.nodes()) {
    if (node.node() == snapshot.root()) return static_cast<double>(node.rows());
  }
  return 0;
}

double CpuSeconds(const plan::Snapshot& snapshot) {
  return static_cast<double>(snapshot.process().engine_cpu_ns() +
                             snapshot.process().python_cpu_ns()) /
         1e9;
}

void FillTimeline(absl::Span<const plan::Snapshot> snapshots, Report& report) {
  const size_t step = (snapshots.size() + kMaxMoments - 1) / kMaxMoments;
  const plan::Snapshot* before = nullptr;
  const plan::Knobs* knobs = nullptr;
  for (size_t i = 0; i < snapshots.size(); i += step) {
    const plan::Snapshot& now = snapshots[i];
    const plan::Snapshot* from = std::exchange(before, &now);
    if (from == nullptr || from->run() != now.run() ||
        from->time_ns() >= now.time_ns()) {
      continue;
    }
    Report::Moment* moment = report.add_timeline();
    moment->set_begin(static_cast<double>(from->time_ns()) / 1e9);
    moment->set_end(static_cast<double>(now.time_ns()) / 1e9);
    const double seconds = moment->end() - moment->begin();
    // Of a damaged trace, totals may fall.
    moment->set_rate(std::max(0.0, RootRows(now) - RootRows(*from)) / seconds);
    moment->set_used_cores(std::max(0.0, CpuSeconds(now) - CpuSeconds(*from)) /
                           seconds);
    if (knobs == nullptr || !plan::SameKnobs(*knobs, now.knobs())) {
      *moment->mutable_knobs() = now.knobs();
    }
    knobs = &now.knobs();
  }
}

void Unpin(plan::Knob* knob) {
  if (knob->chosen_by() == plan::USER) {
    knob->set_chosen_by(plan::CHOOSER_UNSPECIFIED);
  }
}

// As if nobody had chosen what the user has.
std::vector<plan::Snapshot> WithoutPins(
    absl::Span<const plan::Snapshot> snapshots) {
  std::vector<plan::Snapshot> free(snapshots.begin(), snapshots.end());
  for (plan::Snapshot& snapshot : free) {
    plan::Knobs& knobs = *snapshot.mutable_knobs();
    if (knobs.has_output_rows()) Unpin(knobs.mutable_output_rows());
    for (auto& [id, node] : *knobs.mutable_nodes()) {
      if (node.has_parallelism()) Unpin(node.mutable_parallelism());
      if (node.has_reorder_rows()) Unpin(node.mutable_reorder_rows());
      if (node.has_buffer_rows()) Unpin(node.mutable_buffer_rows());
      if (node.has_read_depth()) Unpin(node.mutable_read_depth());
      if (node.has_read_bytes()) Unpin(node.mutable_read_bytes());
    }
  }
  return free;
}

// The argument by which users set it; null where there is none.
const char* ArgumentOf(KnobKind kind) {
  if (kind == KnobKind::kParallelism) return "num_parallel_calls";
  return kind == KnobKind::kBufferRows ? "buffer_size" : nullptr;
}

bool IsPinned(const Measured& measured, KnobKind kind) {
  const plan::Knob& knob = kind == KnobKind::kParallelism
                               ? measured.knobs.parallelism()
                               : measured.knobs.buffer_rows();
  return knob.chosen_by() == plan::USER;
}

// What the user's own knobs cost, where that is much: the first fix.
absl::Status AddUnpinning(absl::Span<const plan::Snapshot> steady,
                          const Model& pinned, const Budget& budget,
                          const Choice& with_pins, Report& report) {
  const std::vector<plan::Snapshot> snapshots = WithoutPins(steady);
  PENSTOCK_ASSIGN_OR_RETURN(const Model model, Measure(snapshots));
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(model, budget));
  if (choice.bound.rate.middle <
      kWorthUnpinning * with_pins.bound.rate.middle) {
    return absl::OkStatus();
  }
  Report::Fix fix;
  std::vector<std::string> titles;
  for (const Setting& setting : choice.settings) {
    const char* argument = ArgumentOf(setting.kind);
    if (argument == nullptr || setting.node < 0) continue;
    const Measured& measured = (*pinned.measured)[setting.node];
    if (!IsPinned(measured, setting.kind)) continue;
    Report::Setting* to = fix.add_settings();
    Fill(model, setting, *to);
    to->set_is_pinned(true);
    const plan::Location& at = measured.made_at;
    titles.push_back(absl::StrCat(
        "set ", argument, "=", setting.to, " of ", measured.name,
        at.file().empty() ? ""
                          : absl::StrCat(" at ", at.file(), ":", at.line()),
        setting.from ? absl::StrCat(" (you set ", *setting.from, ")") : ""));
  }
  if (titles.empty()) return absl::OkStatus();
  fix.set_title(absl::StrJoin(titles, ", "));
  fix.set_why("what you set is not changed for you, and holds up the rest");
  fix.set_needs_the_user(true);
  Fill(choice.bound.rate, *fix.mutable_expected());
  *report.add_fixes() = std::move(fix);
  return absl::OkStatus();
}

absl::StatusOr<double> Positive(const char* what, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must be over 0; got ", value));
  }
  return value;
}

absl::StatusOr<Budget> FromProto(const plan::Budget& from) {
  Budget budget;
  budget.may_cache_in_memory = !from.no_cache();
  budget.may_cache = !from.no_cache() || from.has_disk_bytes();
  if (from.has_cores()) {
    PENSTOCK_ASSIGN_OR_RETURN(budget.cores, Positive("cores", from.cores()));
  }
  if (from.has_memory_bytes()) {
    PENSTOCK_ASSIGN_OR_RETURN(budget.memory_bytes,
                              Positive("memory", from.memory_bytes()));
  }
  if (from.has_disk_bytes()) {
    if (!(from.disk_bytes() >= 0) || !std::isfinite(from.disk_bytes())) {
      return absl::InvalidArgumentError(
          absl::StrCat("disk must be at least 0; got ", from.disk_bytes()));
    }
    budget.disk_bytes = from.disk_bytes();
  }
  return budget;
}

absl::StatusOr<uint32_t> Find(const Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (const Measured& each : *model.measured) {
    if (each.name == name) return each.id;
    names.push_back(each.name);
  }
  std::string known;
  for (const std::string& each : names) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", each);
  }
  return absl::NotFoundError(absl::StrCat("expected the name of a node (",
                                          known, "); got \"", name, "\""));
}

absl::StatusOr<Change> FromProto(const Model& model, const plan::Change& from) {
  const auto number = [&](const plan::Change::Number& given)
      -> absl::StatusOr<std::pair<uint32_t, double>> {
    PENSTOCK_ASSIGN_OR_RETURN(const uint32_t id, Find(model, given.node()));
    return std::pair(id, given.value());
  };
  const auto whole = [](double value) {
    return static_cast<int64_t>(std::clamp(value, -1e15, 1e15));
  };
  const auto cache = [&](const plan::Change::Number& given,
                         plan::CacheTier tier) -> absl::StatusOr<Change> {
    PENSTOCK_ASSIGN_OR_RETURN(const auto at, number(given));
    const auto size = SizeAfter(model, *FindNode(model, at.first));
    return CacheAfter{at.first, tier, at.second,
                      size && size->bytes.high ? *size->bytes.high : 0};
  };
  switch (from.kind_case()) {
    case plan::Change::kCores:
      return SetCores{from.cores()};
    case plan::Change::kTasks: {
      PENSTOCK_ASSIGN_OR_RETURN(const auto at, number(from.tasks()));
      return SetTasks{at.first, whole(at.second)};
    }
    case plan::Change::kReadDepth: {
      PENSTOCK_ASSIGN_OR_RETURN(const auto at, number(from.read_depth()));
      return SetReadDepth{at.first, whole(at.second)};
    }
    case plan::Change::kReorderRows: {
      PENSTOCK_ASSIGN_OR_RETURN(const auto at, number(from.reorder_rows()));
      return SetReorderRows{at.first, whole(at.second)};
    }
    case plan::Change::kBufferRows: {
      PENSTOCK_ASSIGN_OR_RETURN(const auto at, number(from.buffer_rows()));
      return SetBufferRows{at.first, whole(at.second)};
    }
    case plan::Change::kOutputRows:
      return SetOutputRows{whole(from.output_rows())};
    case plan::Change::kDisk:
      return ScaleDisk{from.disk()};
    case plan::Change::kCost: {
      PENSTOCK_ASSIGN_OR_RETURN(const auto at, number(from.cost()));
      return ScaleCost{at.first, at.second};
    }
    case plan::Change::kCache:
      return cache(from.cache(), plan::MEMORY);
    case plan::Change::kDiskCache:
      return cache(from.disk_cache(), plan::DISK);
    case plan::Change::kFuse: {
      PENSTOCK_ASSIGN_OR_RETURN(const uint32_t id, Find(model, from.fuse()));
      return Fuse{id};
    }
    case plan::Change::kConsumer:
      return ScaleConsumer{from.consumer()};
    case plan::Change::kMove: {
      PENSTOCK_ASSIGN_OR_RETURN(const uint32_t id,
                                Find(model, from.move().node()));
      if (from.move().before().empty()) return MoveNode{id, std::nullopt};
      PENSTOCK_ASSIGN_OR_RETURN(const uint32_t before,
                                Find(model, from.move().before()));
      return MoveNode{id, before};
    }
    case plan::Change::kWorkers: {
      const plan::Change::Workers& workers = from.workers();
      PENSTOCK_ASSIGN_OR_RETURN(const uint32_t id,
                                Find(model, workers.after()));
      std::optional<double> network;
      if (workers.has_network_bytes_per_second()) {
        network = workers.network_bytes_per_second();
      }
      return OnWorkers{id, workers.cores(), network};
    }
    case plan::Change::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a change must say what changes");
}

}  // namespace

absl::Span<const plan::Snapshot> SteadyPart(
    absl::Span<const plan::Snapshot> snapshots) {
  if (snapshots.empty()) return snapshots;
  const plan::Snapshot& last = snapshots.back();
  size_t first = snapshots.size() - 1;
  while (first > 0) {
    const plan::Snapshot& before = snapshots[first - 1];
    if (before.run() != last.run() ||
        before.fingerprint() != last.fingerprint() ||
        before.time_ns() > snapshots[first].time_ns() ||
        !plan::SameKnobs(before.knobs(), last.knobs())) {
      break;
    }
    --first;
  }
  absl::Span<const plan::Snapshot> steady = snapshots.subspan(first);
  if (steady.size() >= kEnough + kWarmUp) steady.remove_prefix(kWarmUp);
  // Where nothing came lately, what it did since it began.
  if (RootRows(steady.front()) >= RootRows(last)) {
    return steady.last(1);
  }
  return steady;
}

absl::StatusOr<plan::Report> MakeReport(
    absl::Span<const plan::Snapshot> snapshots, const plan::Budget& budget) {
  absl::Span<const plan::Snapshot> steady = SteadyPart(snapshots);
  std::vector<plan::Snapshot> free;
  if (budget.ignore_pins()) {
    free = WithoutPins(steady);
    steady = free;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Budget limits, FromProto(budget));
  PENSTOCK_ASSIGN_OR_RETURN(const Model model, Measure(steady));
  PENSTOCK_ASSIGN_OR_RETURN(const Diagnosis diagnosis, Diagnose(model, limits));
  Report report;
  report.set_sentence(diagnosis.sentence);
  report.set_is_input_bound(diagnosis.is_input_bound);
  report.set_measured(diagnosis.measured);
  report.set_measured_error(model.rate.error);
  Fill(diagnosis.possible, *report.mutable_possible());
  Fill(model, diagnosis.wall, *report.mutable_wall());
  Fill(model, diagnosis.next_wall, *report.mutable_next_wall());
  if (diagnosis.read_back >= 0 && MayBeLeftOut(model, diagnosis.read_back)) {
    report.set_read_back(NameOf(model, diagnosis.read_back));
  }
  if (std::isfinite(diagnosis.next_wall_gain)) {
    report.set_next_wall_gain(diagnosis.next_wall_gain);
  }
  for (const Evidence& from : diagnosis.evidence) {
    Report::Resource* to = report.add_resources();
    to->set_what(from.what);
    to->set_used(from.used);
    to->set_capacity(from.capacity);
    to->set_rate(from.rate);
  }
  FillNodes(model, diagnosis, report);
  PENSTOCK_RETURN_IF_ERROR(
      AddUnpinning(steady, model, limits, diagnosis.choice, report));
  for (const Fix& from : diagnosis.fixes) {
    Report::Fix* to = report.add_fixes();
    to->set_title(from.title);
    to->set_why(from.why);
    Fill(from.expected, *to->mutable_expected());
    to->set_needs_the_user(from.needs_the_user);
    for (const Setting& setting : from.settings) {
      Fill(model, setting, *to->add_settings());
    }
  }
  AddPadding(steady.back(), report);
  for (const std::string& note : diagnosis.notes) report.add_notes(note);
  report.set_unattributed_share(diagnosis.unattributed_share);
  report.set_seconds(model.seconds);
  report.set_windows(static_cast<uint32_t>(std::max<size_t>(steady.size(), 2)) -
                     1);
  report.set_cores(model.resources.cores);
  report.set_used_cores(model.used_cores);
  const plan::Snapshot& last = steady.back();
  report.set_memory_limit_bytes(
      static_cast<double>(last.machine().memory_limit_bytes()));
  report.set_resident_bytes(model.resident_bytes);
  report.set_fingerprint(last.fingerprint());
  Report::Consumer* consumer = report.mutable_consumer();
  if (model.consumer_wait_share) {
    consumer->set_wait_share(*model.consumer_wait_share);
  }
  consumer->set_wait_ns(model.consumer_wait * 1e9);
  if (model.resources.consumer_time) {
    consumer->set_own_ns(model.resources.consumer_time->value * 1e9);
  }
  const Choice& choice = diagnosis.choice;
  *report.mutable_knobs() = choice.knobs;
  for (const Setting& setting : choice.settings) {
    Fill(model, setting, *report.add_settings());
  }
  Fill(choice.bound.rate, *report.mutable_expected());
  report.set_expected_cores(choice.cores);
  report.set_expected_memory_bytes(choice.memory_bytes);
  report.set_is_over_memory(choice.is_over_memory);
  FillTimeline(snapshots, report);
  return report;
}

absl::StatusOr<plan::Prediction> Predict(
    absl::Span<const plan::Snapshot> snapshots,
    absl::Span<const plan::Change> changes) {
  PENSTOCK_ASSIGN_OR_RETURN(const Model model, Measure(SteadyPart(snapshots)));
  std::vector<Change> given;
  for (const plan::Change& change : changes) {
    PENSTOCK_ASSIGN_OR_RETURN(given.emplace_back(), FromProto(model, change));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Model changed, Apply(model, given));
  const Bound bound = FindBound(changed, KnobsAre::kFree);
  plan::Prediction prediction;
  Fill(bound.rate, *prediction.mutable_rate());
  Fill(changed, bound.wall(), *prediction.mutable_wall());
  if (bound.limits.size() > 1) {
    Fill(changed, bound.limits[1], *prediction.mutable_next_wall());
  }
  prediction.set_measured(model.rate.value);
  return prediction;
}

}  // namespace penstock::tuner
