#include "penstock/service/dispatcher/beat_streams.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

uint64_t KeyOf(const WorkerBeat& beat) { return beat.worker(); }

uint64_t Hand(ParkedBeats& beats, WorkerBeat beat, bool /*is_first*/,
              ParkedBeats::Answer<WorkerReply> answer) {
  return beats.OnWorker(std::move(beat), std::move(answer));
}
uint64_t Hand(ParkedBeats& beats, ClientBeat beat, bool is_first,
              ParkedBeats::Answer<ClientReply> answer) {
  return beats.OnClient(std::move(beat), std::move(answer), is_first);
}

// It keeps itself alive until gRPC is done with it; answers that come later
// find that it has ended.
template <typename Beat, typename Reply>
class BeatStream final
    : public grpc::ServerBidiReactor<Beat, Reply>,
      public std::enable_shared_from_this<BeatStream<Beat, Reply>> {
 public:
  BeatStream(ParkedBeats& beats, CheckBeat<Beat> check)
      : beats_(beats), check_(std::move(check)) {}

  void Begin() {
    self_ = this->shared_from_this();
    this->StartRead(&beat_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("the sender has gone"));
    if (const absl::Status status = Check(); !status.ok()) return End(status);
    uint64_t number;
    {
      MutexLock lock(&mutex_);
      if (is_ended_) return;
      // Its answer would be one more that waits to be sent.
      if (next_) {
        is_held_ = true;
        return;
      }
      number = ++last_;
    }
    Take(number);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("the sender has gone"));
    uint64_t number;
    {
      MutexLock lock(&mutex_);
      is_writing_ = false;
      if (is_ended_) return;
      if (next_) Write(*std::exchange(next_, std::nullopt));
      if (!std::exchange(is_held_, false)) return;
      number = ++last_;
    }
    Take(number);
  }

  void OnCancel() override { End(absl::CancelledError("the sender has gone")); }
  void OnDone() override { self_.reset(); }

 private:
  using Key = decltype(KeyOf(std::declval<Beat>()));

  absl::Status Check() {
    if (const absl::Status status = check_(beat_); !status.ok()) return status;
    const Key key = KeyOf(beat_);
    if (!key_) key_ = key;
    if (*key_ == key) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the beats of a stream must be one sender's; got another's");
  }

  // Hands the beat that was read over, and has the next one read.
  void Take(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_) {
    const uint64_t call =
        Hand(beats_, std::move(beat_), /*is_first=*/number == 1,
             [self = this->shared_from_this(),
              number](const absl::StatusOr<Reply>& reply) {
               self->OnAnswer(number, reply);
             });
    {
      MutexLock lock(&mutex_);
      call_ = call;
      if (!is_ended_) return this->StartRead(&beat_);
    }
    beats_.Forget(*key_, call);
  }

  void OnAnswer(uint64_t number, const absl::StatusOr<Reply>& reply) {
    MutexLock lock(&mutex_);
    // One that crosses the next beat counts: who gave it takes it for told.
    if (is_ended_ || number < answered_) return;
    if (!reply.ok()) {
      if (number == last_) EndLocked(reply.status());
      return;
    }
    answered_ = number;
    if (is_writing_) {
      next_ = *reply;
    } else {
      Write(*reply);
    }
  }

  void Write(Reply reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_writing_ = true;
    reply_ = std::move(reply);
    this->StartWrite(&reply_);
  }

  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    uint64_t call;
    {
      MutexLock lock(&mutex_);
      if (is_ended_) return;
      EndLocked(status);
      call = call_;
    }
    // Whether its sender has heard the last answer is not known.
    if (call != 0) beats_.Forget(*key_, call);
  }
  void EndLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_ended_ = true;
    this->Finish(rpc::ToGrpc(status));
  }

  ParkedBeats& beats_;
  const CheckBeat<Beat> check_;
  std::shared_ptr<BeatStream> self_;
  // Touched by the reaction that has a beat in hand: there is one at a time.
  Beat beat_;
  std::optional<Key> key_;  // set before `call_`, and the same from then on

  Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;      // beat that was handed over
  uint64_t call_ ABSL_GUARDED_BY(mutex_) = 0;      // it, as `beats_` knows it
  uint64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;  // beat, the last one
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;   // `beat_`, for now
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;  // `reply_`
  Reply reply_ ABSL_GUARDED_BY(mutex_);
  std::optional<Reply> next_ ABSL_GUARDED_BY(mutex_);  // waits for `reply_`
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

template <typename Beat, typename Reply>
grpc::ServerBidiReactor<Beat, Reply>* Receive(ParkedBeats& beats,
                                              CheckBeat<Beat> check) {
  auto stream =
      std::make_shared<BeatStream<Beat, Reply>>(beats, std::move(check));
  stream->Begin();
  return stream.get();
}

}  // namespace

grpc::ServerBidiReactor<WorkerBeat, WorkerReply>* ReceiveBeats(
    ParkedBeats& beats, CheckBeat<WorkerBeat> check) {
  return Receive<WorkerBeat, WorkerReply>(beats, std::move(check));
}

grpc::ServerBidiReactor<ClientBeat, ClientReply>* ReceiveBeats(
    ParkedBeats& beats, CheckBeat<ClientBeat> check) {
  return Receive<ClientBeat, ClientReply>(beats, std::move(check));
}

}  // namespace penstock::service
