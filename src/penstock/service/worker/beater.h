// A worker's beats to its dispatcher.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/service/rpc/beat_stream.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {

// Sends a beat when something has changed here, when the last was answered, and
// in any case three times in a lease; a beat may be sent while those before it
// are not answered. They go over one stream. When that ends it begins another:
// 50 ms later, and later and later, up to 2 s, by chance somewhat more or less.
// Thread-safe.
class Beater final {
 public:
  struct Options {
    std::string version;  // of the product, for people
    rpc::Credentials credentials;
    // Called by threads of its own, without locks.
    // `says_all`: the one before may not have been heard.
    std::function<WorkerBeat(bool says_all)> make_beat;
    std::function<void(const WorkerReply&)> on_reply;
    // The dispatcher cannot be talked to, ever. Nothing is sent any more.
    std::function<void(const absl::Status&)> on_refused;
    // Why a stream has ended; of the first of several without an answer.
    std::function<void(const absl::Status&)> on_trouble;
    std::string address;  // of the dispatcher, to look what is wrong there
  };

  Beater(std::shared_ptr<Dispatcher::StubInterface> dispatcher,
         Options options);
  ~Beater() { Stop(); }
  Beater(const Beater&) = delete;
  Beater& operator=(const Beater&) = delete;

  void Start();
  // Gives up what is open. Nothing is called back any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Something has changed that the dispatcher should know.
  void Poke() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Stream = rpc::BeatStream<WorkerBeat, WorkerReply>;

  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether beats may follow.
  bool SayHello() ABSL_LOCKS_EXCLUDED(mutex_);
  void Refuse(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReply(const WorkerReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t BackoffNanos() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Dispatcher::StubInterface> dispatcher_;
  const Options options_;

  Mutex mutex_;
  CondVar changed_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_poked_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t not_before_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t sent_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lease_ns_ ABSL_GUARDED_BY(mutex_);
  int64_t unanswered_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // since then; 0: none is
  bool is_overdue_ ABSL_GUARDED_BY(mutex_) = false;  // an answer, for too long
  bool is_unheard_ ABSL_GUARDED_BY(mutex_) = true;   // the last beat, perhaps
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_been_answered_ ABSL_GUARDED_BY(mutex_) = false;  // a beat
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* hello_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::minstd_rand random_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace penstock::service
