// What a worker says of itself.
#include "penstock/base/clock.h"
#include "penstock/service/worker/worker_server.h"

namespace penstock::service {

absl::Status WorkerServer::refusal() const {
  MutexLock lock(&mutex_);
  return refusal_;
}

bool WorkerServer::is_draining() const {
  MutexLock lock(&mutex_);
  return is_draining_;
}

WorkerServer::Counters WorkerServer::counters() const {
  Counters counters;
  counters.sent_frames = reads_.sent_frames.load();
  counters.sent_bytes = reads_.sent_bytes.load();
  counters.output_bytes = output_->used_bytes();
  counters.running = productions_->num_running();
  counters.computed = productions_->Report().computed();
  MutexLock lock(&mutex_);
  counters.held = runs_.size();
  counters.computed += computed_;
  for (const auto& [key, held] : runs_) {
    if (held.own != nullptr && held.is_started && !held.is_computed) {
      ++counters.running;
    }
  }
  return counters;
}

WorkerReport WorkerServer::Report() const {
  const Counters counted = counters();
  WorkerReport report;
  report.set_version(options_.version);
  report.set_address(address_);
  report.set_dispatcher(options_.dispatcher);
  report.set_held(counted.held);
  report.set_running(counted.running);
  report.set_computed(counted.computed);
  report.set_sent_frames(counted.sent_frames);
  report.set_socket_frames(reads_.socket_frames.load());
  report.set_sent_bytes(counted.sent_bytes);
  report.set_output_bytes(counted.output_bytes);
  const engine::PaddingStats::Counts padding = padding_->Get();
  if (padding.batches > 0) {
    Padding* out = report.mutable_padding();
    out->set_batches(padding.batches);
    out->set_items(padding.items);
    out->set_padded_items(padding.padded_items);
    out->set_shapes(padding.shapes);
  }
  for (const std::string& tag : options_.tags) report.add_tags(tag);
  for (const std::string& path : options_.allowed) report.add_allowed(path);
  for (const std::string& each : options_.code.accepted()) {
    report.add_accepted_code(each);
  }
  report.set_accepts_pickles(options_.code.accepts_pickles());
  for (const auto& link : reads_.links.Describe()) *report.add_links() = link;
  *report.mutable_shared() = productions_->Report();
  MutexLock lock(&mutex_);
  report.set_is_draining(is_draining_);
  if (heard_ns_ != 0) {
    report.set_heard_ms_ago((SteadyClock().NowNanos() - heard_ns_) / 1'000'000);
  }
  return report;
}

}  // namespace penstock::service
