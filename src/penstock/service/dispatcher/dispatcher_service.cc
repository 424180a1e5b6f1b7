#include "penstock/service/dispatcher/dispatcher_service.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/dispatcher/part_streams.h"
#include "penstock/service/dispatcher/plan_bundle.h"
#include "penstock/service/dispatcher/records.h"
#include "penstock/service/rpc/server.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

constexpr size_t kMaxKnownShares = 1'000;

grpc::ServerUnaryReactor* End(grpc::CallbackServerContext* context,
                              const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

// What the dispatcher calls when it has an answer.
template <typename Reply>
auto Into(grpc::ServerUnaryReactor* reactor, Reply* reply) {
  return [reactor, reply](const absl::StatusOr<Reply>& answer) {
    if (answer.ok()) *reply = *answer;
    reactor->Finish(rpc::ToGrpc(answer.status()));
  };
}
auto Into(grpc::ServerUnaryReactor* reactor) {
  return [reactor](const absl::StatusOr<bool>& answer) {
    reactor->Finish(rpc::ToGrpc(answer.status()));
  };
}

}  // namespace

absl::Status DispatcherService::Admit(Context* context, std::string_view call) {
  return Admit(rpc::Gate::AuthorizationOf(*context), context->peer(), call);
}

absl::Status DispatcherService::Admit(std::string_view authorization,
                                      const std::string& peer,
                                      std::string_view call) {
  const std::string method =
      absl::StrCat("/penstock.service.Dispatcher/", std::string(call));
  const absl::Status status = gate_.Admit(authorization, method);
  if (!status.ok()) {
    log_.Write("call_refused",
               {{"peer", peer},
                {"method", method},
                {"code", absl::StatusCodeToString(status.code())}});
  }
  return status;
}

grpc::ServerUnaryReactor* DispatcherService::Hello(Context* context,
                                                   const HelloRequest* request,
                                                   HelloReply* reply) {
  if (const absl::Status status = Admit(context, "Hello"); !status.ok()) {
    return End(context, status);
  }
  reply->set_major(rpc::kMajorVersion);
  reply->set_minor(rpc::kMinorVersion);
  reply->set_version(version_);
  reply->set_term(dispatcher_.term());
  if (request->major() == rpc::kMajorVersion) {
    return End(context, absl::OkStatus());
  }
  return End(context,
             absl::FailedPreconditionError(absl::StrCat(
                 "the dispatcher is penstock ", version_, " (protocol ",
                 rpc::kMajorVersion, "), the caller ", request->version(),
                 " (protocol ", request->major(),
                 "): they cannot talk\n  Install the same version of both.")));
}

grpc::ServerReadReactor<Part>* DispatcherService::AddPlan(Context* context,
                                                          AddPlanReply* reply) {
  if (const absl::Status status = Admit(context, "AddPlan"); !status.ok()) {
    return RefuseParts(status);
  }
  return ReceiveParts(
      max_plan_bytes_, [this, reply](const std::string& bytes,
                                     const Part& first, const Finish& finish) {
        const std::string id = PlanIdOf(bytes);
        // One that is known was valid.
        if (!dispatcher_.FindPlan(id).ok()) {
          const absl::Status status = ValidatePlanBundle(bytes);
          if (!status.ok()) return finish(status);
        }
        reply->set_plan(id);
        dispatcher_.AddPlan(id, bytes, first.keep(), first.name(),
                            [finish](const absl::StatusOr<bool>& added) {
                              finish(added.status());
                            });
      });
}

grpc::ServerWriteReactor<Part>* DispatcherService::GetPlan(
    Context* context, const GetPlanRequest* request) {
  if (const absl::Status status = Admit(context, "GetPlan"); !status.ok()) {
    return SendParts(status);
  }
  const std::string id = dispatcher_.PlanOf(request->plan());
  return SendParts(dispatcher_.FindPlan(id), id);
}

grpc::ServerUnaryReactor* DispatcherService::Unregister(
    Context* context, const UnregisterRequest* request, UnregisterReply*) {
  if (const absl::Status status = Admit(context, "Unregister"); !status.ok()) {
    return End(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  dispatcher_.Unregister(request->plan(), Into(reactor));
  return reactor;
}

grpc::ServerWriteReactor<Part>* DispatcherService::GetManifest(
    Context* context, const GetManifestRequest* request) {
  if (const absl::Status status = Admit(context, "GetManifest"); !status.ok()) {
    return SendParts(status);
  }
  const auto manifest = dispatcher_.FindManifest(request->manifest());
  if (!manifest.ok()) return SendParts(manifest.status());
  return SendParts(std::make_shared<const std::string>(Bytes(*manifest)));
}

absl::Status DispatcherService::CheckShares(const OpenRequest& request) {
  const std::pair<std::string, int> key(request.plan(), request.visitation());
  {
    MutexLock lock(&mutex_);
    const auto it = shares_.find(key);
    if (it != shares_.end()) return it->second;
  }
  const auto plan = dispatcher_.FindPlan(request.plan());
  if (!plan.ok()) return plan.status();
  const absl::Status status = ValidateShares(**plan, request.visitation());
  MutexLock lock(&mutex_);
  if (shares_.size() >= kMaxKnownShares) shares_.clear();
  shares_[key] = status;
  return status;
}

grpc::ServerUnaryReactor* DispatcherService::Open(Context* context,
                                                  const OpenRequest* request,
                                                  OpenReply* reply) {
  if (const absl::Status status = Admit(context, "Open"); !status.ok()) {
    return End(context, status);
  }
  if (request->visitation() == VISITATION_UNSPECIFIED ||
      !Visitation_IsValid(request->visitation())) {
    return End(context,
               absl::InvalidArgumentError("expected a visitation; got none"));
  }
  if (const absl::Status status = CheckShares(*request); !status.ok()) {
    return End(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (request->has_group()) {
    OpenRequest ours = *request;
    ours.mutable_group()->set_tenant(gate_.TenantOf(*context));
    dispatcher_.Open(ours, Into(reactor, reply));
    return reactor;
  }
  dispatcher_.Open(*request, Into(reactor, reply));
  return reactor;
}

// Words may lose their force while a stream lasts: each beat is a call of its
// own to the gate.
template <typename Beat, typename Reply>
grpc::ServerBidiReactor<Beat, Reply>* DispatcherService::Beats(
    Context* context, const std::string& call, CheckBeat<Beat> check) {
  if (const absl::Status status = Admit(context, call); !status.ok()) {
    return new RefusedBeats<Beat, Reply>(status);
  }
  return ReceiveBeats(
      beats_,
      [this, call, check = std::move(check), peer = context->peer(),
       authorization = std::string(rpc::Gate::AuthorizationOf(*context))](
          const Beat& beat) -> absl::Status {
        PENSTOCK_RETURN_IF_ERROR(Admit(authorization, peer, call));
        return check(beat);
      });
}

grpc::ServerBidiReactor<ClientBeat, ClientReply>* DispatcherService::BeatClient(
    Context* context) {
  return Beats<ClientBeat, ClientReply>(
      context, "BeatClient", [](const ClientBeat& beat) {
        if (beat.ByteSizeLong() <= static_cast<size_t>(rpc::kMaxControlBytes)) {
          return absl::OkStatus();
        }
        return absl::ResourceExhaustedError(
            absl::StrCat("expected a beat of at most ", rpc::kMaxControlBytes,
                         " bytes; got ", beat.ByteSizeLong()));
      });
}

grpc::ServerBidiReactor<WorkerBeat, WorkerReply>* DispatcherService::BeatWorker(
    Context* context) {
  return Beats<WorkerBeat, WorkerReply>(
      context, "BeatWorker", [](const WorkerBeat& beat) {
        if (beat.worker() != 0 && !beat.address().empty()) {
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError(
            "expected a worker's number and its address");
      });
}

grpc::ServerUnaryReactor* DispatcherService::Release(
    Context* context, const ReleaseRequest* request, ReleaseReply* reply) {
  if (const absl::Status status = Admit(context, "Release"); !status.ok()) {
    return End(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  dispatcher_.Release(*request, Into(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* DispatcherService::GetState(Context* context,
                                                      const GetStateRequest*,
                                                      State* state) {
  const absl::Status status = Admit(context, "GetState");
  if (status.ok()) {
    *state = dispatcher_.Describe();
    state->set_version(version_);
  }
  return End(context, status);
}

grpc::ServerUnaryReactor* DispatcherService::Drain(Context* context,
                                                   const DrainRequest* request,
                                                   DrainReply*) {
  absl::Status status = Admit(context, "Drain");
  if (status.ok()) status = dispatcher_.Drain(request->address());
  return End(context, status);
}

grpc::ServerUnaryReactor* DispatcherService::Cancel(
    Context* context, const CancelRequest* request, CancelReply*) {
  if (const absl::Status status = Admit(context, "Cancel"); !status.ok()) {
    return End(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  dispatcher_.Cancel(request->job(), Into(reactor));
  return reactor;
}

}  // namespace penstock::service
