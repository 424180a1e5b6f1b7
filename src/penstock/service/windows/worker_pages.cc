#include "penstock/service/windows/worker_pages.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "penstock/service/windows/metrics.h"

namespace penstock::windows {
namespace {

// What is computed once for several readers.
void AddShared(std::string& out, const service::WorkerReport::Shared& shared) {
  const auto one = [&](const char* what, const char* doc, uint64_t value,
                       const char* kind = "counter") {
    const std::string name = absl::StrCat("penstock_worker_shared_", what);
    BeginMetric(out, name, doc, kind);
    AddMetric(out, name, value);
  };
  one("bundles", "Bundles for several readers that are here.",
      shared.productions(), "gauge");
  one("bytes", "Of their frames.", static_cast<uint64_t>(shared.bytes()),
      "gauge");
  one("bundles_computed_total", "Such bundles since it started.",
      shared.computed());
  one("bundles_again_total", "Of them, computed before.", shared.again());
  one("frames_sent_total", "Frames of them, to all readers.",
      shared.sent_frames());
  one("frames_sent_again_total", "Of them, that another reader had before.",
      shared.sent_again());
  one("items_skipped_total", "Items that readers missed.",
      shared.skipped_items());
  one("frames_evicted_total", "Frames that went before all had them.",
      shared.evicted_frames());
}

}  // namespace

std::string MetricsOf(const service::WorkerReport& report) {
  std::string out;
  const auto one = [&](const char* name, const char* doc, uint64_t value,
                       const char* kind = "gauge") {
    BeginMetric(out, name, doc, kind);
    AddMetric(out, name, value);
  };
  BeginMetric(out, "penstock_worker_info", "The version that runs.");
  AddMetric(out, "penstock_worker_info", 1,
            absl::StrCat("{", Label("version", report.version()), ",",
                         Label("address", report.address()), "}"));
  one("penstock_worker_joined", "1: its dispatcher has answered.",
      report.has_heard_ms_ago() ? 1 : 0);
  if (report.has_heard_ms_ago()) {
    one("penstock_worker_heard_ms_ago", "Since its dispatcher answered.",
        static_cast<uint64_t>(report.heard_ms_ago()));
  }
  one("penstock_worker_draining", "1: it gives its work to others.",
      report.is_draining() ? 1 : 0);
  one("penstock_worker_bundles_held", "Bundles that it holds.", report.held());
  one("penstock_worker_bundles_running", "Of them, being computed.",
      report.running());
  one("penstock_worker_bundles_computed_total", "Bundles since it started.",
      report.computed(), "counter");
  one("penstock_worker_frames_sent_total", "Frames since it started.",
      report.sent_frames(), "counter");
  one("penstock_worker_bytes_sent_total", "Bytes of frames since it started.",
      report.sent_bytes(), "counter");
  one("penstock_worker_output_bytes", "Of frames that somebody still holds.",
      static_cast<uint64_t>(report.output_bytes()));
  if (report.has_padding()) {
    one("penstock_worker_padding_items_total",
        "Of elements that were padded, their items.", report.padding().items(),
        "counter");
    one("penstock_worker_padding_padded_items_total",
        "The items of batches that were made of them.",
        report.padding().padded_items(), "counter");
    one("penstock_worker_padding_shapes", "Shapes of such batches.",
        report.padding().shapes());
  }
  if (report.has_shared()) AddShared(out, report.shared());
  BeginMetric(out, "penstock_worker_link_bytes_total",
              "Bytes of frames to a host, as they are.", "counter");
  for (const auto& link : report.links()) {
    AddMetric(out, "penstock_worker_link_bytes_total", link.bytes(),
              absl::StrCat("{", Label("host", link.host()), "}"));
  }
  BeginMetric(out, "penstock_worker_link_sent_bytes_total",
              "Bytes of frames to a host, as they travelled.", "counter");
  for (const auto& link : report.links()) {
    AddMetric(out, "penstock_worker_link_sent_bytes_total", link.sent_bytes(),
              absl::StrCat("{", Label("host", link.host()), ",",
                           Label("way", link.way()), "}"));
  }
  return out;
}

std::string JsonOf(const service::WorkerReport& report) {
  return ToJson(report);
}

}  // namespace penstock::windows
