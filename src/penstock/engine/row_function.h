// Functions that somebody else runs: the engine's door to the user's Python.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/data/chunk.h"

namespace penstock::engine {

// Rows on their way through a function. Dropping it drops the result.
class PendingRows {
 public:
  virtual ~PendingRows() = default;
  virtual bool is_done() const = 0;
  // What came out; a Status is no row's error but the end of the run.
  // REQUIRES: is_done(); asked once.
  virtual absl::StatusOr<Chunk> Take() = 0;
  // Time that the function itself took. REQUIRES: is_done().
  virtual int64_t nanos() const = 0;
};

// Thread-safe.
class RowFunctions {
 public:
  struct Settings {
    std::string capture;         // names the function
    int64_t deadline_nanos = 0;  // of one row; 0: none
    int64_t memory_bytes = 0;    // of one process; 0: any
    int64_t processes = 0;       // at most; 0: as many as it likes
    // Of calls with the same `caller`, so many run at once at most; 0: any.
    uint64_t caller = 0;
    int64_t at_once = 0;
    // Of what a function gives for one row that are several; 0: any.
    int64_t max_element_bytes = 0;
  };

  virtual ~RowFunctions() = default;

  // Calls the function with each row of `input` but those that are errors.
  // The result has as many rows: error rows stay, and rows for which it fails
  // become errors. `done` is called once, from any thread, when it is there; it
  // may be called before this returns, and must not wait.
  virtual std::shared_ptr<PendingRows> Call(const Settings& settings,
                                            Chunk input,
                                            std::function<void()> done) = 0;
  // Calls that can run at once.
  virtual int64_t parallelism() const = 0;
};

}  // namespace penstock::engine
