#include "penstock/service/client/service_link.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/rpc/status.h"
#include "penstock/service/rpc/version.h"

namespace penstock::service {
namespace {

constexpr size_t kPartBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::shared_ptr<ServiceLink>> ServiceLink::Make(
    const std::string& dispatcher, const rpc::Credentials& credentials,
    PlanBundle plan) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                            rpc::MakeChannel(dispatcher, credentials));
  return std::shared_ptr<ServiceLink>(
      new ServiceLink(dispatcher, credentials, std::move(plan), channel));
}

ServiceLink::ServiceLink(const std::string& address,
                         const rpc::Credentials& credentials, PlanBundle plan,
                         const std::shared_ptr<grpc::Channel>& channel)
    : address_(address),
      credentials_(credentials),
      plan_bytes_(plan.SerializeAsString()),
      stub_(Dispatcher::NewStub(channel)) {}

absl::StatusOr<std::string> ServiceLink::Register(grpc::ClientContext& hello,
                                                  grpc::ClientContext& add,
                                                  bool is_forgotten) {
  {
    MutexLock lock(&mutex_);
    if (!plan_id_.empty() && !is_forgotten) return plan_id_;
  }
  HelloRequest request;
  request.set_major(rpc::kMajorVersion);
  request.set_minor(rpc::kMinorVersion);
  HelloReply answer;
  PENSTOCK_RETURN_IF_ERROR(
      rpc::FromGrpc(stub_->Hello(&hello, request, &answer)));
  if (answer.major() != rpc::kMajorVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the dispatcher at ", address_, " must speak version ",
        rpc::kMajorVersion, " of the protocol; got version ", answer.major(),
        " (penstock ", answer.version(), ")\n  Use the same release on both."));
  }
  AddPlanReply added;
  const auto writer = stub_->AddPlan(&add, &added);
  for (size_t at = 0; at < plan_bytes_.size(); at += kPartBytes) {
    Part part;
    part.set_bytes(plan_bytes_.substr(at, kPartBytes));
    if (!writer->Write(part)) break;  // Finish() says why
  }
  writer->WritesDone();
  PENSTOCK_RETURN_IF_ERROR(rpc::FromGrpc(writer->Finish()));
  MutexLock lock(&mutex_);
  plan_id_ = added.plan();
  return plan_id_;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ServiceLink::Worker(
    const std::string& address) {
  MutexLock lock(&mutex_);
  std::shared_ptr<grpc::Channel>& channel = workers_[address];
  if (channel == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(channel, rpc::MakeChannel(address, credentials_));
  }
  return channel;
}

std::shared_ptr<WorkerMemory> ServiceLink::MemoryOf(
    const std::string& address) {
  MutexLock lock(&mutex_);
  const auto it = memories_.find(address);
  return it == memories_.end() ? nullptr : it->second.memory;
}

bool ServiceLink::ForgetMemory(const std::string& address) {
  MutexLock lock(&mutex_);
  const auto it = memories_.find(address);
  if (it == memories_.end() || it->second.memory == nullptr) return false;
  memories_.erase(it);
  return true;
}

void ServiceLink::OnSocket(const std::string& address,
                           const std::string& socket) {
  // So that the way over the network can be measured on one host.
  if (std::getenv("PENSTOCK_NO_LOCAL_MEMORY") != nullptr) return;
  {
    MutexLock lock(&mutex_);
    Memory& known = memories_[address];
    if (known.socket == socket) return;
    known = {socket, nullptr};
  }
  absl::StatusOr<std::shared_ptr<WorkerMemory>> memory =
      WorkerMemory::Connect(socket);
  if (!memory.ok()) return;
  MutexLock lock(&mutex_);
  memories_[address].memory = *std::move(memory);
}

}  // namespace penstock::service
