#include "penstock/service/dispatcher/dispatcher_grpc.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {
namespace {

using plan_testing::Batch;
using plan_testing::Concatenate;
using plan_testing::Range;
using testing::HasSubstr;
using testing::SizeIs;

std::string BundleOf(const plan::Plan& plan) {
  PlanBundle bundle;
  bundle.set_plan(plan.SerializeAsString());
  bundle.set_directory("/data");
  return bundle.SerializeAsString();
}

class DispatcherGrpcTest : public testing::Test {
 protected:
  DispatcherGrpcTest() {
    DispatcherServer::Options options;
    options.listen = "127.0.0.1:0";
    options.version = "1.2.3";
    options.max_plan_bytes = 6 << 20;
    // Nothing that a test waits for comes of itself.
    options.settings.lease_ms = 60'000;
    auto started = DispatcherServer::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    auto channel = rpc::MakeChannel(server_->address(), {});
    EXPECT_TRUE(channel.ok()) << channel.status();
    stub_ = Dispatcher::NewStub(*channel);
  }

  // A call that takes longer than a long poll is a failure.
  template <typename Reply, typename Call, typename Request>
  grpc::Status Do(Call call, const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    return (stub_.get()->*call)(&context, request, reply);
  }
  grpc::Status AddPlan(const std::vector<std::string>& parts, AddPlanReply* id,
                       bool keep = false) {
    grpc::ClientContext context;
    auto writer = stub_->AddPlan(&context, id);
    for (const std::string& bytes : parts) {
      Part part;
      part.set_bytes(bytes);
      part.set_keep(keep);
      if (!writer->Write(part)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  std::string Register(const plan::Plan& plan) {
    AddPlanReply id;
    const grpc::Status status = AddPlan({BundleOf(plan)}, &id);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return id.plan();
  }
  OpenRequest Request(const std::string& plan) const {
    OpenRequest request;
    request.mutable_opener()->set_consumer(1);
    request.set_job("train");
    request.set_plan(plan);
    request.set_visitation(EXACTLY_ONCE);
    request.set_slots(1);
    return request;
  }
  WorkerBeat Beat(uint32_t room) const {
    WorkerBeat beat;
    beat.set_worker(7);
    beat.set_address("127.0.0.1:7");
    beat.set_room(room);
    beat.set_term(term_);
    return beat;
  }
  static void Hold(const Lease& lease, WorkerBeat& beat) {
    WorkerBeat::Held* held = beat.add_held();
    *held->mutable_epoch() = lease.epoch();
    held->set_bundle(lease.bundle());
    held->set_attempt(lease.attempt());
  }
  ClientBeat Beat(const OpenReply& opened, uint32_t want) const {
    ClientBeat beat;
    *beat.mutable_epoch() = opened.epoch();
    beat.mutable_opener()->set_consumer(1);
    beat.set_want(want);
    return beat;
  }
  // A stream over which one beat after the other is sent and answered.
  template <typename Beat, typename Reply>
  class Stream {
   public:
    template <typename Call>
    Stream(Dispatcher::Stub& stub, Call call) {
      context_.set_deadline(std::chrono::system_clock::now() +
                            std::chrono::seconds(30));
      stream_ = (stub.*call)(&context_);
    }
    bool Write(const Beat& beat) { return stream_->Write(beat); }
    std::optional<Reply> Read() {
      Reply reply;
      if (!stream_->Read(&reply)) return std::nullopt;
      return reply;
    }
    // The stream must last.
    Reply Ask(const Beat& beat) {
      Write(beat);
      const std::optional<Reply> reply = Read();
      if (!reply) ADD_FAILURE() << End().error_message();
      return reply.value_or(Reply());
    }
    // Why it has ended; nothing is answered any more.
    grpc::Status End() {
      EXPECT_FALSE(Read().has_value());
      return stream_->Finish();
    }
    void Cancel() { context_.TryCancel(); }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<Beat, Reply>> stream_;
  };
  using WorkerStream = Stream<WorkerBeat, WorkerReply>;
  using ClientStream = Stream<ClientBeat, ClientReply>;
  std::unique_ptr<WorkerStream> OpenWorker() {
    return std::make_unique<WorkerStream>(*stub_,
                                          &Dispatcher::Stub::BeatWorker);
  }
  std::unique_ptr<ClientStream> OpenClient() {
    return std::make_unique<ClientStream>(*stub_,
                                          &Dispatcher::Stub::BeatClient);
  }
  WorkerReply BeatWorker(const WorkerBeat& beat) {
    if (worker_ == nullptr) worker_ = OpenWorker();
    const WorkerReply reply = worker_->Ask(beat);
    term_ = reply.term();
    return reply;
  }
  ClientReply BeatClient(const ClientBeat& beat) {
    if (client_ == nullptr) client_ = OpenClient();
    return client_->Ask(beat);
  }
  // An epoch of `bundles` whose manifest a worker has made.
  OpenReply OpenEpoch(uint64_t bundles) {
    const OpenRequest request = Request(Register(Range(100)));
    OpenReply opened;
    EXPECT_TRUE(Do(&Dispatcher::Stub::Open, request, &opened).ok());
    EXPECT_EQ(opened.phase(), OpenReply::WAITING);
    const WorkerReply granted = BeatWorker(Beat(4));
    EXPECT_THAT(granted.leases(), SizeIs(1));
    WorkerBeat beat = Beat(0);
    WorkerBeat::Made* made = beat.add_made();
    *made->mutable_epoch() = granted.leases(0).epoch();
    made->set_attempt(granted.leases(0).attempt());
    made->mutable_manifest()->set_rows(bundles);
    made->mutable_manifest()->set_rows_per_bundle(1);
    made->mutable_manifest()->set_passes(1);
    EXPECT_THAT(BeatWorker(beat).made_taken(), SizeIs(1));
    EXPECT_TRUE(Do(&Dispatcher::Stub::Open, request, &opened).ok());
    EXPECT_EQ(opened.phase(), OpenReply::OPEN);
    return opened;
  }
  void WaitUntilParked(size_t calls) {
    while (server_->num_parked() < calls) std::this_thread::yield();
  }

  std::unique_ptr<DispatcherServer> server_;
  std::unique_ptr<Dispatcher::Stub> stub_;
  std::unique_ptr<WorkerStream> worker_;
  std::unique_ptr<ClientStream> client_;
  uint64_t term_ = 0;
};

TEST_F(DispatcherGrpcTest, SaysWhoItIs) {
  HelloRequest request;
  request.set_major(rpc::kMajorVersion);
  HelloReply reply;
  ASSERT_TRUE(Do(&Dispatcher::Stub::Hello, request, &reply).ok());
  EXPECT_EQ(reply.version(), "1.2.3");
  EXPECT_GT(reply.term(), 0);
  request.set_major(rpc::kMajorVersion + 1);
  request.set_version("9.0");
  const grpc::Status other = Do(&Dispatcher::Stub::Hello, request, &reply);
  EXPECT_EQ(other.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(other.error_message(), HasSubstr("1.2.3"));
}

TEST_F(DispatcherGrpcTest, PlansTravelInParts) {
  PlanBundle bundle;
  bundle.set_plan(Range(10).SerializeAsString());
  PlanBundle::Capture* capture = bundle.add_captures();
  capture->set_id("weights");
  capture->set_bytes(std::string(5 << 20, 'x'));
  const std::string bytes = bundle.SerializeAsString();
  AddPlanReply id;
  ASSERT_TRUE(AddPlan({bytes.substr(0, 1 << 20), bytes.substr(1 << 20, 2 << 20),
                       bytes.substr(3 << 20)},
                      &id)
                  .ok());
  EXPECT_THAT(id.plan(), SizeIs(32));
  grpc::ClientContext context;
  GetPlanRequest request;
  request.set_plan(id.plan());
  auto reader = stub_->GetPlan(&context, request);
  std::string got;
  Part part;
  int parts = 0;
  while (reader->Read(&part)) {
    got += part.bytes();
    ++parts;
    EXPECT_LE(part.bytes().size(), 1 << 20);
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(parts, 6);
  AddPlanReply again;
  ASSERT_TRUE(
      AddPlan({bytes.substr(0, 4 << 20), bytes.substr(4 << 20)}, &again).ok());
  EXPECT_EQ(again.plan(), id.plan());
}

TEST_F(DispatcherGrpcTest, OnlyValidPlansAreTaken) {
  AddPlanReply id;
  EXPECT_EQ(AddPlan({"nonsense"}, &id).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  plan::Plan plan = Range(10);
  plan.mutable_nodes(0)->clear_output();
  const grpc::Status status = AddPlan({BundleOf(plan)}, &id);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("range"));
}

TEST_F(DispatcherGrpcTest, PlansThatAreTooLargeAreRefused) {
  AddPlanReply id;
  const std::vector<std::string> parts(7, std::string(1 << 20, 'x'));
  const grpc::Status all = AddPlan(parts, &id);
  EXPECT_EQ(all.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(all.error_message(), HasSubstr("at most 6291456 bytes"));
  const grpc::Status part = AddPlan({std::string(5 << 20, 'x')}, &id);
  EXPECT_EQ(part.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(part.error_message(), HasSubstr("parts of at most"));
}

TEST_F(DispatcherGrpcTest, PlansThatCannotBeSharedAreRefused) {
  const plan::Plan joined =
      plan_testing::Zip({Batch(Range(10), 2), Batch(Range(10), 2)});
  OpenReply opened;
  OpenRequest request = Request(Register(joined));
  const grpc::Status status = Do(&Dispatcher::Stub::Open, request, &opened);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
      << status.error_message();
  // As it was divided for; and by each worker it can be run.
  request.set_visitation(EACH_WORKER);
  EXPECT_EQ(Do(&Dispatcher::Stub::Open, request, &opened).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  PlanBundle bundle;
  bundle.ParseFromString(BundleOf(joined));
  bundle.set_visitation(plan::Distribution::EACH_WORKER);
  AddPlanReply id;
  EXPECT_TRUE(AddPlan({bundle.SerializeAsString()}, &id).ok());
  request.set_plan(id.plan());
  EXPECT_TRUE(Do(&Dispatcher::Stub::Open, request, &opened).ok());
}

TEST_F(DispatcherGrpcTest, AnEpochOverTheWire) {
  const OpenReply opened = OpenEpoch(3);
  grpc::ClientContext context;
  GetManifestRequest request;
  request.set_manifest(opened.manifest());
  auto reader = stub_->GetManifest(&context, request);
  Part part;
  ASSERT_TRUE(reader->Read(&part));
  Manifest manifest;
  EXPECT_TRUE(manifest.ParseFromString(part.bytes()));
  EXPECT_EQ(manifest.rows(), 3);

  EXPECT_THAT(BeatClient(Beat(opened, 8)).assigned(), SizeIs(0));
  WorkerBeat holding = Beat(4);
  const WorkerReply first = BeatWorker(holding);
  ASSERT_THAT(first.leases(), SizeIs(3));
  for (const Lease& lease : first.leases()) Hold(lease, holding);
  ClientReply reply = BeatClient(Beat(opened, 8));
  EXPECT_THAT(reply.assigned(), SizeIs(3));
  EXPECT_EQ(reply.assigned(0).address(), "127.0.0.1:7");
  ClientBeat done = Beat(opened, 8);
  for (int i = 0; i < 3; ++i) done.add_finished()->set_bundle(i);
  reply = BeatClient(done);
  EXPECT_THAT(reply.taken(), SizeIs(3));
  EXPECT_EQ(reply.phase(), ClientReply::NOTHING_LEFT);
  EXPECT_THAT(BeatWorker(holding).revoked(), SizeIs(3));
}

TEST_F(DispatcherGrpcTest, ParkedBeatsHearOfNews) {
  const OpenReply opened = OpenEpoch(1);
  BeatClient(Beat(opened, 0));
  // A worker waits for work, a client for its bundle.
  auto worker = std::async([&] { return BeatWorker(Beat(4)); });
  WaitUntilParked(1);
  const ClientReply assigned = [&] {
    // This beat is the news that the worker hears; its grant is the client's.
    ClientReply reply = BeatClient(Beat(opened, 8));
    while (reply.assigned().empty()) reply = BeatClient(Beat(opened, 8));
    return reply;
  }();
  const WorkerReply granted = worker.get();
  ASSERT_THAT(granted.leases(), SizeIs(1));
  EXPECT_EQ(assigned.assigned(0).attempt(), granted.leases(0).attempt());
  // What is done need not be held.
  WorkerBeat holding = Beat(0);
  Hold(granted.leases(0), holding);
  worker = std::async([&] { return BeatWorker(holding); });
  WaitUntilParked(1);
  ClientBeat done = Beat(opened, 8);
  done.add_finished()->set_bundle(0);
  EXPECT_EQ(BeatClient(done).phase(), ClientReply::NOTHING_LEFT);
  EXPECT_THAT(worker.get().revoked(), SizeIs(1));
}

TEST_F(DispatcherGrpcTest, ANewerBeatTakesThePlaceOfTheOneThatWaits) {
  BeatWorker(Beat(4));
  worker_->Write(Beat(4));
  WaitUntilParked(1);
  worker_->Write(Beat(3));
  // One of them is answered, when people want the worker gone, and one alone.
  DrainRequest request;
  request.set_address("127.0.0.1:7");
  DrainReply drained;
  EXPECT_TRUE(Do(&Dispatcher::Stub::Drain, request, &drained).ok());
  EXPECT_TRUE(worker_->Read()->should_drain());
  WorkerBeat draining = Beat(0);
  draining.set_is_draining(true);
  EXPECT_TRUE(BeatWorker(draining).is_drained());
  request.set_address("127.0.0.1:8");
  EXPECT_EQ(Do(&Dispatcher::Stub::Drain, request, &drained).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(DispatcherGrpcTest, ANewerStreamEndsTheOneBefore) {
  BeatWorker(Beat(4));
  worker_->Write(Beat(4));
  WaitUntilParked(1);
  const auto newer = OpenWorker();
  newer->Write(Beat(4));
  EXPECT_EQ(worker_->End().error_code(), grpc::StatusCode::CANCELLED);
  WaitUntilParked(1);
  DrainRequest request;
  request.set_address("127.0.0.1:7");
  DrainReply drained;
  EXPECT_TRUE(Do(&Dispatcher::Stub::Drain, request, &drained).ok());
  EXPECT_TRUE(newer->Read()->should_drain());
}

TEST_F(DispatcherGrpcTest, ANewStreamIsToldAllAgain) {
  const OpenReply opened = OpenEpoch(1);
  BeatClient(Beat(opened, 8));
  ASSERT_THAT(BeatWorker(Beat(4)).leases(), SizeIs(1));
  EXPECT_THAT(BeatClient(Beat(opened, 8)).assigned(), SizeIs(1));
  // Whether that was heard nobody knows: the one before may be cut off, and
  // seem to live.
  EXPECT_THAT(OpenClient()->Ask(Beat(opened, 8)).assigned(), SizeIs(1));
}

TEST_F(DispatcherGrpcTest, NobodyWaitsAfterItsStreamHasBroken) {
  BeatWorker(Beat(4));
  worker_->Write(Beat(4));
  WaitUntilParked(1);
  worker_->Cancel();
  while (server_->num_parked() > 0) std::this_thread::yield();
  EXPECT_EQ(worker_->End().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(DispatcherGrpcTest, AStreamIsOneSenders) {
  BeatWorker(Beat(4));
  WorkerBeat other = Beat(4);
  other.set_worker(8);
  worker_->Write(other);
  EXPECT_EQ(worker_->End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Each beat has a large answer, and none is taken: they fill what the
// connection holds, and then no more beats are read.
TEST_F(DispatcherGrpcTest, WhoDoesNotReadIsNotHeard) {
  constexpr int kMany = 100'000;
  WorkerBeat beat = Beat(0);
  for (uint64_t bundle = 0; bundle < 2'000; ++bundle) {
    WorkerBeat::Held* held = beat.add_given_back();
    held->mutable_epoch()->set_run(99);
    held->set_bundle(bundle);
  }
  const auto deaf = OpenWorker();
  std::atomic<int> sent = 0;
  auto writer = std::async([&] {
    while (sent < kMany && deaf->Write(beat)) ++sent;
  });
  // Others are heard meanwhile.
  const auto channel = *rpc::MakeChannel(server_->address(), {});
  stub_ = Dispatcher::NewStub(channel);
  int before = 0;
  for (int same = 0; same < 100;) {
    State state;
    ASSERT_TRUE(
        Do(&Dispatcher::Stub::GetState, GetStateRequest(), &state).ok());
    same = sent == before && before > 0 ? same + 1 : 0;
    before = sent;
  }
  EXPECT_LT(before, kMany);
  deaf->Cancel();
  writer.get();
}

TEST_F(DispatcherGrpcTest, ConsumersHearThatTheirJobWasCancelled) {
  const OpenReply opened = OpenEpoch(3);
  BeatClient(Beat(opened, 8));
  CancelRequest request;
  request.set_job("train");
  CancelReply cancelled;
  EXPECT_TRUE(Do(&Dispatcher::Stub::Cancel, request, &cancelled).ok());
  const ClientReply reply = BeatClient(Beat(opened, 8));
  EXPECT_EQ(reply.phase(), ClientReply::FAILED);
  EXPECT_EQ(reply.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(reply.error(), "job 'train' was cancelled");
  EXPECT_EQ(Do(&Dispatcher::Stub::Cancel, request, &cancelled).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(DispatcherGrpcTest, ShowsItsState) {
  const OpenReply opened = OpenEpoch(3);
  State state;
  ASSERT_TRUE(Do(&Dispatcher::Stub::GetState, GetStateRequest(), &state).ok());
  EXPECT_EQ(state.version(), "1.2.3");
  ASSERT_THAT(state.workers(), SizeIs(1));
  EXPECT_EQ(state.workers(0).address(), "127.0.0.1:7");
  ASSERT_THAT(state.jobs(), SizeIs(1));
  ASSERT_THAT(state.jobs(0).epochs(), SizeIs(1));
  EXPECT_EQ(state.jobs(0).epochs(0).bundles(), 3);
  EXPECT_THAT(state.jobs(0).epochs(0).consumers(), SizeIs(1));
}

TEST_F(DispatcherGrpcTest, WhoWaitsHearsThatItEnds) {
  BeatWorker(Beat(4));
  worker_->Write(Beat(4));
  WaitUntilParked(1);
  server_->Stop();
  EXPECT_EQ(worker_->End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(DispatcherServer, TheNetworkNeedsCertificates) {
  DispatcherServer::Options options;
  options.listen = "0.0.0.0:0";
  const auto started = DispatcherServer::Start(options);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("--tls-ca"));
}

}  // namespace
}  // namespace penstock::service
