// Both ends of a stream of beats, over a real connection.
#include "penstock/service/dispatcher/beat_streams.h"

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/service/dispatcher/dispatcher_grpc.h"
#include "penstock/service/rpc/beat_stream.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {
namespace {

class BeatStreamsTest : public testing::Test {
 protected:
  using Stream = rpc::BeatStream<WorkerBeat, WorkerReply>;

  BeatStreamsTest() {
    DispatcherServer::Options options;
    options.listen = "127.0.0.1:0";
    options.settings.lease_ms = 60'000;  // nothing comes of itself
    auto started = DispatcherServer::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    stub_ = Dispatcher::NewStub(
        *rpc::MakeChannel(server_->address(), {}, rpc::Carries::kBeats));
  }

  static WorkerBeat Beat(uint64_t number) {
    WorkerBeat beat;
    beat.set_worker(7);
    beat.set_address("127.0.0.1:7");
    WorkerBeat::Held* back = beat.add_given_back();
    back->mutable_epoch()->set_run(99);
    back->set_bundle(number);
    return beat;
  }
  std::shared_ptr<Stream> Begin(WorkerBeat first) {
    Stream::Options options;
    options.call = [this](grpc::ClientContext* context,
                          Stream::Reactor* reactor) {
      stub_->async()->BeatWorker(context, reactor);
    };
    options.on_reply = [this](const WorkerReply& reply) {
      MutexLock lock(&mutex_);
      replies_.push_back(reply);
      changed_.SignalAll();
    };
    options.on_end = [this](const absl::Status& status) {
      end_.set_value(status);
    };
    return Stream::Start(std::move(options), std::move(first));
  }
  // That something given back is not held any more is an answer of its own.
  void AwaitAnswerTo(uint64_t number) {
    MutexLock lock(&mutex_);
    while (replies_.empty() || replies_.back().revoked_size() == 0 ||
           replies_.back().revoked(0).bundle() != number) {
      changed_.Wait(&mutex_);
    }
  }

  std::unique_ptr<DispatcherServer> server_;
  std::unique_ptr<Dispatcher::Stub> stub_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<WorkerReply> replies_ ABSL_GUARDED_BY(mutex_);
  std::promise<absl::Status> end_;
};

TEST_F(BeatStreamsTest, TheLastOfManyIsAnswered) {
  constexpr uint64_t kMany = 20'000;
  const std::shared_ptr<Stream> stream = Begin(Beat(0));
  for (uint64_t number = 1; number <= kMany; ++number) {
    stream->Send(Beat(number));
  }
  AwaitAnswerTo(kMany);
  stream->Cancel();
  EXPECT_TRUE(absl::IsCancelled(end_.get_future().get()));
}

TEST_F(BeatStreamsTest, ItHoldsNothingWhenItHasEnded) {
  std::weak_ptr<Stream> stream = Begin(Beat(0));
  AwaitAnswerTo(0);
  if (const auto begun = stream.lock()) begun->Cancel();
  end_.get_future().wait();
  EXPECT_EQ(stream.lock(), nullptr);
}

TEST_F(BeatStreamsTest, ADispatcherThatEndsSaysSo) {
  const std::shared_ptr<Stream> stream = Begin(Beat(0));
  AwaitAnswerTo(0);
  WorkerBeat beat = Beat(0);
  beat.clear_given_back();
  {
    MutexLock lock(&mutex_);
    beat.set_term(replies_.back().term());
  }
  stream->Send(beat);
  while (server_->num_parked() == 0) std::this_thread::yield();
  server_->Stop();
  const absl::Status status = end_.get_future().get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // Nothing comes of what is sent later.
  stream->Send(beat);
}

TEST_F(BeatStreamsTest, NobodyListens) {
  server_->Stop();
  Begin(Beat(0));
  EXPECT_TRUE(absl::IsUnavailable(end_.get_future().get()));
}

}  // namespace
}  // namespace penstock::service
