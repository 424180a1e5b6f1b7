// What a worker reads of other jobs (docs/design/0030).
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/service/client/replay_receiver.h"
#include "penstock/service/worker/worker_server.h"

namespace penstock::service {
namespace {

// Of another job's rows on their way to one bundle.
constexpr int64_t kMinReceivedBytes = int64_t{2} << 20;
constexpr int64_t kMaxReceivedBytes = int64_t{64} << 20;

}  // namespace

uint64_t WorkerServer::NewWord() {
  uint64_t word = 0;
  while (getrandom(&word, sizeof(word), 0) != sizeof(word)) {
  }
  return word | 1;  // 0 means none
}

std::shared_ptr<engine::Receiver> WorkerServer::MakeReceiver(
    const Lease& lease, const Manifest& manifest,
    const std::shared_ptr<ReceivedSources>& sources) const {
  ReplayReceiver::Options options;
  options.sources = sources;
  options.found = {manifest.received().begin(), manifest.received().end()};
  options.random = NewWord();
  // Of which job it is a part, and a word that nobody else has.
  options.name = absl::StrCat(absl::Hex(lease.epoch().run()), ".",
                              lease.bundle(), ".", absl::Hex(options.random));
  options.budget_bytes = static_cast<uint64_t>(std::clamp(
      options_.memory_bytes / 256, kMinReceivedBytes, kMaxReceivedBytes));
  options.warn = [log = &log_](std::string_view why) {
    log->Write("other_job", {{"why", std::string(why)}});
  };
  return std::make_shared<ReplayReceiver>(std::move(options));
}

absl::StatusOr<Manifest::Received> WorkerServer::SurveyInner(
    const Lease& lease, const ReadyPlan& plan,
    const plan::Distribution& inner) {
  {
    // What it waits for may be for this worker to find out.
    MutexLock lock(&mutex_);
    state_->OnStalled(lease, true);
    StartNext();
  }
  const uint64_t word = NewWord();
  return SurveyReceived(
      *plan.received, inner,
      absl::StrCat(absl::Hex(lease.epoch().run()), ".survey.", absl::Hex(word)),
      word, [&] {
        MutexLock lock(&mutex_);
        return !is_ending_ &&
               state_->Find(lease.epoch(), lease.bundle()) != nullptr;
      });
}

}  // namespace penstock::service
