#include "penstock/service/worker/source_rows.h"

#include <memory>

#include "penstock/base/mutex.h"
#include "penstock/base/status.h"

namespace penstock::service {
namespace {

// Waits for a pull that is blocked.
class Bell final : public engine::Wakeable {
 public:
  void Wake() override {
    MutexLock lock(&mutex_);
    has_rung_ = true;
    rung_.SignalAll();
  }
  void Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!has_rung_) rung_.Wait(&mutex_);
    has_rung_ = false;
  }

 private:
  Mutex mutex_;
  CondVar rung_;
  bool has_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

plan::Plan SourceOf(const plan::Division& division) {
  plan::Plan source;
  for (int node = 0; node <= division.source; ++node) {
    *source.add_nodes() = division.remote.nodes(node);
  }
  return source;
}

absl::Status ForRows(
    const plan::Plan& rows, const ReadyPlan& plan,
    const engine::Environment& environment, engine::Instances& instances,
    const std::function<absl::Status(const Chunk& chunk)>& take) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto pipeline,
      engine::Pipeline::Build(rows, plan.defaults, plan.captures.get()));
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto iterator,
      engine::Iterator::Start(pipeline, environment, instances, /*epoch=*/0,
                              /*seed=*/1));
  auto bell = std::make_shared<Bell>();
  const engine::Waker waker = bell;
  while (true) {
    PENSTOCK_ASSIGN_OR_RETURN(const engine::Pull pull,
                              iterator->Next({engine::kMaxChunkRows, waker}));
    if (pull.is_end()) return absl::OkStatus();
    if (pull.is_blocked()) {
      bell->Await();
      continue;
    }
    if (!pull.chunk.errors.empty()) return pull.chunk.errors[0].status;
    PENSTOCK_RETURN_IF_ERROR(take(pull.chunk));
  }
}

}  // namespace penstock::service
