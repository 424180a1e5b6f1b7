#include "penstock/service/worker/documents.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr std::chrono::milliseconds kDeadline{30'000};

absl::StatusOr<std::string> ReadParts(
    grpc::ClientContext& context,
    std::unique_ptr<grpc::ClientReaderInterface<Part>> parts) {
  std::string bytes;
  Part part;
  while (parts->Read(&part)) {
    bytes.append(part.bytes());
    if (bytes.size() > kMaxBytes) {
      context.TryCancel();
      while (parts->Read(&part)) {
      }
      parts->Finish();
      return absl::DataLossError(
          absl::StrCat("the dispatcher's document must have at most ",
                       kMaxBytes, " bytes; got more"));
    }
  }
  PENSTOCK_RETURN_IF_ERROR(rpc::FromGrpc(parts->Finish()));
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> FetchPlan(Dispatcher::StubInterface& dispatcher,
                                      const rpc::Credentials& credentials,
                                      const std::string& plan) {
  grpc::ClientContext context;
  rpc::Prepare(context, credentials, kDeadline);
  GetPlanRequest request;
  request.set_plan(plan);
  return ReadParts(context, dispatcher.GetPlan(&context, request));
}

absl::StatusOr<std::string> FetchManifest(Dispatcher::StubInterface& dispatcher,
                                          const rpc::Credentials& credentials,
                                          uint64_t manifest) {
  grpc::ClientContext context;
  rpc::Prepare(context, credentials, kDeadline);
  GetManifestRequest request;
  request.set_manifest(manifest);
  return ReadParts(context, dispatcher.GetManifest(&context, request));
}

}  // namespace penstock::service
