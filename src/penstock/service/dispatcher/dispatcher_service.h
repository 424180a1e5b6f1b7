// The dispatcher's calls, as gRPC makes them. Each is admitted by the gate
// first.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "penstock/base/event_log.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/service/dispatcher/beat_streams.h"
#include "penstock/service/dispatcher/dispatcher.h"
#include "penstock/service/dispatcher/parked_beats.h"
#include "penstock/service/rpc/gate.h"
#include "penstock/service/rpc/version.h"

namespace penstock::service {

// Thread-safe. All that it is given outlives its calls.
class DispatcherService final : public Dispatcher::CallbackService {
 public:
  DispatcherService(DurableDispatcher& dispatcher, ParkedBeats& beats,
                    rpc::Gate& gate, EventLog& log, std::string version,
                    size_t max_plan_bytes)
      : dispatcher_(dispatcher),
        beats_(beats),
        gate_(gate),
        log_(log),
        version_(std::move(version)),
        max_plan_bytes_(max_plan_bytes) {}

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* Hello(Context* context, const HelloRequest* request,
                                  HelloReply* reply) override;
  grpc::ServerReadReactor<Part>* AddPlan(Context* context,
                                         AddPlanReply* reply) override;
  grpc::ServerWriteReactor<Part>* GetPlan(
      Context* context, const GetPlanRequest* request) override;
  grpc::ServerUnaryReactor* Unregister(Context* context,
                                       const UnregisterRequest* request,
                                       UnregisterReply* reply) override;
  grpc::ServerUnaryReactor* Open(Context* context, const OpenRequest* request,
                                 OpenReply* reply) override;
  grpc::ServerBidiReactor<ClientBeat, ClientReply>* BeatClient(
      Context* context) override;
  grpc::ServerUnaryReactor* Release(Context* context,
                                    const ReleaseRequest* request,
                                    ReleaseReply* reply) override;
  grpc::ServerBidiReactor<WorkerBeat, WorkerReply>* BeatWorker(
      Context* context) override;
  grpc::ServerWriteReactor<Part>* GetManifest(
      Context* context, const GetManifestRequest* request) override;
  grpc::ServerUnaryReactor* GetState(Context* context,
                                     const GetStateRequest* request,
                                     State* state) override;
  grpc::ServerUnaryReactor* Drain(Context* context, const DrainRequest* request,
                                  DrainReply* reply) override;
  grpc::ServerUnaryReactor* Cancel(Context* context,
                                   const CancelRequest* request,
                                   CancelReply* reply) override;

 private:
  absl::Status Admit(Context* context, std::string_view call);
  absl::Status Admit(std::string_view authorization, const std::string& peer,
                     std::string_view call);
  template <typename Beat, typename Reply>
  grpc::ServerBidiReactor<Beat, Reply>* Beats(Context* context,
                                              const std::string& call,
                                              CheckBeat<Beat> check);
  // Whether the plan can be shared as the request wants it. Known plans are
  // not looked at again.
  absl::Status CheckShares(const OpenRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  DurableDispatcher& dispatcher_;
  ParkedBeats& beats_;
  rpc::Gate& gate_;
  EventLog& log_;
  const std::string version_;
  const size_t max_plan_bytes_;

  Mutex mutex_;
  // By plan and visitation.
  std::map<std::pair<std::string, int>, absl::Status> shares_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
