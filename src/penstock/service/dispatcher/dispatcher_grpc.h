// A dispatcher that other machines can call: the server, its store, and the
// threads that keep it going.
#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/event_log.h"
#include "penstock/service/dispatcher/dispatcher.h"
#include "penstock/service/dispatcher/dispatcher_service.h"
#include "penstock/service/dispatcher/parked_beats.h"
#include "penstock/service/dispatcher/plan_bundle.h"
#include "penstock/service/rpc/gate.h"
#include "penstock/service/rpc/server.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::service {

// Thread-safe.
class DispatcherServer final {
 public:
  struct Options {
    std::string listen = "127.0.0.1:5050";  // port 0: one that is free
    rpc::ServerSecurity security;
    // Where it writes down what it must not forget; empty: in memory, and
    // forgotten when it ends.
    std::string state_dir;
    DispatcherState::Settings settings;
    std::string version;      // of the product, for people
    EventLog* log = nullptr;  // null: nothing is said
    size_t max_plan_bytes = kMaxPlanBundleBytes;
    bool has_reflection = false;
    // Called once, from any thread, if it cannot go on. Unset: says so on
    // standard error and ends the process.
    std::function<void(const absl::Status&)> on_failure;
  };

  // InvalidArgument if it must not or cannot listen there; otherwise what the
  // store says (store/sqlite_store.h).
  static absl::StatusOr<std::unique_ptr<DispatcherServer>> Start(
      Options options);
  ~DispatcherServer() { Stop(); }
  DispatcherServer(const DispatcherServer&) = delete;
  DispatcherServer& operator=(const DispatcherServer&) = delete;

  // Where it listens: "host:port", with the real port.
  const std::string& address() const { return address_; }
  // For windows.
  State Describe() const;
  size_t num_parked() const { return beats_.num_parked(); }

  // Calls that wait hear Unavailable, and others have a second to end.
  void Stop();

 private:
  explicit DispatcherServer(const Options& options);

  const Options options_;
  std::string address_;
  std::unique_ptr<store::MetaStore> store_;
  std::unique_ptr<rpc::Gate> gate_;
  ParkedBeats beats_;
  std::unique_ptr<DurableDispatcher> dispatcher_;  // it tells the beats
  std::unique_ptr<DispatcherService> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::service
