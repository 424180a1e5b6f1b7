// A sender's end of a stream of beats.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "penstock/base/mutex.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/rpc/status.h"

namespace penstock::rpc {

// Each beat says all that its sender has to say, so of those that cannot be
// sent yet the last alone is kept. Thread-safe.
template <typename Beat, typename Reply>
class BeatStream final : public grpc::ClientBidiReactor<Beat, Reply> {
 public:
  using Reactor = grpc::ClientBidiReactor<Beat, Reply>;
  struct Options {
    // Begins the call: as generated code has it for stubs.
    std::function<void(grpc::ClientContext*, Reactor*)> call;
    Credentials credentials;
    // Called by gRPC's threads, one reply after the other.
    std::function<void(const Reply&)> on_reply;
    // Called once, last; the stream holds nothing any more then, but is there
    // as long as somebody else has it.
    std::function<void(const absl::Status&)> on_end;
  };

  // Until it has ended, it keeps itself alive.
  static std::shared_ptr<BeatStream> Start(Options options, Beat first) {
    std::shared_ptr<BeatStream> stream(new BeatStream(std::move(options)));
    stream->self_ = stream;
    Prepare(stream->context_, stream->options_.credentials);
    stream->options_.call(&stream->context_, stream.get());
    stream->AddHold();  // beats are written from outside of reactions
    stream->Send(std::move(first));
    stream->StartRead(&stream->reply_);
    stream->StartCall();
    return stream;
  }

  // False: it takes the place of one that was not sent.
  bool Send(Beat beat) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const bool is_next = !next_;
    next_ = std::move(beat);
    WriteIfDue();
    return is_next;
  }
  // on_end() hears of it soon.
  void Cancel() { context_.TryCancel(); }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    is_writing_ = false;
    if (ok) WriteIfDue();
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      options_.on_reply(reply_);
      reply_.Clear();
      return this->StartRead(&reply_);
    }
    {
      MutexLock lock(&mutex_);
      is_ended_ = true;
    }
    this->RemoveHold();
  }
  void OnDone(const grpc::Status& status) override {
    const auto on_end = std::move(options_.on_end);
    const absl::Status why = FromGrpc(status);
    options_ = {};
    self_.reset();  // which may be its end
    on_end(why);
  }

 private:
  explicit BeatStream(Options options) : options_(std::move(options)) {}

  void WriteIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!next_ || is_writing_ || is_ended_) return;
    beat_ = *std::exchange(next_, std::nullopt);
    is_writing_ = true;
    this->StartWrite(&beat_);
  }

  Options options_;
  grpc::ClientContext context_;
  std::shared_ptr<BeatStream> self_;
  Reply reply_;

  Mutex mutex_;
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;  // `beat_`
  Beat beat_ ABSL_GUARDED_BY(mutex_);
  std::optional<Beat> next_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::rpc
