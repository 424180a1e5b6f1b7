// Processes that run the user's Python functions, and who runs what.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/data/arena.h"
#include "penstock/engine/row_function.h"
#include "penstock/pool/python_times.h"
#include "penstock/pool/worker_process.h"

namespace penstock::pool {

class PoolCall;
class Supervisor;

// Thread-safe. Starts no process before the first call; then as many as
// `processes`, kept until the pool ends.
//
// A process that ends in the middle of a row is replaced, and its rows are
// given to another; a row in which a second process ends is an error. A row
// past its deadline is one at once. What a call was given and what came of it
// lie in shared memory, bounded by `memory_bytes`; of a confined process, what
// came of it is copied before anybody looks at it.
class PythonPool final : public engine::RowFunctions {
 public:
  struct Options {
    int processes = 1;
    size_t memory_bytes = 0;
    // Whether a call may ask for more processes than these.
    bool may_grow = true;
    // A process that has nothing to do for so long is ended; 0: none is.
    int64_t idle_nanos = 0;
  };

  explicit PythonPool(const Options& options);
  // Waits for the processes to end, unless a call's own `done` has dropped it.
  ~PythonPool() override;

  // Function `id`: `bytes` of `memory`, as python/penstock/_pool_worker.py
  // reads them. The command replaces the last one for processes not yet
  // started.
  void AddFunction(const std::string& id, Descriptor memory, uint64_t bytes,
                   PythonCommand command, std::vector<Descriptor> outputs);
  void DropFunction(const std::string& id);

  std::shared_ptr<engine::PendingRows> Call(
      const Settings& settings, Chunk input,
      std::function<void()> done) override;
  int64_t parallelism() const override { return processes_; }

  // Since the pool was made.
  PythonTimes times() const;

 private:
  const int processes_;
  std::shared_ptr<Supervisor> supervisor_;
};

}  // namespace penstock::pool
