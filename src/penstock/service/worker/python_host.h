// Processes of this worker's that run the Python functions of plans.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/row_function.h"
#include "penstock/service/worker/code_rules.h"
#include "penstock/service/worker/scratch_folder.h"

namespace penstock::service {

// Each plan has processes of its own, so that the code of one never meets that
// of another. They are confined (pool/confinement.h), started when rows come,
// and ended when none have come for a while. Thread-safe; outlives what it
// opens.
class PythonHost final {
 public:
  struct Options {
    CodeRules rules;
    std::string interpreter;
    std::string version;        // that its package must have; empty: any
    int processes = 1;          // of a plan
    int64_t rows_bytes = 0;     // of a plan's rows on their way
    int64_t process_bytes = 0;  // of a process's own memory
  };

  explicit PythonHost(Options options) : options_(std::move(options)) {}

  // The functions of a plan; null if it has none. Refuses as CodeRules does,
  // and with FailedPrecondition if the interpreter is not fit for them.
  absl::StatusOr<std::shared_ptr<engine::RowFunctions>> Open(
      const PlanBundle& bundle) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes its folder away, of a worker that ends without its destructors.
  void LeaveNothing() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    scratch_.reset();
  }

  const CodeRules& rules() const { return options_.rules; }

 private:
  // What all plans need, once one of them does.
  absl::StatusOr<std::string> Prepare() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Mutex mutex_;
  std::unique_ptr<ScratchFolder> scratch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
