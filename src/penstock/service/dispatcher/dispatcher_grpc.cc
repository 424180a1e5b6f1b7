#include "penstock/service/dispatcher/dispatcher_grpc.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/store/memory_store.h"
#include "penstock/service/store/sqlite_store.h"

namespace penstock::service {
namespace {

constexpr std::chrono::seconds kEndWithin(1);
// Senders say of themselves that they are there; an answer shows them that the
// dispatcher is.
constexpr int64_t kAnswerMillis = 5'000;
// Of connections that say nothing: who has gone without a word is found out.
constexpr int kPingMillis = 30'000;
constexpr int kPingTimeoutMillis = 15'000;

ParkedBeats::Settings BeatSettings(const DispatcherState::Settings& settings) {
  ParkedBeats::Settings beats;
  beats.worker_wait_ms = std::min<int64_t>(settings.lease_ms, kAnswerMillis);
  beats.client_wait_ms = kAnswerMillis;
  return beats;
}

[[noreturn]] void EndProcess(const absl::Status& status) {
  std::cerr << "penstock dispatcher: its store has failed, so it ends: "
            << status.message() << std::endl;
  std::_Exit(1);
}

std::string HolderName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, ":", getpid());
}

absl::StatusOr<std::unique_ptr<store::MetaStore>> OpenStore(
    const std::string& directory) {
  if (!directory.empty()) return store::OpenSqliteStore(directory);
  return std::make_unique<store::MemoryStore>(
      std::make_shared<store::MemoryDisk>());
}

}  // namespace

DispatcherServer::DispatcherServer(const Options& options)
    : options_(options), beats_(BeatSettings(options.settings)) {}

absl::StatusOr<std::unique_ptr<DispatcherServer>> DispatcherServer::Start(
    Options options) {
  PENSTOCK_ASSIGN_OR_RETURN(
      auto credentials,
      rpc::MakeServerCredentials(options.listen, options.security));
  std::unique_ptr<DispatcherServer> server(new DispatcherServer(options));
  PENSTOCK_ASSIGN_OR_RETURN(server->gate_,
                            rpc::Gate::Make(options.security.token_file));
  PENSTOCK_ASSIGN_OR_RETURN(server->store_, OpenStore(options.state_dir));
  DurableDispatcher::Options inner;
  inner.settings = options.settings;
  inner.holder = HolderName();
  inner.on_failure = options.on_failure ? options.on_failure : EndProcess;
  EventLog& log = options.log == nullptr ? EventLog::Silent() : *options.log;
  inner.on_news = [beats = &server->beats_, &log](const News& news) {
    beats->OnNews(news);
    for (const Happening& each : news.happenings) {
      log.Write(each.event, each.facts);
    }
  };
  PENSTOCK_ASSIGN_OR_RETURN(
      server->dispatcher_,
      DurableDispatcher::Make(*server->store_, SteadyClock(), inner));
  server->dispatcher_->Start();
  server->service_ = std::make_unique<DispatcherService>(
      *server->dispatcher_, server->beats_, *server->gate_, log,
      options.version, options.max_plan_bytes);
  server->beats_.Start(*server->dispatcher_);
  grpc::EnableDefaultHealthCheckService(true);
  if (options.has_reflection) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, std::move(credentials), &port);
  builder.RegisterService(server->service_.get());
  rpc::SetLimits(builder);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             rpc::kBeatWindowBytes);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen at '", options.listen,
                     "': the address is not this machine's, or in use"));
  }
  server->address_ = absl::StrCat(
      options.listen.substr(0, options.listen.rfind(':')), ":", port);
  return server;
}

State DispatcherServer::Describe() const {
  State state = dispatcher_->Describe();
  state.set_version(options_.version);
  return state;
}

void DispatcherServer::Stop() {
  beats_.Stop();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + kEndWithin);
    server_->Wait();
    server_.reset();
  }
}

}  // namespace penstock::service
