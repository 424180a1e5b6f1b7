// Who may call what: every call of the protos, as every role, over the wire.
#include <grpcpp/generic/generic_stub.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/service/dispatcher/dispatcher_grpc.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/rpc/gate.h"
#include "penstock/worker.pb.h"

namespace penstock::service {
namespace {

// All that a role may, in words: what is not here it may not.
const std::map<std::string, std::string>& Allowed() {
  static const auto* const allowed = new std::map<std::string, std::string>{
      {"consumer",
       "Hello AddPlan GetPlan Unregister Open BeatClient Release GetManifest "
       "Read"},
      {"worker", "Hello GetPlan BeatWorker GetManifest"},
      {"admin", "Hello AddPlan GetPlan Unregister GetState Drain Cancel"},
  };
  return *allowed;
}

bool MayCall(const std::string& role, const std::string& call) {
  return absl::StrCat(" ", Allowed().at(role), " ").find(" " + call + " ") !=
         std::string::npos;
}

const google::protobuf::ServiceDescriptor& DispatcherCalls() {
  return *HelloRequest::descriptor()->file()->service(0);
}
const google::protobuf::ServiceDescriptor& WorkerCalls() {
  return *ReadRequest::descriptor()->file()->service(0);
}

class AccessTest : public testing::Test {
 protected:
  AccessTest() : path_(absl::StrCat(testing::TempDir(), "tokens", getpid())) {
    std::ofstream(path_) << "consumer:c\nworker:w\nadmin:a\n";
    chmod(path_.c_str(), 0600);
    DispatcherServer::Options options;
    options.listen = "127.0.0.1:0";
    options.security.token_file = path_;
    auto started = DispatcherServer::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    channel_ = *rpc::MakeChannel(server_->address(), {});
  }
  ~AccessTest() override { unlink(path_.c_str()); }

  grpc::StatusCode Call(const std::string& name, const std::string& token) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    const grpc::Slice nothing("");
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context,
                   absl::StrCat("/penstock.service.Dispatcher/", name),
                   grpc::StubOptions(), &request, &reply,
                   [&](const grpc::Status& status) { done.set_value(status); });
    return done.get_future().get().error_code();
  }

  const std::string path_;
  std::unique_ptr<DispatcherServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(AccessTest, EachCallAsEachRole) {
  const auto& calls = DispatcherCalls();
  ASSERT_GE(calls.method_count(), 11);
  for (int i = 0; i < calls.method_count(); ++i) {
    const std::string& call = calls.method(i)->name();
    EXPECT_EQ(Call(call, ""), grpc::StatusCode::UNAUTHENTICATED) << call;
    EXPECT_EQ(Call(call, "x"), grpc::StatusCode::UNAUTHENTICATED) << call;
    for (const auto& [role, words] : Allowed()) {
      const grpc::StatusCode code = Call(call, role.substr(0, 1));
      EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << call;
      EXPECT_NE(code, grpc::StatusCode::UNIMPLEMENTED) << call;
      EXPECT_EQ(code != grpc::StatusCode::PERMISSION_DENIED,
                MayCall(role, call))
          << role << " calls " << call;
    }
  }
}

// Its words are looked at with each beat, as with each call.
TEST_F(AccessTest, AStreamEndsWhenItsWordLosesItsForce) {
  const auto stub = Dispatcher::NewStub(channel_);
  WorkerBeat beat;
  beat.set_worker(7);
  beat.set_address("127.0.0.1:7");
  WorkerReply reply;
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer w");
  const auto stream = stub->BeatWorker(&context);
  ASSERT_TRUE(stream->Write(beat));
  ASSERT_TRUE(stream->Read(&reply));
  // It is a consumer's now: who has it may not do a worker's work.
  std::ofstream(path_) << "consumer:w\nworker:new\n";
  ASSERT_TRUE(stream->Write(beat));
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);

  grpc::ClientContext again;
  again.AddMetadata("authorization", "Bearer new");
  const auto renewed = stub->BeatWorker(&again);
  ASSERT_TRUE(renewed->Write(beat));
  EXPECT_TRUE(renewed->Read(&reply));
  std::ofstream(path_) << "consumer:w\n";
  ASSERT_TRUE(renewed->Write(beat));
  EXPECT_FALSE(renewed->Read(&reply));
  EXPECT_EQ(renewed->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST(Access, TheTableHasEveryCallOnce) {
  for (const auto* service : {&DispatcherCalls(), &WorkerCalls()}) {
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string& call = service->method(i)->name();
      const rpc::Roles roles =
          rpc::RolesFor(absl::StrCat("/", service->full_name(), "/", call));
      EXPECT_NE(roles, 0) << call;
      EXPECT_EQ((roles & rpc::kConsumer) != 0, MayCall("consumer", call))
          << call;
      EXPECT_EQ((roles & rpc::kWorker) != 0, MayCall("worker", call)) << call;
      EXPECT_EQ((roles & rpc::kAdmin) != 0, MayCall("admin", call)) << call;
    }
  }
  EXPECT_EQ(rpc::RolesFor("/grpc.health.v1.Health/Check"), 0);
}

}  // namespace
}  // namespace penstock::service
