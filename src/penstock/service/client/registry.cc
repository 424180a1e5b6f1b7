#include "penstock/service/client/registry.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/relative_names.h"
#include "penstock/service/protocol/canonical.h"
#include "penstock/service/rpc/diagnose.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

constexpr size_t kPartBytes = 1 << 20;
constexpr std::chrono::seconds kPatience{15};

struct Connection {
  std::string address;
  rpc::Credentials credentials;
  std::unique_ptr<Dispatcher::Stub> stub;

  absl::Status Explain(const absl::Status& status) const {
    return rpc::DiagnoseDispatcher(status, address, credentials);
  }
};

absl::StatusOr<Connection> Connect(const plan::Distribution& service) {
  Connection made{service.address(), CredentialsOf(service), nullptr};
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::Channel> channel,
      rpc::MakeChannel(made.address, made.credentials, rpc::Carries::kBeats));
  made.stub = Dispatcher::NewStub(channel);
  return made;
}

absl::Status NotRegistered(const plan::Distribution& service,
                           const std::string& called) {
  return absl::NotFoundError(absl::StrCat(
      "no pipeline \"", called, "\" is registered at ", service.address(),
      "\n  `penstock registered ", service.address(), "` lists them."));
}

// What of this process the plan names: arrays, functions and their code.
absl::Status AddCaptures(const plan::Distribution& distribution,
                         engine::RowSources* sources, PlanBundle& bundle) {
  const auto copy = [&](const std::string& id,
                        std::string& into) -> absl::Status {
    if (sources == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("the array ", id, " is not here"));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const Buffer bytes, sources->Capture(id));
    into.assign(bytes.As<char>(), bytes.size());
    return absl::OkStatus();
  };
  std::vector<std::string> ids = plan::CapturesOf(distribution.plan());
  for (const plan::Distribution::PythonFunction& each :
       distribution.functions()) {
    const auto named = std::find(ids.begin(), ids.end(), each.function());
    if (named == ids.end()) continue;
    ids.erase(named);
    if (each.document().empty()) continue;  // it runs here
    PlanBundle::Capture* function = bundle.add_functions();
    function->set_id(each.function());
    PENSTOCK_RETURN_IF_ERROR(copy(each.document(), *function->mutable_bytes()));
  }
  for (const std::string& id : ids) {
    PlanBundle::Capture* capture = bundle.add_captures();
    capture->set_id(id);
    PENSTOCK_RETURN_IF_ERROR(copy(id, *capture->mutable_bytes()));
  }
  if (bundle.functions().empty() || !distribution.has_code()) {
    return absl::OkStatus();
  }
  PlanBundle::Code* code = bundle.mutable_code();
  code->set_sha256(distribution.code().sha256());
  *code->mutable_contents() = distribution.code().contents();
  return copy(distribution.code().archive(), *code->mutable_archive());
}

}  // namespace

rpc::Credentials CredentialsOf(const plan::Distribution& distribution) {
  return {distribution.ca_file(), distribution.cert_file(),
          distribution.key_file(), distribution.token_file()};
}

absl::StatusOr<PlanBundle> BundleOf(const plan::Distribution& distribution,
                                    const plan::Options& defaults,
                                    const std::string& directory,
                                    engine::RowSources* sources) {
  PlanBundle bundle;
  plan::Plan plan = distribution.plan();
  plan::DropCredentials(plan);
  bundle.set_plan(CanonicalBytes(plan));
  *bundle.mutable_defaults() = defaults;
  const plan::FindCapture find =
      [sources](const std::string& id) -> absl::StatusOr<Buffer> {
    if (sources == nullptr) return absl::NotFoundError("it is not here");
    return sources->Capture(id);
  };
  const std::string& kept = defaults.kept_directory();
  // Else it would tell equal pipelines of two directories apart.
  if (plan::MayOpenRelative(plan, find) ||
      (!kept.empty() && !absl::StartsWith(kept, "/"))) {
    bundle.set_directory(directory);
  }
  PENSTOCK_RETURN_IF_ERROR(AddCaptures(distribution, sources, bundle));
  return bundle;
}

absl::StatusOr<std::string> SendPlan(Dispatcher::Stub& dispatcher,
                                     grpc::ClientContext& context,
                                     const std::string& bytes, bool keep,
                                     const std::string& name) {
  AddPlanReply added;
  const auto writer = dispatcher.AddPlan(&context, &added);
  for (size_t at = 0; at < bytes.size(); at += kPartBytes) {
    Part part;
    part.set_bytes(bytes.substr(at, kPartBytes));
    part.set_keep(keep);
    part.set_name(name);
    if (!writer->Write(part)) break;  // Finish() says why
  }
  writer->WritesDone();
  PENSTOCK_RETURN_IF_ERROR(rpc::FromGrpc(writer->Finish()));
  return added.plan();
}

absl::StatusOr<std::string> RegisterPlan(const plan::Distribution& service,
                                         const PlanBundle& bundle,
                                         const std::string& name) {
  PENSTOCK_ASSIGN_OR_RETURN(const Connection connection, Connect(service));
  grpc::ClientContext context;
  rpc::Prepare(context, connection.credentials, kPatience);
  absl::StatusOr<std::string> id =
      SendPlan(*connection.stub, context, bundle.SerializeAsString(),
               /*keep=*/true, name);
  if (!id.ok()) return connection.Explain(id.status());
  return id;
}

absl::StatusOr<RegisteredPlan> FetchRegistered(
    const plan::Distribution& service, const std::string& called) {
  PENSTOCK_ASSIGN_OR_RETURN(const Connection connection, Connect(service));
  grpc::ClientContext context;
  rpc::Prepare(context, connection.credentials, kPatience);
  GetPlanRequest request;
  request.set_plan(called);
  const auto parts = connection.stub->GetPlan(&context, request);
  RegisteredPlan found;
  std::string bytes;
  Part part;
  while (parts->Read(&part)) {
    if (bytes.empty()) found.id = part.plan();
    bytes += part.bytes();
  }
  const absl::Status status = rpc::FromGrpc(parts->Finish());
  if (absl::IsNotFound(status)) return NotRegistered(service, called);
  if (!status.ok()) return connection.Explain(status);
  if (found.id.empty() || !found.bundle.ParseFromString(bytes)) {
    return absl::DataLossError(
        absl::StrCat("expected a pipeline of the dispatcher at ",
                     service.address(), "; got bytes that are none"));
  }
  return found;
}

absl::Status UnregisterPlan(const plan::Distribution& service,
                            const std::string& called) {
  PENSTOCK_ASSIGN_OR_RETURN(const Connection connection, Connect(service));
  grpc::ClientContext context;
  rpc::Prepare(context, connection.credentials, kPatience);
  UnregisterRequest request;
  request.set_plan(called);
  UnregisterReply reply;
  const absl::Status status =
      rpc::FromGrpc(connection.stub->Unregister(&context, request, &reply));
  if (absl::IsNotFound(status)) return NotRegistered(service, called);
  return status.ok() ? status : connection.Explain(status);
}

}  // namespace penstock::service
