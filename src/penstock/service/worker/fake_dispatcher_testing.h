// For tests: a dispatcher that leases what a test says.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"

namespace penstock::service {

// Holds one worker to the leases that were granted. Thread-safe.
class FakeDispatcher final {
 public:
  FakeDispatcher() { Restart(); }
  ~FakeDispatcher() { Stop(); }

  const std::string& address() const { return address_; }

  void Stop() {
    {
      MutexLock lock(&mutex_);
      is_stopped_ = true;
      changed_.SignalAll();
    }
    if (server_ != nullptr) server_->Shutdown();
    server_.reset();
  }
  // The same one later: another term, at the same address.
  void Restart() {
    int port = port_;
    service_ = std::make_unique<Service>(*this);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_),
                             grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(64 << 20);
    builder.RegisterService(service_.get());
    {
      MutexLock lock(&mutex_);
      is_stopped_ = false;
      ++term_;
    }
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    port_ = port;
    address_ = absl::StrCat("127.0.0.1:", port_);
  }

  void AddPlan(const std::string& id, const std::string& bytes) {
    MutexLock lock(&mutex_);
    plans_[id] = bytes;
  }
  void AddManifest(uint64_t hash, const Manifest& manifest) {
    MutexLock lock(&mutex_);
    manifests_[hash] = manifest.SerializeAsString();
  }
  void Grant(const Lease& lease) {
    MutexLock lock(&mutex_);
    leases_[KeyOf(lease.epoch(), lease.bundle())] = lease;
    changed_.SignalAll();
  }
  void Revoke(uint64_t bundle, uint64_t generation = 0, uint64_t run = 1) {
    MutexLock lock(&mutex_);
    leases_.erase({run, generation, bundle});
    changed_.SignalAll();
  }

  // Waits for a beat that is as the test wants it.
  WorkerBeat AwaitBeat(const std::function<bool(const WorkerBeat&)>& is_it) {
    constexpr int64_t kPatience = 60'000'000'000;
    const int64_t until = SteadyClock().NowNanos() + kPatience;
    MutexLock lock(&mutex_);
    while (num_beats_ == 0 || !is_it(beat_)) {
      if (SteadyClock().NowNanos() > until) {
        ADD_FAILURE() << "no such beat; the last was " << beat_.DebugString();
        break;
      }
      changed_.WaitFor(&mutex_, kPatience);
    }
    return beat_;
  }
  // The last beat that brought a manifest: it is answered at once, and others
  // follow it.
  WorkerBeat AwaitMade() {
    AwaitBeat([this](const WorkerBeat&) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return made_.made_size() > 0;
    });
    MutexLock lock(&mutex_);
    return made_;
  }
  WorkerBeat AwaitHeld(int held) {
    return AwaitBeat(
        [held](const WorkerBeat& beat) { return beat.held_size() == held; });
  }
  int num_plans_sent() const {
    MutexLock lock(&mutex_);
    return num_plans_sent_;
  }

 private:
  using Key = std::tuple<uint64_t, uint64_t, uint64_t>;
  static Key KeyOf(const EpochId& epoch, uint64_t bundle) {
    return {epoch.run(), epoch.generation(), bundle};
  }
  class Service final : public Dispatcher::Service {
   public:
    explicit Service(FakeDispatcher& owner) : owner_(owner) {}
    grpc::Status Hello(grpc::ServerContext*, const HelloRequest* request,
                       HelloReply* reply) override {
      reply->set_major(request->major());
      return grpc::Status::OK;
    }
    grpc::Status GetPlan(grpc::ServerContext*, const GetPlanRequest* request,
                         grpc::ServerWriter<Part>* writer) override {
      return owner_.SendPlan(request->plan(), writer);
    }
    grpc::Status GetManifest(grpc::ServerContext*,
                             const GetManifestRequest* request,
                             grpc::ServerWriter<Part>* writer) override {
      std::string bytes;
      {
        MutexLock lock(&owner_.mutex_);
        bytes = owner_.manifests_[request->manifest()];
      }
      return SendParts(bytes, writer);
    }
    grpc::Status BeatWorker(
        grpc::ServerContext* context,
        grpc::ServerReaderWriter<WorkerReply, WorkerBeat>* stream) override {
      // Who reads ends when the worker has gone, or this call is cancelled.
      std::atomic<bool> has_gone = false;
      std::thread reader([&] {
        WorkerBeat beat;
        while (stream->Read(&beat)) owner_.OnBeat(beat);
        has_gone = true;
        owner_.Ring();
      });
      WorkerReply reply;
      while (owner_.WaitForAnswer(has_gone, reply)) stream->Write(reply);
      context->TryCancel();
      reader.join();
      return grpc::Status::CANCELLED;
    }

   private:
    FakeDispatcher& owner_;
  };

  static grpc::Status SendParts(const std::string& bytes,
                                grpc::ServerWriter<Part>* writer) {
    constexpr size_t kPartBytes = size_t{1} << 20;
    for (size_t at = 0; at < bytes.size(); at += kPartBytes) {
      Part part;
      part.set_bytes(bytes.substr(at, kPartBytes));
      writer->Write(part);
    }
    return grpc::Status::OK;
  }

  grpc::Status SendPlan(const std::string& id,
                        grpc::ServerWriter<Part>* writer) {
    std::string bytes;
    {
      MutexLock lock(&mutex_);
      ++num_plans_sent_;
      const auto found = plans_.find(id);
      if (found == plans_.end()) {
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such plan");
      }
      bytes = found->second;
    }
    return SendParts(bytes, writer);
  }

  void Ring() {
    MutexLock lock(&mutex_);
    changed_.SignalAll();
  }

  void OnBeat(const WorkerBeat& beat) {
    MutexLock lock(&mutex_);
    ++num_beats_;
    beat_ = beat;
    if (beat.made_size() > 0) made_ = beat;
    changed_.SignalAll();
  }

  // What the last beat is answered. False: nothing more is.
  bool WaitForAnswer(const std::atomic<bool>& has_gone, WorkerReply& reply) {
    constexpr int64_t kWait = 300'000'000;
    const int64_t until = SteadyClock().NowNanos() + kWait;
    MutexLock lock(&mutex_);
    while (true) {
      if (is_stopped_ || has_gone) return false;
      const int64_t left = until - SteadyClock().NowNanos();
      if (num_answered_ != num_beats_) {
        reply.Clear();
        reply.set_term(term_);
        reply.set_lease_ms(1'500);
        if (Answer(beat_, reply) || left <= 0) {
          num_answered_ = num_beats_;
          return true;
        }
      }
      changed_.WaitFor(&mutex_, std::max<int64_t>(left, kWait / 10));
    }
  }

  // Whether there is something to say.
  bool Answer(const WorkerBeat& beat, WorkerReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::map<Key, bool> is_held;
    for (const WorkerBeat::Made& made : beat.made()) {
      reply.add_made_taken(made.attempt());
      for (auto it = leases_.begin(); it != leases_.end();) {
        it = it->second.attempt() == made.attempt() ? leases_.erase(it)
                                                    : std::next(it);
      }
    }
    for (const WorkerBeat::Held& held : beat.given_back()) {
      *reply.add_revoked() = held;
      leases_.erase(KeyOf(held.epoch(), held.bundle()));
    }
    for (const WorkerBeat::Held& held : beat.held()) {
      const Key key = KeyOf(held.epoch(), held.bundle());
      const auto lease = leases_.find(key);
      if (lease == leases_.end()) {
        *reply.add_revoked() = held;
      } else if (lease->second.attempt() == held.attempt()) {
        is_held[key] = true;
      }
    }
    if (!beat.is_draining()) {
      for (const auto& [key, lease] : leases_) {
        if (!is_held[key]) *reply.add_leases() = lease;
      }
    } else if (beat.held_size() == 0 && beat.given_back_size() == 0) {
      reply.set_is_drained(true);
    }
    return reply.leases_size() > 0 || reply.revoked_size() > 0 ||
           reply.made_taken_size() > 0 || reply.is_drained();
  }

  int port_ = 0;
  std::string address_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> plans_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> manifests_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Lease> leases_ ABSL_GUARDED_BY(mutex_);
  WorkerBeat beat_ ABSL_GUARDED_BY(mutex_);
  WorkerBeat made_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_beats_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_answered_ ABSL_GUARDED_BY(mutex_) = 0;  // up to that beat
  int num_plans_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::service
