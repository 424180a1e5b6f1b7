#include "penstock/service/windows/dispatcher_pages.h"

#include <cstdint>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "penstock/service/windows/metrics.h"

namespace penstock::windows {
namespace {

std::string LabelsOf(const service::State::Job& job,
                     const service::State::Epoch& epoch) {
  return absl::StrCat("{", Label("job", job.job()), ",",
                      Label("epoch", absl::StrCat(epoch.epoch().epoch())), "}");
}

template <typename Value>
void AddEpochs(std::string& out, const service::State& state,
               std::string_view name, std::string_view doc, Value value) {
  BeginMetric(out, name, doc);
  for (const auto& job : state.jobs()) {
    for (const auto& epoch : job.epochs()) {
      AddMetric(out, name, value(epoch), LabelsOf(job, epoch));
    }
  }
}

}  // namespace

std::string MetricsOf(const service::State& state) {
  std::string out;
  BeginMetric(out, "penstock_dispatcher_info", "The version that runs.");
  AddMetric(out, "penstock_dispatcher_info", 1,
            absl::StrCat("{", Label("version", state.version()), "}"));
  BeginMetric(out, "penstock_dispatcher_term",
              "How often a dispatcher has begun with this store.", "counter");
  AddMetric(out, "penstock_dispatcher_term", state.term());
  BeginMetric(out, "penstock_dispatcher_disk_full",
              "1 while nothing can be written down.");
  AddMetric(out, "penstock_dispatcher_disk_full", state.is_disk_full() ? 1 : 0);
  BeginMetric(out, "penstock_workers", "Workers that are heard of.");
  AddMetric(out, "penstock_workers",
            static_cast<uint64_t>(state.workers_size()));
  BeginMetric(out, "penstock_jobs", "Jobs that run.");
  AddMetric(out, "penstock_jobs", static_cast<uint64_t>(state.jobs_size()));
  BeginMetric(out, "penstock_worker_held", "Bundles that a worker holds.");
  for (const auto& worker : state.workers()) {
    AddMetric(out, "penstock_worker_held", worker.held(),
              absl::StrCat("{", Label("worker", worker.address()), "}"));
  }
  AddEpochs(out, state, "penstock_epoch_bundles",
            "Bundles of an epoch; 0: not known, or without end.",
            [](const auto& epoch) { return epoch.bundles(); });
  AddEpochs(out, state, "penstock_epoch_bundles_done",
            "Bundles that consumers have had as a whole.",
            [](const auto& epoch) { return epoch.done(); });
  AddEpochs(out, state, "penstock_epoch_consumers",
            "Consumers that have not left.", [](const auto& epoch) {
              uint64_t consumers = 0;
              for (const auto& each : epoch.consumers()) {
                consumers += each.has_left() ? 0 : 1;
              }
              return consumers;
            });
  AddEpochs(out, state, "penstock_epoch_failed", "1: it has failed.",
            [](const auto& epoch) -> uint64_t {
              return epoch.failure().empty() ? 0 : 1;
            });
  return out;
}

std::string JsonOf(const service::State& state) { return ToJson(state); }

}  // namespace penstock::windows
