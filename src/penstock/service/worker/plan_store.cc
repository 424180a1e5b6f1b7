#include "penstock/service/worker/plan_store.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/divide_by_worker.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/keepable.h"
#include "penstock/plan/validate.h"

namespace penstock::service {

absl::StatusOr<std::unique_ptr<engine::RowSource>> CapturedRows::Open(
    const std::string& capture, const Chunk&) {
  return absl::FailedPreconditionError(absl::StrCat(
      "a worker runs what it can read by itself; got generator ", capture,
      ", whose rows come from the trainer's process\n  Save them to files "
      "first."));
}

absl::StatusOr<Buffer> CapturedRows::Capture(const std::string& id) {
  const auto found = arrays_.find(id);
  if (found == arrays_.end()) {
    return absl::NotFoundError(
        absl::StrCat("array ", id, " did not come with the plan"));
  }
  return found->second;
}

namespace {

void FindKept(ReadyPlan& ready) {
  const plan::Plan& remote = ready.division.remote;
  if (!ready.division.is_kept) return;
  const std::vector<plan::Keepable> keepable =
      plan::FindKeepable(remote, /*is_ordered=*/true);
  const std::vector<std::string> fingerprints = plan::NodeFingerprints(remote);
  for (const plan::Node& node : remote.nodes()) {
    if (!node.cache().in_shares()) continue;
    const uint32_t input = node.inputs(0);
    ready.kept_by = HashBytes(fingerprints[input], keepable[input].functions);
    ready.kept_in = node.cache().filename();
    return;
  }
}

}  // namespace

absl::StatusOr<PlanPtr> MakeReadyPlan(const std::string& bundle,
                                      PythonHost* python,
                                      const ServiceRules& services) {
  PlanBundle parsed;
  plan::Plan plan;
  if (!parsed.ParseFromString(bundle) || !plan.ParseFromString(parsed.plan())) {
    return absl::DataLossError("damaged plan: it cannot be read");
  }
  PENSTOCK_RETURN_IF_ERROR(plan::Validate(plan));
  PENSTOCK_RETURN_IF_ERROR(plan::ValidateOptions(parsed.defaults()));
  std::map<std::string, Buffer> arrays;
  for (const PlanBundle::Capture& capture : parsed.captures()) {
    Buffer bytes = Buffer::Allocate(capture.bytes().size());
    std::memcpy(bytes.MutableAs<char>(), capture.bytes().data(),
                capture.bytes().size());
    arrays[capture.id()] = std::move(bytes);
  }
  auto ready = std::make_shared<ReadyPlan>();
  ready->captures = std::make_unique<CapturedRows>(std::move(arrays));
  ready->defaults = parsed.defaults();
  ready->directory = parsed.directory();
  PENSTOCK_ASSIGN_OR_RETURN(
      ready->division, plan::DivideFor(plan, parsed.visitation(),
                                       parsed.sharding(), parsed.in_rounds()));
  ready->division.needs_lineage |= parsed.gives_lineage();
  PENSTOCK_RETURN_IF_ERROR(services.Check(ready->division.remote));
  PENSTOCK_ASSIGN_OR_RETURN(
      ready->pipeline,
      engine::Pipeline::Build(ready->division.remote, ready->defaults,
                              ready->captures.get()));
  ready->places = FindWorkPlaces(ready->division, *ready->pipeline);
  FindKept(*ready);
  if (!plan::DistributionsIn(ready->division.remote).empty()) {
    ReceivedSource::Settings settings;
    settings.directory = ready->directory;
    settings.defaults = ready->defaults;
    settings.credentials = services.credentials();
    settings.captures = ready->captures.get();
    settings.needs_lineage =
        ready->pipeline->needs_lineage() || ready->division.needs_lineage;
    ready->received = std::make_shared<ReceivedSources>(std::move(settings));
  }
  if (python == nullptr) {
    PENSTOCK_RETURN_IF_ERROR(CodeRules().Check(parsed));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(ready->functions, python->Open(parsed));
  }
  return ready;
}

absl::StatusOr<PlanPtr> PlanStore::Get(const std::string& plan) {
  {
    MutexLock lock(&mutex_);
    while (true) {
      const auto found = plans_.find(plan);
      if (found == plans_.end()) break;
      if (found->second.plan != nullptr) {
        found->second.used = ++uses_;
        return found->second.plan;
      }
      changed_.Wait(&mutex_);
    }
    plans_[plan];  // others wait for this one
  }
  absl::StatusOr<PlanPtr> ready = [&]() -> absl::StatusOr<PlanPtr> {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, fetch_(plan));
    return MakeReadyPlan(bytes, python_, services_);
  }();
  MutexLock lock(&mutex_);
  if (ready.ok()) {
    plans_[plan] = Entry{*ready, ++uses_};
    DropOldest();
  } else {
    plans_.erase(plan);
  }
  changed_.SignalAll();
  return ready;
}

void PlanStore::DropOldest() {
  while (plans_.size() > max_plans_) {
    auto oldest = plans_.end();
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
      if (it->second.plan == nullptr) continue;
      if (oldest == plans_.end() || it->second.used < oldest->second.used) {
        oldest = it;
      }
    }
    if (oldest == plans_.end()) return;
    plans_.erase(oldest);
  }
}

size_t PlanStore::size() const {
  MutexLock lock(&mutex_);
  return plans_.size();
}

}  // namespace penstock::service
