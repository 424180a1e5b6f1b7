// A Python process that runs functions of the user's.
//
// Messages are a fixed struct each way over a socket; rows travel in memory
// that both sides have mapped. Descriptors go along with the messages that name
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"
#include "penstock/data/arena.h"
#include "penstock/pool/confinement.h"

namespace penstock::pool {

// How to start one.
struct PythonCommand {
  std::string interpreter;
  std::vector<std::string> path;  // sys.path of the trainer
  std::string directory;          // its working directory
  // The trainer's standard output and error: what functions print goes there.
  int stdout_fd = -1;
  int stderr_fd = -1;
  // Set: it runs code of others, instead of `path` and `directory`.
  std::optional<Confinement> confinement;
};

// To the process.
struct ToWorker {
  enum Kind : uint32_t {
    kSegment = 1,   // with a descriptor: memory number `segment`, `in_bytes`
    kFunction = 2,  // with a descriptor: function `function`, `in_bytes`
    kForget = 3,    // function `function`
    kCall = 4,
  };
  uint32_t kind = 0;
  uint32_t segment = 0;
  uint64_t function = 0;
  uint64_t call = 0;
  uint64_t in_offset = 0;
  uint64_t in_bytes = 0;
  uint32_t out_segment = 0;
  uint32_t zero = 0;
  uint64_t out_offset = 0;
  uint64_t out_bytes = 0;  // room there
  // Of the rows that the function gives for one element; 0: any.
  uint64_t max_element_bytes = 0;
};
static_assert(sizeof(ToWorker) == 72);

// From the process.
struct FromWorker {
  enum Kind : uint32_t {
    kReady = 1,
    kDone = 2,     // the result is where there was room for it
    kDoneOwn = 3,  // it is in the descriptor that comes along
    kFailed = 4,   // the call as a whole; `bytes` of text follow
  };
  uint32_t kind = 0;
  uint32_t zero = 0;
  uint64_t call = 0;
  uint64_t bytes = 0;
  uint64_t nanos = 0;         // in the function
  uint64_t memory_bytes = 0;  // that the process holds now
  uint64_t cpu_nanos = 0;     // of the process since it began
  uint64_t unused[2] = {};
};
static_assert(sizeof(FromWorker) == 64);

// What the process is at: written by it, read at any time. One page.
struct Progress {
  uint64_t call;
  uint64_t row;  // being computed
};

// Ends with this object, by force. One thread at a time.
class WorkerProcess final {
 public:
  static absl::StatusOr<WorkerProcess> Start(const PythonCommand& command);
  WorkerProcess(WorkerProcess&&) = default;
  WorkerProcess& operator=(WorkerProcess&&) = default;
  ~WorkerProcess();

  int fd() const { return socket_.get(); }
  pid_t pid() const { return pid_.value; }

  // What it writes may be meant to do harm.
  bool is_confined() const { return !directory_.empty(); }

  // Cancelled if it is gone.
  absl::Status Send(const ToWorker& message, int fd_to_send = -1);
  absl::Status Receive(FromWorker& message, std::vector<Descriptor>& fds,
                       std::string& text);

  Progress progress() const;

  // Ends it if it has not ended, and says how it did: "was killed by SIGKILL",
  // "ended with exit code 1". One that `has_hung_up` gets a moment to do it by
  // itself.
  std::string End(bool has_hung_up = false);

 private:
  WorkerProcess() = default;

  // Moves as a descriptor does.
  struct Pid {
    Pid() = default;
    Pid(Pid&& other) noexcept : value(other.value) { other.value = 0; }
    Pid& operator=(Pid&& other) noexcept {
      std::swap(value, other.value);
      return *this;
    }
    pid_t value = 0;
  };

  Descriptor socket_;
  Pid pid_;
  std::string directory_;  // of a confined one; it goes with it
  std::shared_ptr<Progress> progress_;
};

}  // namespace penstock::pool
