// Pipelines that this worker runs shares of, by their id.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/data/buffer.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/row_source.h"
#include "penstock/plan/divide.h"
#include "penstock/service/client/replay_receiver.h"
#include "penstock/service/worker/python_host.h"
#include "penstock/service/worker/service_rules.h"
#include "penstock/service/worker/work_ledger.h"

namespace penstock::service {

// Arrays that came with a plan. Generators stay in the trainer's process, and
// are refused.
class CapturedRows final : public engine::RowSources {
 public:
  explicit CapturedRows(std::map<std::string, Buffer> arrays)
      : arrays_(std::move(arrays)) {}

  absl::StatusOr<std::unique_ptr<engine::RowSource>> Open(
      const std::string& capture, const Chunk& args) override;
  absl::StatusOr<Buffer> Capture(const std::string& id) override;

 private:
  const std::map<std::string, Buffer> arrays_;
};

// A plan, divided and built. Constant.
struct ReadyPlan {
  plan::Division division;
  // Of division.remote.
  std::shared_ptr<const engine::Pipeline> pipeline;
  plan::Options defaults;
  std::unique_ptr<CapturedRows> captures;
  // Of the user's Python; null: it has none.
  std::shared_ptr<engine::RowFunctions> functions;
  std::string directory;  // where relative names start from
  std::vector<WorkPlace> places;
  // A word for what is kept in shares, but for the files that it is made of;
  // 0: nothing is.
  uint64_t kept_by = 0;
  std::string kept_in;  // Cache.filename
  // What it reads of other jobs; null: nothing.
  std::shared_ptr<ReceivedSources> received;
};
using PlanPtr = std::shared_ptr<const ReadyPlan>;

// What a PlanBundle's bytes say. Trusts nothing in them: InvalidArgument,
// located, for a plan that is not valid or cannot be divided, DataLoss for
// bytes that are no PlanBundle. Its Python functions are run by `python`, which
// may refuse them; null: all are refused. Other jobs are read as `services`
// allows it.
absl::StatusOr<PlanPtr> MakeReadyPlan(const std::string& bundle,
                                      PythonHost* python = nullptr,
                                      const ServiceRules& services = {});

// Keeps the plans that were used last. What is still used elsewhere lives on
// there. Thread-safe.
class PlanStore final {
 public:
  // Gets a PlanBundle's bytes by the plan's id; may wait.
  using Fetch =
      std::function<absl::StatusOr<std::string>(const std::string& plan)>;

  explicit PlanStore(Fetch fetch, size_t max_plans = 16,
                     PythonHost* python = nullptr, ServiceRules services = {})
      : fetch_(std::move(fetch)),
        max_plans_(max_plans),
        python_(python),
        services_(std::move(services)) {}

  // Waits until it is here. A plan is fetched once, however many ask for it;
  // a failure is forgotten, and the next one who asks tries again.
  absl::StatusOr<PlanPtr> Get(const std::string& plan)
      ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    PlanPtr plan;  // null: being fetched
    uint64_t used = 0;
  };
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Fetch fetch_;
  const size_t max_plans_;
  PythonHost* const python_;
  const ServiceRules services_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Entry> plans_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::service
