#include "penstock/service/windows/dispatcher_pages.h"

#include <cstdint>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/util/json_util.h"

namespace penstock::windows {
namespace {

void Begin(std::string& out, std::string_view name, std::string_view doc,
           std::string_view kind = "gauge") {
  absl::StrAppend(&out, "# HELP ", std::string(name), " ", std::string(doc),
                  "\n# TYPE ", std::string(name), " ", std::string(kind), "\n");
}

void Add(std::string& out, std::string_view name, uint64_t value,
         const std::string& labels = "") {
  absl::StrAppend(&out, std::string(name), labels, " ", value, "\n");
}

std::string Label(const std::string& name, const std::string& value) {
  return absl::StrCat(
      name, "=\"",
      absl::StrReplaceAll(value,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

std::string LabelsOf(const service::State::Job& job,
                     const service::State::Epoch& epoch) {
  return absl::StrCat("{", Label("job", job.job()), ",",
                      Label("epoch", absl::StrCat(epoch.epoch().epoch())), "}");
}

template <typename Value>
void AddEpochs(std::string& out, const service::State& state,
               std::string_view name, std::string_view doc, Value value) {
  Begin(out, name, doc);
  for (const auto& job : state.jobs()) {
    for (const auto& epoch : job.epochs()) {
      Add(out, name, value(epoch), LabelsOf(job, epoch));
    }
  }
}

}  // namespace

std::string MetricsOf(const service::State& state) {
  std::string out;
  Begin(out, "penstock_dispatcher_info", "The version that runs.");
  Add(out, "penstock_dispatcher_info", 1,
      absl::StrCat("{", Label("version", state.version()), "}"));
  Begin(out, "penstock_dispatcher_term",
        "How often a dispatcher has begun with this store.", "counter");
  Add(out, "penstock_dispatcher_term", state.term());
  Begin(out, "penstock_dispatcher_disk_full",
        "1 while nothing can be written down.");
  Add(out, "penstock_dispatcher_disk_full", state.is_disk_full() ? 1 : 0);
  Begin(out, "penstock_workers", "Workers that are heard of.");
  Add(out, "penstock_workers", static_cast<uint64_t>(state.workers_size()));
  Begin(out, "penstock_jobs", "Jobs that run.");
  Add(out, "penstock_jobs", static_cast<uint64_t>(state.jobs_size()));
  Begin(out, "penstock_worker_held", "Bundles that a worker holds.");
  for (const auto& worker : state.workers()) {
    Add(out, "penstock_worker_held", worker.held(),
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

std::string JsonOf(const service::State& state) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Nothing of a State cannot be said in JSON.
  (void)google::protobuf::util::MessageToJsonString(state, &json, options);
  return json;
}

}  // namespace penstock::windows
