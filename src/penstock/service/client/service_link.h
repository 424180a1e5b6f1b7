// A reader's way to one dispatcher and to the workers that it names.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/service/client/worker_memory.h"
#include "penstock/service/client/worker_socket.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {

// Connections that last. Thread-safe.
class ServiceLink final : public std::enable_shared_from_this<ServiceLink> {
 public:
  // What is read: one that the reader brings, or one that the service has.
  struct Pipeline {
    std::string bundle;      // a serialized PlanBundle
    std::string registered;  // its id; then there is no bundle
  };
  static absl::StatusOr<std::shared_ptr<ServiceLink>> Make(
      const std::string& dispatcher, const rpc::Credentials& credentials,
      Pipeline pipeline, std::shared_ptr<FrameMemory> frames);

  const std::string& address() const { return address_; }
  const rpc::Credentials& credentials() const { return credentials_; }
  Dispatcher::Stub& dispatcher() { return *stub_; }

  // Says hello and registers the plan; gives its id. What was done once is not
  // done again, unless `is_forgotten`.
  absl::StatusOr<std::string> Register(grpc::ClientContext& hello,
                                       grpc::ClientContext& add,
                                       bool is_forgotten)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Why the dispatcher could not be called, in words that say what to do. May
  // take some seconds. An error that waiting does not mend is none that is
  // worth another try.
  absl::Status Explain(const absl::Status& status) const;

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Worker(
      const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  // Something has come from it.
  void OnWorkerAnswer(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasAnswered(const std::string& address) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // It could not be read from. Unless something has come from it before, looks
  // once why, in a thread of its own, and calls `told` with the reason, and
  // whether it stops all reading: waiting does not mend it, and no other worker
  // has answered.
  void OnWorkerBroken(const std::string& address, const absl::Status& status,
                      std::function<void(const absl::Status&, bool)> told)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The worker's memory, if it is at hand here; null if it is not.
  std::shared_ptr<WorkerMemory> MemoryOf(const std::string& address)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // That one could not be read through: the worker may be another by now, at
  // the same address. The next reading finds out.
  void Forget(const std::string& address,
              const std::shared_ptr<WorkerMemory>& memory)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Connects to the worker's frame socket, which has this port (0: it has
  // none), unless it is connected, or was not able to lately, or its other
  // connections are encrypted.
  void OnFramePort(const std::string& address, uint32_t port)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // That connection. Waits for it for 0.2 s from its beginning; null if there
  // is none.
  std::shared_ptr<WorkerSocket> SocketOf(const std::string& address)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The worker does not know that one: it is not used for a while.
  void Forget(const std::string& address,
              const std::shared_ptr<WorkerSocket>& socket)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A worker has said where its socket is.
  void OnSocket(const std::string& address, const std::string& socket)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ServiceLink(const std::string& address, const rpc::Credentials& credentials,
              Pipeline pipeline, std::shared_ptr<FrameMemory> frames,
              const std::shared_ptr<grpc::Channel>& channel);

  const std::string address_;
  const rpc::Credentials credentials_;
  const Pipeline pipeline_;
  const std::shared_ptr<FrameMemory> frames_;  // the trainer's, or null
  const std::unique_ptr<Dispatcher::Stub> stub_;

  mutable Mutex mutex_;
  std::string plan_id_ ABSL_GUARDED_BY(mutex_);
  struct WorkerLink {
    std::shared_ptr<grpc::Channel> channel;
    bool has_answered = false;
    bool is_looked_at = false;
  };
  std::map<std::string, WorkerLink> workers_ ABSL_GUARDED_BY(mutex_);
  bool has_worker_answered_ ABSL_GUARDED_BY(mutex_) = false;  // any
  struct Memory {
    std::string socket;
    std::shared_ptr<WorkerMemory> memory;  // null: not at hand
  };
  std::map<std::string, Memory> memories_ ABSL_GUARDED_BY(mutex_);
  struct Socket {
    uint32_t port = 0;
    int64_t begun_ns = 0;  // when it was last tried
    bool is_connecting = false;
    std::shared_ptr<WorkerSocket> socket;  // null: not yet, or nobody answers
  };
  std::map<std::string, Socket> sockets_ ABSL_GUARDED_BY(mutex_);
  CondVar connected_;  // or not, but no more trying
};

}  // namespace penstock::service
