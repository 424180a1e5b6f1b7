// Rows of other jobs, for a bundle that may have to be computed again.
//
// Each pass is a run of its own at the other service, read in order, of the
// bundles that the epoch's manifest says: so whoever computes the outer bundle,
// and however often, has the same rows. Nothing is saved of it; a pass that its
// service has lost is begun anew, and goes on after the rows that were given.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/engine/receiver.h"
#include "penstock/plan.pb.h"
#include "penstock/service.pb.h"
#include "penstock/service/client/received_source.h"

namespace penstock::service {

// The other jobs that a plan reads: connections to them last as long as this,
// and are shared by all bundles of the plan. Thread-safe.
class ReceivedSources final {
 public:
  explicit ReceivedSources(ReceivedSource::Settings settings)
      : settings_(std::move(settings)) {}

  absl::StatusOr<ReceivedSource> Get(const plan::Distribution& distribution)
      ABSL_LOCKS_EXCLUDED(mutex_);
  const ReceivedSource::Settings& settings() const { return settings_; }

 private:
  const ReceivedSource::Settings settings_;
  Mutex mutex_;
  std::map<uint64_t, ReceivedSource> known_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class ReplayReceiver final : public engine::Receiver {
 public:
  struct Options {
    std::shared_ptr<ReceivedSources> sources;
    // As the epoch's manifest has them.
    std::vector<Manifest::Received> found;
    std::string name;  // which runs are called by, after their job's
    uint64_t random = 0;
    uint64_t budget_bytes = uint64_t{16} << 20;  // of one pass
    // Told what a person may want to know: of services, not of rows.
    std::function<void(std::string_view)> warn;
  };
  explicit ReplayReceiver(Options options) : options_(std::move(options)) {}

  engine::StreamOr Start(const plan::Received& spec, const engine::Scope& scope,
                         const engine::OpInfo& info) override;

 private:
  const Options options_;
  std::atomic<uint64_t> passes_{0};
};

// Finds out of how many bundles a job would be: opens it, and leaves. Waits for
// its service and its workers, as long as `is_wanted` says. FailedPrecondition,
// with its address and name, for what is wrong there.
absl::StatusOr<Manifest::Received> SurveyReceived(
    ReceivedSources& sources, const plan::Distribution& distribution,
    const std::string& name, uint64_t random,
    const std::function<bool()>& is_wanted);

}  // namespace penstock::service
