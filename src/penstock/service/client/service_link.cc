#include "penstock/service/client/service_link.h"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/service/client/registry.h"
#include "penstock/service/rpc/diagnose.h"
#include "penstock/service/rpc/status.h"
#include "penstock/service/rpc/version.h"

namespace penstock::service {
namespace {

// A reading does not wait longer for a connection for its frames,
constexpr int64_t kConnectNanos = 200'000'000;
// which is tried again after this.
constexpr int64_t kRetryNanos = 10'000'000'000;

}  // namespace

absl::StatusOr<std::shared_ptr<ServiceLink>> ServiceLink::Make(
    const std::string& dispatcher, const rpc::Credentials& credentials,
    Pipeline pipeline, std::shared_ptr<FrameMemory> frames) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::Channel> channel,
      rpc::MakeChannel(dispatcher, credentials, rpc::Carries::kBeats));
  return std::shared_ptr<ServiceLink>(
      new ServiceLink(dispatcher, credentials, std::move(pipeline),
                      std::move(frames), channel));
}

ServiceLink::ServiceLink(const std::string& address,
                         const rpc::Credentials& credentials, Pipeline pipeline,
                         std::shared_ptr<FrameMemory> frames,
                         const std::shared_ptr<grpc::Channel>& channel)
    : address_(address),
      credentials_(credentials),
      pipeline_(std::move(pipeline)),
      frames_(std::move(frames)),
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
  std::string id = pipeline_.registered;
  if (id.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        id, SendPlan(*stub_, add, pipeline_.bundle, /*keep=*/false, ""));
  }
  MutexLock lock(&mutex_);
  plan_id_ = id;
  return id;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ServiceLink::Worker(
    const std::string& address) {
  MutexLock lock(&mutex_);
  std::shared_ptr<grpc::Channel>& channel = workers_[address].channel;
  if (channel == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(channel, rpc::MakeChannel(address, credentials_));
  }
  return channel;
}

absl::Status ServiceLink::Explain(const absl::Status& status) const {
  return rpc::DiagnoseDispatcher(status, address_, credentials_);
}

void ServiceLink::OnWorkerAnswer(const std::string& address) {
  MutexLock lock(&mutex_);
  workers_[address].has_answered = true;
  has_worker_answered_ = true;
}

bool ServiceLink::HasAnswered(const std::string& address) const {
  MutexLock lock(&mutex_);
  const auto it = workers_.find(address);
  return it != workers_.end() && it->second.has_answered;
}

void ServiceLink::OnWorkerBroken(
    const std::string& address, const absl::Status& status,
    std::function<void(const absl::Status&, bool)> told) {
  {
    MutexLock lock(&mutex_);
    WorkerLink& worker = workers_[address];
    if (worker.has_answered || worker.is_looked_at) return;
    worker.is_looked_at = true;
  }
  std::thread([self = shared_from_this(), address, status,
               told = std::move(told)] {
    const absl::Status found =
        rpc::Diagnose(status, address, self->credentials_);
    const absl::Status reason(
        found.code(), absl::StrCat("the worker at ", address,
                                   " cannot be read from: ", found.message()));
    bool has_others;
    {
      MutexLock lock(&self->mutex_);
      has_others = self->has_worker_answered_;
    }
    told(reason, absl::IsFailedPrecondition(found) && !has_others);
  }).detach();
}

std::shared_ptr<WorkerMemory> ServiceLink::MemoryOf(
    const std::string& address) {
  MutexLock lock(&mutex_);
  const auto it = memories_.find(address);
  return it == memories_.end() ? nullptr : it->second.memory;
}

void ServiceLink::Forget(const std::string& address,
                         const std::shared_ptr<WorkerMemory>& memory) {
  MutexLock lock(&mutex_);
  const auto it = memories_.find(address);
  if (it != memories_.end() && it->second.memory == memory) memories_.erase(it);
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
      WorkerMemory::Connect(socket, frames_);
  if (!memory.ok()) return;
  MutexLock lock(&mutex_);
  // Another worker may have come to that address meanwhile.
  Memory& known = memories_[address];
  if (known.socket == socket) known.memory = *std::move(memory);
}

void ServiceLink::OnFramePort(const std::string& address, uint32_t port) {
  if (!credentials_.ca_file.empty() || port == 0 || port > UINT16_MAX) return;
  const int64_t now = SteadyClock().NowNanos();
  {
    MutexLock lock(&mutex_);
    Socket& known = sockets_[address];
    if (known.port == port) {
      if (known.is_connecting) return;
      if (known.socket != nullptr && known.socket->is_open()) return;
      if (known.socket == nullptr && now - known.begun_ns < kRetryNanos) return;
    }
    known = {port, now, true, nullptr};
  }
  // A port may be closed to this host, and nobody says so.
  std::thread([self = shared_from_this(), address, port] {
    absl::StatusOr<std::shared_ptr<WorkerSocket>> socket =
        WorkerSocket::Connect(address, static_cast<uint16_t>(port));
    MutexLock lock(&self->mutex_);
    Socket& known = self->sockets_[address];
    if (known.port != port) return;
    known.is_connecting = false;
    // Else frames come over gRPC.
    if (socket.ok()) known.socket = *std::move(socket);
    self->connected_.SignalAll();
  }).detach();
}

std::shared_ptr<WorkerSocket> ServiceLink::SocketOf(
    const std::string& address) {
  MutexLock lock(&mutex_);
  while (true) {
    const auto it = sockets_.find(address);
    if (it == sockets_.end()) return nullptr;
    const Socket& known = it->second;
    if (known.socket != nullptr && known.socket->is_open()) return known.socket;
    const int64_t left =
        known.begun_ns + kConnectNanos - SteadyClock().NowNanos();
    if (!known.is_connecting || left <= 0) return nullptr;
    connected_.WaitFor(&mutex_, left);
  }
}

void ServiceLink::Forget(const std::string& address,
                         const std::shared_ptr<WorkerSocket>& socket) {
  MutexLock lock(&mutex_);
  const auto it = sockets_.find(address);
  if (it == sockets_.end() || it->second.socket != socket) return;
  it->second.socket.reset();
  it->second.begun_ns = SteadyClock().NowNanos();
}

}  // namespace penstock::service
